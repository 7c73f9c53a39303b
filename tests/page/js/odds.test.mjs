import assert from "node:assert/strict";
import test from "node:test";
import { speak } from "../../../src/expost/page/static/language.js";
import { factor, percent, rare, rightOfHundred, rounded, sureness, timesRight } from "../../../src/expost/page/static/odds.js";
import { texts } from "./given.mjs";

test("of 100 guesses at least 51 can be right, and counts are rounded up", () => {
  assert.equal(rightOfHundred(0), 51);
  assert.equal(rightOfHundred(0.1), 53);
  assert.equal(rightOfHundred(1), 74);
  assert.equal(rightOfHundred(50), 100);
  assert.equal(rightOfHundred(Infinity), 100);
  for (let loss = 0; loss < 12; loss += 0.01) {
    const right = rightOfHundred(loss);
    assert.ok(right >= 100 * sureness(loss) && (right < 100 * sureness(loss) + 1 || right === 51));
  }
});

test("an upper figure is rounded up and a lower one down", () => {
  speak("en", texts.en);
  assert.equal(rounded(0.12341), "0.124");
  assert.equal(rounded(0.12349, false), "0.123");
  assert.equal(rounded(0.1), "0.100");
  assert.equal(rounded(0), "0");
  assert.equal(rounded(1234567), "1,240,000");
  assert.equal(rounded(1.0001e-9), "1.01e-9");
  assert.equal(rounded(Infinity), "∞");
  speak("de", texts.de);
  assert.equal(rounded(0.12341), "0,124");
  assert.equal(rounded(1234567), "1.240.000");
});

test("rounding never promises more", () => {
  speak("en", texts.en);
  for (let i = 0; i < 2000; i += 1) {
    const value = Math.exp(30 * ((i * Math.SQRT2) % 1) - 15);
    const [up, down] = [rounded(value), rounded(value, false)].map((text) => Number(text.replaceAll(",", "")));
    assert.ok(up >= value * (1 - 1e-9) && down <= value * (1 + 1e-9), String(value));
    assert.ok(up <= value * 1.011 && down >= value * 0.989, String(value));
  }
});

test("percentages show more digits close to certainty, and never less than the truth", () => {
  assert.equal(percent(0.5401), "54.1%");
  assert.equal(percent(0.953), "95.3%");
  assert.equal(percent(0.99932), "99.94%");
  assert.equal(percent(1), "100%");
  for (let loss = 0; loss < 12; loss += 0.01) assert.ok(parseFloat(percent(sureness(loss))) >= 100 * sureness(loss) - 1e-6);
});

test("rare cases are always of a million", () => {
  assert.equal(rare(1e-6), "about 1 case in a million");
  assert.equal(rare(1.2e-6), "about 2 cases in a million");
  assert.equal(rare(1e-5), "about 10 cases in a million");
  assert.equal(rare(1e-9), "less than 1 case in a million");
});

test("confidence as repetitions, and factors", () => {
  assert.deepEqual(timesRight(0.9), { times: "100", right: "90" });
  assert.deepEqual(timesRight(0.95), { times: "100", right: "95" });
  assert.deepEqual(timesRight(0.999), { times: "1000", right: "999" });
  assert.deepEqual(timesRight(0.999999), { times: "1,000,000", right: "999,999" });
  assert.equal(factor(Math.log(2)), "2.00");
  assert.equal(factor(100), "more than a million");
});
