// What the page shows at a moment: whose answers, their totals, and the state of the answer.

import { answerTitle } from "./control.js";
import { UNKNOWN } from "./encoding.js";
import { readingsOf } from "./figures.js";
import { say, titleOf } from "./language.js";
import { rightOfHundred } from "./odds.js";
import { factsOfPerson } from "./persons.js";
import { largestTotal, searched, worthAnswering } from "./ranges.js";
import { promised, together, wallet } from "./together.js";

// So many values of the invented person are named.
const MOST_VALUES = 3;
// After so many different sets of answers the page speaks up.
const MOST_TRIES = 3;

// Nobody has 10.5 rooms: between whole numbers that are not close, the middle is one.
const middle = (low, high) => {
  const half = low + (high - low) / 2;
  return String(Number.isInteger(low) && Number.isInteger(high) && high - low > 2 ? Math.floor(half) : half);
};

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
  const words = named.map((field) => say("page.entry", { title: titleOf(field), text: answerTitle(numbers, field, exampleOf(numbers, field)) }));
  return words.join(", ");
}

const sameCount = (a, b) => rightOfHundred(a) === rightOfHundred(b);

// Totals over unknown answers take a moment, so the last ones are kept.
const kept = new Map();
const MOST_KEPT = 32;

function remembered(kind, numbers, answers, options, find) {
  const key = JSON.stringify([kind, numbers.publications.map(({ sha256 }) => sha256), answers, options]);
  if (!kept.has(key)) {
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(key, find());
  }
  return kept.get(key);
}

const largest = (numbers, answers, options) =>
  remembered("largest", numbers, answers, options, () => largestTotal(numbers, answers, options, sameCount));

// The open answer that can lower the limit most, where that shows: its title, and how low.
function worth(numbers, answers, options, total) {
  const found = remembered("worth", numbers, answers, options, () => worthAnswering(numbers, answers, options, total));
  if (found === null || sameCount(found[1], total)) return null;
  const field = numbers.fields[found[0]];
  return { title: field.question ?? titleOf(field), n: rightOfHundred(found[1]) };
}

// The total of a person by the answers for her rows, all of which can be read, and how many she has forgotten; null
// where too many answers are open.
export function totalOf(numbers, rows, options, forgotten = 0) {
  const alone = rows.length + forgotten === 1;
  if (alone && searched(numbers, rows[0]).length) return largest(numbers, rows[0], options);
  return together(numbers, numbers.publications.map((publication) => factsOfPerson(numbers, publication, rows, forgotten)), options);
}

// What holds for a member however the publications were chosen; null while it is not known, undefined where nobody has it.
export function walletOf(numbers, rows, options) {
  if (numbers.publications.some(({ plan }) => plan.unit === "person")) return undefined;
  if (rows === null || searched(numbers, rows[0]).length) return options.member === false || options.every ? undefined : null;
  return wallet(numbers, numbers.publications.map((publication) => factsOfPerson(numbers, publication, rows)), options);
}

// The figures of each publication on its own; only a total where values of open answers were searched.
function readingsFor(numbers, rows, forgotten, options, partly) {
  if (!partly) return readingsOf(numbers, rows, forgotten, options);
  return numbers.publications.map((publication) => ({
    total: totalOf({ ...numbers, publications: [publication] }, rows, options),
  }));
}

// Which rows are read, and how many more there are. A row of several with an open answer counts as forgotten: the limit
// then holds whatever it was. That says nothing of use for someone of a household, so there is no answer.
function readable({ rows, places, forgotten }, ofPerson) {
  if (rows.length + forgotten < 2) return { rows, places, forgotten };
  const known = rows.flatMap((answers, i) => (answers.includes(UNKNOWN) ? [] : [i]));
  if (known.length === 0 || (known.length < rows.length && !ofPerson)) return { rows: null, places, forgotten: 0 };
  const kept = (list) => known.map((i) => list[i]);
  return { rows: kept(rows), places: kept(places), forgotten: forgotten + rows.length - known.length };
}

// Which answers are shown, and what the answer's border says.
function stateOf({ missing, wrong, started, uncounted }, settled, refused) {
  if (refused !== null) return "refused";
  if (uncounted) return "uncounted";
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
  const count = state === "own" ? filled.rows.length + filled.forgotten : 1;
  let [rows, places, forgotten] = [null, [0], 0];
  if (example) rows = [numbers.fields.map((field) => exampleOf(numbers, field))];
  if (state === "own") ({ rows, places, forgotten } = readable(filled, form.ofPerson));
  const total = rows === null ? null : totalOf(numbers, rows, options, forgotten);
  if (state === "own" && total === null) [state, rows] = ["crowded", null];
  const partly = rows !== null && count === 1 && searched(numbers, rows[0]).length > 0;
  if (state === "own" && settled && !partly) tries.add(JSON.stringify([rows, forgotten]));
  const open = (state === "own" || state === "crowded") && count === 1 ? filled.open.length : 0;
  return {
    state,
    rows,
    places,
    records: count,
    forgotten,
    ofPerson: form.ofPerson,
    words: form.words,
    total,
    wallet: count > 1 ? undefined : walletOf(numbers, rows, options),
    readings: rows === null ? null : readingsFor(numbers, rows, forgotten, options, partly),
    promise: promised(numbers, count),
    insecure: publications.some(({ insecure }) => insecure !== null),
    lacks: publications.some(({ plan }) => plan.epsilon === null),
    count: publications.length,
    values: exampleValues(numbers),
    title: form.titles(filled.wrong)[0],
    done: filled.done,
    all: filled.all,
    clipped: form.titles(filled.clipped),
    open,
    partly,
    worth: state === "own" && partly && settled ? worth(numbers, rows[0], options, total) : null,
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
