// Losses as counts and figures. Rounding never makes a promise stronger.

import { say, sayCount, titleOf } from "./language.js";
import { decimalMark, percentText, shown } from "./notation.js";

// How sure someone can be afterwards who thought it 50:50 before.
export const sureness = (loss) => 1 / (1 + Math.exp(-loss));

// How many of 100 guesses can be right, 50 of them by luck: rounded up, and at least 51.
export const rightOfHundred = (loss) => Math.max(51, Math.ceil(100 / (1 + Math.exp(-loss))));

export function rounded(value, up = true) {
  if (value === 0) return "0";
  if (value === Infinity) return "∞";
  const digits = 2 - Math.floor(Math.log10(Math.abs(value)));
  const unit = 10 ** Math.abs(digits);
  const scaled = digits >= 0 ? value * unit : value / unit;
  const whole = up ? Math.ceil(scaled - 1e-9) : Math.floor(scaled + 1e-9);
  if (digits < 0) return shown(whole * unit);
  const text = digits > 6 ? (whole / unit).toExponential(2) : (whole / unit).toFixed(digits);
  return text.replace(".", decimalMark());
}

// A probability of at least one half, as a percentage with more digits the closer it is to certainty.
export function percent(probability) {
  const left = 100 * (1 - probability);
  if (left < 1e-6) return percentText("100");
  const digits = left >= 10 ? 1 : Math.max(1, -Math.floor(Math.log10(left)));
  const unit = 10 ** digits;
  return percentText((Math.ceil(100 * probability * unit - 1e-9) / unit).toFixed(digits).replace(".", decimalMark()));
}

export function factor(loss) {
  const times = Math.exp(loss);
  return times > 1e6 ? say("experts.million") : rounded(times);
}

// How many cases in a million a small probability is, always of a million.
export function rare(delta) {
  const cases = Math.ceil(1e6 * delta - 1e-9);
  return 1e6 * delta < 1 - 1e-9 ? say("answer.rare_less") : sayCount("answer.rare", cases);
}

// Of how many repetitions how many are right, in whole numbers: 95 of 100, 999 of 1000.
export function timesRight(confidence) {
  const left = 1 - confidence;
  const times = Math.max(100, 10 ** Math.round(-Math.log10(left)));
  return { times: shown(times), right: shown(times - Math.round(times * left)) };
}

export const KINDS = ["logistic", "softmax", "smoothed_hinge", "pseudo_huber", "squared", "smoothed_pinball", "bounded_poisson", "bounded_gamma"];
export const REPORTS = ["independent", "leverage", "dependent", "adaptive"];

// What to call a publication.
export const titleOfModel = (fields, { texts, outcome }) =>
  texts.title ?? say("timeline.model_of", { outcome: titleOf(fields[outcome]) });
