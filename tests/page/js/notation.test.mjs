import assert from "node:assert/strict";
import test from "node:test";
import { speak } from "../../../src/expost/page/static/language.js";
import { converted, markOf, readNumber, shown, unitOf } from "../../../src/expost/page/static/notation.js";
import { texts } from "./given.mjs";

const read = (typed, mark = ".") => readNumber(typed, mark)?.text ?? readNumber(typed, mark);

test("numbers in either notation", () => {
  for (const [typed, text] of [
    ["2.1", "2.1"],
    ["2,1", "2.1"],
    ["0,123", "0.123"],
    ["1,2345", "1.2345"],
    ["1.234,5", "1234.5"],
    ["1,234.5", "1234.5"],
    ["1.234.567", "1234567"],
    ["1 234", "1234"],
    ["1\u202f234,5", "1234.5"],
    ["−3", "-3"],
    ["+.5", "+.5"],
    ["1e-3", "1e-3"],
    ["007", "007"],
  ]) {
    assert.equal(read(typed), text, typed);
    assert.equal(read(typed, ","), text, typed);
  }
  for (const typed of ["", "x", "1..2", "1,2,3", "1.23.4", "1.2,3,4", "--1", "1 2", "0x10", "٤", "1_000"]) {
    assert.equal(readNumber(typed, "."), null, typed);
  }
});

test("a mark that could mean two things is asked about, unless it is the reader's own", () => {
  speak("en", texts.en);
  assert.deepEqual(readNumber("1,234", "."), { small: "1.234", large: "1234" });
  assert.deepEqual(readNumber("1,234", ","), { text: "1.234" });
  assert.deepEqual(readNumber("1.234", "."), { text: "1.234" });
  assert.deepEqual(readNumber("123.456", null), { small: "123.456", large: "123,456" });
});

test("the decimal mark of a table", () => {
  assert.equal(markOf(["47", "2,1", "1,234"], ";"), ",");
  assert.equal(markOf(["47", "2.1"], ";"), ".");
  assert.equal(markOf(["2.1", "2,1"], ";"), null);
  assert.equal(markOf(["1,234"], ";"), ",");
  assert.equal(markOf(["1.234"], ";"), null);
  assert.equal(markOf(["1,234"], ","), ".");
  assert.equal(markOf(["1.234,5"], "\t"), ",");
  assert.equal(markOf(["47"], ","), ".");
});

test("numbers are shown as the language writes them", () => {
  speak("de", texts.de);
  assert.equal(shown(1234.5), "1234,5");
  assert.equal(shown(90000), "90.000");
  assert.equal(shown(1e-9), "1e-9");
  speak("en", texts.en);
  assert.equal(shown(90000), "90,000");
  assert.equal(shown(0.1 + 0.2), "0.3");
});

test("what is shown without marks for thousands is read back as the same number", () => {
  for (const code of ["en", "de"]) {
    speak(code, texts[code]);
    for (let i = 0; i < 500; i += 1) {
      const value = Number(((i * Math.SQRT2) % 1).toPrecision(6)) * 10 ** ((i % 11) - 7);
      const mark = code === "de" ? "," : ".";
      const back = readNumber(shown(value), mark);
      assert.ok(Math.abs(Number(back.text) - value) <= 1e-14 * Math.abs(value), `${value}: ${shown(value)}`);
    }
  }
});

test("units beside numbers", () => {
  const field = { unit: "mg/dL", units: { "µmol/L": 0.0113 } };
  assert.deepEqual(unitOf(field, "186 µmol/L"), ["186", 0.0113]);
  assert.deepEqual(unitOf(field, "186μmol/l"), ["186", 0.0113]);
  assert.deepEqual(unitOf(field, "2.1 mg / dL"), ["2.1", 1]);
  assert.deepEqual(unitOf(field, "2.1 g/L"), ["2.1 g/L", 1]);
  assert.deepEqual(unitOf({}, "2.1"), ["2.1", 1]);
  assert.equal(converted("2.10", 1), "2.10");
  assert.equal(converted("186.4", 0.0113), "2.10632");
});
