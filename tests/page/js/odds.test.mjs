import assert from "node:assert/strict";
import test from "node:test";
import {
  chance,
  comparison,
  factor,
  grouped,
  oddsSentence,
  percent,
  promise,
  rounded,
  sureness,
} from "../../../src/expost/page/static/odds.js";

test("an upper figure is rounded up and a lower one down", () => {
  assert.equal(rounded(0.12341), "0.124");
  assert.equal(rounded(0.12349, false), "0.123");
  assert.equal(rounded(0.1), "0.100");
  assert.equal(rounded(0), "0");
  assert.equal(rounded(1234567), "1,240,000");
  assert.equal(rounded(1.0001e-9), "1.01e-9");
  assert.equal(rounded(Infinity), "∞");
});

test("rounding never promises more", () => {
  for (let i = 0; i < 2000; i += 1) {
    const value = Math.exp(30 * ((i * Math.SQRT2) % 1) - 15);
    const [up, down] = [rounded(value), rounded(value, false)].map((text) => Number(text.replaceAll(",", "")));
    assert.ok(up >= value * (1 - 1e-9) && down <= value * (1 + 1e-9), String(value));
    assert.ok(up <= value * 1.011 && down >= value * 0.989, String(value));
  }
});

test("percentages show more digits close to certainty, and never less than the truth", () => {
  assert.equal(percent(0.5), "50%");
  assert.equal(percent(0.5401), "55%");
  assert.equal(percent(0.953), "95.3%");
  assert.equal(percent(0.99932), "99.94%");
  assert.equal(percent(1), "100%");
  for (let loss = 0; loss < 12; loss += 0.01) assert.ok(parseFloat(percent(sureness(loss))) >= 100 * sureness(loss) - 1e-6);
});

test("sentences", () => {
  assert.match(oddsSentence(0.16, false), /50:50 .* this publication, be at most 54% sure/);
  assert.match(oddsSentence(0.16, true), /all of these publications/);
  assert.match(comparison(0.1, 1), /at most 10% of the worst case/);
  assert.match(comparison(2, 1), /cannot promise you more/);
  assert.match(comparison(2, null), /no worst case/);
  assert.match(promise({ epsilon: 1, delta: 1e-6 }, false), /^The promise to everyone: .*74% sure.*1 in 1,000,000/);
  assert.match(promise({ epsilon: 1, delta: 1e-6 }, true), /^With secret noise/);
  assert.match(promise({ epsilon: null, delta: 1e-6 }, false), /No worst case exists/);
});

test("odds and chances", () => {
  assert.equal(factor(Math.log(2)), "2.00");
  assert.equal(factor(100), "more than a million");
  assert.equal(chance(1e-6), "1 in 1,000,000");
  assert.equal(grouped(1234), "1,234");
});
