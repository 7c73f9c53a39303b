// Answers with the bound over unknown answers, and with the largest total that trying values finds.
import { readFileSync } from "node:fs";
import { spelled } from "../../../src/expost/page/static/encoding.js";
import { unpacked } from "../../../src/expost/page/static/numbers.js";
import { factsOfPerson } from "../../../src/expost/page/static/persons.js";
import { largestTotal, mayBeUnknown } from "../../../src/expost/page/static/ranges.js";
import { together } from "../../../src/expost/page/static/together.js";

const { numbers: packed, asked, tries, pages } = JSON.parse(readFileSync(0, "utf8"));

// A reproducible stream of numbers in [0, 1).
let state = 12345;
const draw = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
};

// Near the ends, at the ends and between them.
function tried(numbers, field) {
  if (field.recorded && draw() < 0.2) return "";
  if (field.kind === "number") {
    const share = [0, 1, draw(), draw() ** 8, 1 - draw() ** 8][Math.floor(5 * draw())];
    return String(field.low + share * (field.high - field.low));
  }
  const values = field.categories ?? field.classes ?? [true, false].map((value) => spelled(numbers.constants.words, value));
  return values[Math.floor(values.length * draw())];
}

const results = asked.map(([page, answers, options]) => {
  const numbers = unpacked(packed[page]);
  const total = (filled) =>
    together(numbers, numbers.publications.map((publication) => factsOfPerson(numbers, publication, [filled])), options);
  let largest = 0;
  for (let i = 0; i < tries; i += 1) {
    largest = Math.max(largest, total(answers.map((answer, place) => answer ?? tried(numbers, numbers.fields[place]))));
  }
  return [largestTotal(numbers, answers, options), largest];
});
const offered = packed.map((numbers) => numbers.fields.map((field) => mayBeUnknown(field)));
process.stdout.write(JSON.stringify({ results, offered, pages }));
