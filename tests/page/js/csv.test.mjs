import assert from "node:assert/strict";
import test from "node:test";
import { splitLine } from "../../../src/expost/page/static/csv.js";

test("commas, semicolons and tabs separate, and blanks around values go", () => {
  assert.deepEqual(splitLine("1, 2 ,north"), ["1", "2", "north"]);
  assert.deepEqual(splitLine("1;2;north"), ["1", "2", "north"]);
  assert.deepEqual(splitLine("1\t2\tnorth"), ["1", "2", "north"]);
});

test("quotes keep separators, blanks and doubled quotes", () => {
  assert.deepEqual(splitLine('1,"south, old"," x "'), ["1", "south, old", " x "]);
  assert.deepEqual(splitLine('"the ""east""",2'), ['the "east"', "2"]);
  assert.deepEqual(splitLine(' "a,b" , 2'), ["a,b", "2"]);
});

test("empty values stay empty", () => {
  assert.deepEqual(splitLine("1,,3,"), ["1", "", "3", ""]);
  assert.deepEqual(splitLine(""), [""]);
});
