import assert from "node:assert/strict";
import test from "node:test";
import { encodeFeature, encodeOutcome, Refusal, scaleRow } from "../../../src/expost/page/static/encoding.js";
import { ticks } from "../../../src/expost/page/static/chart.js";
import { constants } from "./given.mjs";

const age = { name: "age", kind: "number", low: 0, high: 100, scale: "symmetric", missing: null };

test("numbers are clipped, and what is no number is refused by its field", () => {
  assert.deepEqual(encodeFeature(age, "25"), [-0.5]);
  assert.deepEqual(encodeFeature(age, "1e9"), [1]);
  assert.throws(() => encodeFeature(age, "0x10"), (problem) => problem instanceof Refusal && problem.field === age);
  assert.throws(() => encodeFeature(age, ""), (problem) => problem.key === "need_answer");
});

test("a record that is too long is scaled into the ball, however long", () => {
  const row = scaleRow([3, 4], 1, true, constants);
  assert.ok(Math.hypot(row[0], row[1]) <= 1 && row[2] === 1);
  assert.ok(scaleRow([1e200, 1e200], 1, false, constants).every((x) => Math.abs(x - Math.SQRT1_2) < 1e-12));
  assert.deepEqual(scaleRow([1e308, 1e308], 1e-300, false, constants), [0, 0]);
});

test("probabilities as outcomes are refused outside their range", () => {
  const outcome = { name: "p", kind: "number", low: null, high: null, least: 0, most: 1 };
  assert.equal(encodeOutcome(outcome, "0.3", null), 0.3);
  assert.throws(
    () => encodeOutcome(outcome, "1.2", null),
    (problem) => problem.key === "need_range" && problem.named.low === 0 && problem.named.high === 1,
  );
});

test("ticks are round numbers inside the range", () => {
  assert.deepEqual(ticks(0, 1).map(({ text }) => text), ["0", "0.25", "0.5", "0.75", "1"]);
  assert.deepEqual(ticks(-1, 1, 4).map(({ text }) => text), ["-1", "-0.5", "0", "0.5", "1"]);
});
