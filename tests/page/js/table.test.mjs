import assert from "node:assert/strict";
import test from "node:test";
import { plainText, splitTable, textOf } from "../../../src/expost/page/static/table.js";

const cells = (text, separator = ",") => splitTable(text, separator).map((row) => row.cells);

test("commas, semicolons and tabs separate, and blanks around values go", () => {
  assert.deepEqual(cells("1, 2 ,north"), [["1", "2", "north"]]);
  assert.deepEqual(cells("1;2,5;north\n3;4;south", ";"), [["1", "2,5", "north"], ["3", "4", "south"]]);
  assert.deepEqual(cells("1\t2\tnorth", "\t"), [["1", "2", "north"]]);
});

test("quotes keep separators, blanks, lines and doubled quotes", () => {
  assert.deepEqual(cells('1,"south, old"," x "'), [["1", "south, old", " x "]]);
  assert.deepEqual(cells('"the ""east""",2'), [['the "east"', "2"]]);
  assert.deepEqual(cells(' "a,b" , 2'), [["a,b", "2"]]);
  assert.deepEqual(splitTable('"a\nb",2\n3,4', ","), [{ line: 1, cells: ["a\nb", "2"] }, { line: 3, cells: ["3", "4"] }]);
});

test("empty values stay empty, and empty lines go but count", () => {
  assert.deepEqual(cells("1,,3,"), [["1", "", "3", ""]]);
  assert.deepEqual(cells(""), []);
  assert.deepEqual(splitTable("a\n\n \nb", ","), [{ line: 1, cells: ["a"] }, { line: 4, cells: ["b"] }]);
});

test("bytes are read as the alphabet that they are in", () => {
  assert.equal(textOf(new TextEncoder().encode("\ufeffgrün\r\nx")), "grün\nx");
  assert.equal(textOf(Uint8Array.from([0x67, 0x72, 0xfc, 0x6e])), "grün");
  assert.equal(textOf(Uint8Array.from([0xff, 0xfe, 0x67, 0x00])), "g");
  assert.equal(textOf(Uint8Array.from([0x50, 0x4b, 0x00])), null);
  assert.equal(plainText("a\rb\r\nc"), "a\nb\nc");
});

test("the time for a text grows with its length, whatever its letters", () => {
  for (const text of [`a${'"'.repeat(400_000)}`, " ".repeat(400_000), `${'"'.repeat(399_999)}x`]) {
    const start = performance.now();
    splitTable(text, ",");
    assert.ok(performance.now() - start < 3000);
  }
});
