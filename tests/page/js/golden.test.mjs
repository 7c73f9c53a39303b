// The page's scripts agree with the golden vectors; tests/golden/test_golden.py asks the same of the library.
import assert from "node:assert/strict";
import test from "node:test";
import { read } from "../../../src/expost/page/static/bounds.js";
import { encodeFeature, encodeOutcome, Refusal } from "../../../src/expost/page/static/encoding.js";
import { derivatives } from "../../../src/expost/page/static/losses.js";
import { softmaxAt } from "../../../src/expost/page/static/softmax.js";
import { constants, golden, numbers } from "./given.mjs";

// Below the smallest double that has all its digits, numbers are this far apart.
const GRAIN = Number.MIN_VALUE;
// The squares of numbers below this are lost.
const UNDERFLOW = 1e-150;

// Equal infinities differ by NaN, so equality is asked first.
const close = (ours, wanted, within) => ours === wanted || Math.abs(ours - wanted) <= within;

for (const { loss, points } of golden("losses")) {
  test(`slope and curvature: ${Object.values(loss).join(" ")}`, () => {
    for (const [eta, y, ...wanted] of points) {
      derivatives(loss, eta, y).forEach((ours, i) => {
        assert.ok(close(ours, wanted[i], 1e-12 * Math.abs(wanted[i]) + GRAIN), `${[eta, y]}: ${ours}, not ${wanted[i]}`);
      });
    }
  });
}

for (const { loss, scales, points } of golden("softmax")) {
  test(`terms of several classes: ${Object.values(loss).join(" ")}`, () => {
    for (const [predictors, label, wanted] of points) {
      const at = softmaxAt(loss, predictors, label);
      const ours = [at.slope, Math.hypot(...at.gradient), at.curvatureNorm, ...scales.map(at.logDeterminant)];
      // Scores of 1e4 are rounded, and an exponential turns that into a relative error.
      const within = 1e-12 * (1 + Math.max(...predictors.map(Math.abs)));
      ours.forEach((term, i) => {
        assert.ok(close(term, wanted[i], within * Math.abs(wanted[i]) + UNDERFLOW), `${predictors}: ${term}, not ${wanted[i]}`);
      });
    }
  });
}

function orRefused(encode) {
  try {
    return encode();
  } catch (problem) {
    if (problem instanceof Refusal) return null;
    throw problem;
  }
}

// Minus zero counts as zero.
const plain = (value) => (Array.isArray(value) ? value.map(plain) : value === 0 ? 0 : value);

for (const [name, { features, outcome }] of Object.entries(golden("encodings"))) {
  const { fields, publications } = numbers[name];
  const [publication] = publications;
  test(`features and outcome are encoded and refused to the bit: ${name}`, () => {
    for (const [feature, cells] of Object.entries(features)) {
      const field = fields.find((one) => one.role === "feature" && one.name === feature);
      for (const [text, wanted] of cells) {
        const ours = orRefused(() => encodeFeature(field, text, constants.words));
        assert.deepEqual(plain(ours), plain(wanted), `${feature}: ${JSON.stringify(text)}`);
      }
    }
    for (const [text, wanted] of outcome) {
      const ours = orRefused(() => encodeOutcome(fields[publication.outcome], text, publication.labels));
      assert.deepEqual(plain(ours), plain(wanted), `outcome: ${JSON.stringify(text)}`);
    }
  });
}

for (const [name, cases] of Object.entries(golden("bounds"))) {
  test(`bounds: ${name}`, () => {
    for (const { answers, options, figures } of cases) {
      const confidence = numbers[name].confidences.indexOf(options.confidence);
      const ours = read(numbers[name], numbers[name].publications[0], answers, { ...options, confidence });
      const reach = Number.isFinite(figures[1]) ? figures[1] : 0;
      [ours.lower, ours.upper, ours.reportCost, ours.total].forEach((figure, i) => {
        // The lower end is a difference of terms which may cancel, so it is measured against the upper end.
        const within = 1e-9 * (i === 0 ? reach : figures[i]) + UNDERFLOW;
        assert.ok(close(figure, figures[i], within), `${JSON.stringify([answers, options])}: ${figure}, not ${figures[i]}`);
      });
    }
  });
}
