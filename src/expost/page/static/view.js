// What the page shows at a moment: whose answers, their totals, and the state of the answer.

import { answerTitle } from "./control.js";
import { UNKNOWN } from "./encoding.js";
import { readingsOf } from "./figures.js";
import { titleOf } from "./language.js";
import { rightOfHundred } from "./odds.js";
import { largestTotal, searched } from "./ranges.js";
import { factsOf } from "./records.js";
import { promised, together } from "./together.js";

// So many values of the invented person are named.
const MOST_VALUES = 4;
// After so many different sets of answers the page speaks up.
const MOST_TRIES = 3;

const middle = (low, high) => String(low + (high - low) / 2);

// The answer of the invented person: declared, else the middle of the range or the first value.
export function exampleOf({ constants }, field) {
  if (field.role === "weight") return UNKNOWN;
  const { yes, no } = constants.words;
  if (field.kind === "yes_no") return (field.example ? yes : no)[0];
  if (field.example !== undefined) return String(field.example);
  if (field.kind !== "number") return (field.categories ?? field.classes)[0];
  if (field.low !== null) return middle(field.low, field.high);
  return field.least !== null && field.most !== null && field.least !== undefined ? middle(field.least, field.most) : "0";
}

// Some values of the invented person in words.
export function exampleValues(numbers) {
  const named = numbers.fields.filter(({ role }) => role === "feature").slice(0, MOST_VALUES);
  const words = named.map((field) => `${titleOf(field)}: ${answerTitle(numbers, field, exampleOf(numbers, field))}`);
  return words.join(", ");
}

const sameCount = (a, b) => rightOfHundred(a) === rightOfHundred(b);

// Totals over unknown answers take a moment, so the last ones are kept.
const kept = new Map();
const MOST_KEPT = 32;

function largest(numbers, answers, options) {
  const key = JSON.stringify([numbers.publications.map(({ sha256 }) => sha256), answers, options]);
  if (!kept.has(key)) {
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(key, largestTotal(numbers, answers, options, sameCount));
  }
  return kept.get(key);
}

// The total of answers that can all be read; null where too many are open.
export function totalOf(numbers, answers, options) {
  if (searched(numbers, answers).length) return largest(numbers, answers, options);
  return together(numbers, numbers.publications.map((publication) => factsOf(numbers, publication, answers)), options);
}

// The figures of each publication on its own; only a total where values of open answers were searched.
function readingsFor(numbers, answers, options) {
  if (!searched(numbers, answers).length) return readingsOf(numbers, answers, options);
  return numbers.publications.map((publication) => ({
    total: totalOf({ ...numbers, publications: [publication] }, answers, options),
  }));
}

// Which answers are shown, and what the answer's border says.
function stateOf({ missing, wrong, started }, settled, refused) {
  if (refused !== null) return "refused";
  if (wrong.some((place) => settled.has(place)) || (wrong.length > 0 && missing.length === 0)) return "waiting";
  if (missing.length === 0 && wrong.length === 0) return "own";
  return started ? "partial" : "example";
}

// Everything that is shown. `tries` collects the different sets of answers that were read once she had typed them.
export function viewOf(numbers, form, options, { refused, tries, line, settled }) {
  const { publications } = numbers;
  const filled = form.state;
  let state = stateOf(filled, form.left, refused);
  const example = state === "example" || state === "partial";
  let answers = null;
  if (example) answers = numbers.fields.map((field) => exampleOf(numbers, field));
  if (state === "own") answers = filled.answers;
  let total = answers === null ? null : totalOf(numbers, answers, options);
  if (answers !== null && total === null) [state, answers] = ["crowded", null];
  const partly = answers !== null && searched(numbers, answers).length > 0;
  if (state === "own" && settled && !partly) tries.add(JSON.stringify(answers));
  const open = state === "own" || state === "crowded" ? filled.open.length : 0;
  return {
    state,
    answers,
    total,
    readings: answers === null ? null : readingsFor(numbers, answers, options),
    promise: promised(publications),
    insecure: publications.some(({ insecure }) => insecure !== null),
    count: publications.length,
    values: exampleValues(numbers),
    title: form.titles(filled.wrong)[0],
    done: filled.done,
    all: filled.all,
    clipped: form.titles(filled.clipped),
    open,
    partly,
    crowded: state === "crowded",
    tried: tries.size > MOST_TRIES && !options.every,
    line,
    reason: refused,
    wrong: filled.wrong,
    missing: filled.missing,
    opened: filled.open,
    ...options,
  };
}
