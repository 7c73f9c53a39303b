// Encodes a record as expost.data.features, expost.data.encoding, expost.data.weights and expost.data.design do.
// Answers are texts, one per field of the form. An empty one is missing, and so is the number "nan". UNKNOWN is read
// for a weight only; ranges.js fills in the others.

// The answer "I don't know".
export const UNKNOWN = null;

// Numbers by the rule of expost._common.validation.numeral: ASCII digits, a point, an exponent.
const NUMBER = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?$/i;
const NOT_A_NUMBER = /^[+-]?nan$/i;
// What Python strips around a text, which differs from what JavaScript does.
const BLANKS = /^(?:[^\S\ufeff]|[\x85\x1c-\x1f])+|(?:[^\S\ufeff]|[\x85\x1c-\x1f])+$/g;

// The error for an answer that cannot be read: its field, the key of a sentence, and what the sentence names.
export class Refusal extends Error {
  constructor(field, key, named = {}) {
    super(`${field.name}: ${key}`);
    this.field = field;
    this.key = key;
    this.named = named;
  }
}

const clip = (value, low, high) => Math.min(Math.max(value, low), high);

const bare = (text) => text.replace(BLANKS, "");

// The number that a text spells, or NaN.
export const numeral = (text) => (NUMBER.test(bare(text)) ? Number(bare(text)) : NaN);

// Dates by the rule of expost.data.dates: ISO 8601, where one digit may do for a month or a day.
const DATE = /^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[ T][0-9:.+Z-]+)?$/;

// The days from 1 January 1970 to the date that a text spells, or NaN.
export function daysOf(text) {
  const found = DATE.exec(bare(text));
  if (found === null) return NaN;
  const [year, month, day] = found.slice(1).map(Number);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const exists = year > 0 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return exists ? date.getTime() / 86_400_000 : NaN;
}

// The place of a date in a cycle, as the page asks for it: a month or a weekday, from 1.
export const placeInCycle = ({ cycle }, date) => String(cycle === "month" ? Number(date.slice(5, 7)) : ((((daysOf(date) + 3) % 7) + 7) % 7) + 1);

// The date of a number of days, as ISO 8601 has it.
export const dateOf = (days) => new Date(Math.round(days) * 86_400_000).toISOString().slice(0, 10);

const isMissing = (field, text) =>
  text === "" || (field.kind === "number" && NOT_A_NUMBER.test(bare(text)));

// The number of an answer. A date counts days; charts give days themselves.
function number(field, text) {
  const days = field.date ? daysOf(text) : NaN;
  const value = Number.isNaN(days) ? numeral(text) : days;
  if (!Number.isFinite(value)) throw new Refusal(field, "need_number");
  return value;
}

function share(field, value) {
  return (clip(value, field.low, field.high) - field.low) / (field.high - field.low);
}

// Yes or no as the page writes them: the first word of each list.
export const spelled = ({ yes, no }, value) => (value ? yes[0] : no[0]);

// The values that an answer can have, in the order in which they are offered. The codes of a time are odd where
// the event happened: first when it did, and then for how long it did not, the longest time first.
export const valuesOf = ({ constants: { words } }, { asked, categories, classes }) =>
  asked === "time"
    ? [...classes].sort((a, b) => (b % 2) - (a % 2) || (a % 2 ? a - b : b - a))
    : (categories ?? classes ?? [true, false].map((value) => spelled(words, value)));

// Reads every accepted spelling as the page's yes or no; null for anything else.
export function yesOrNo(text, words) {
  const word = bare(text).toLowerCase();
  if (words.yes.includes(word)) return spelled(words, true);
  return words.no.includes(word) ? spelled(words, false) : null;
}

// Calls `use` with the answer, or returns the encoding of the declared default.
function answered(field, text, words, use) {
  if (!isMissing(field, text)) return use(text);
  if (field.missing === null || field.missing === undefined) {
    throw new Refusal(field, "need_answer");
  }
  return use(typeof field.missing === "boolean" ? spelled(words, field.missing) : String(field.missing));
}

// The nodes of a curve; none where a number has no knots.
export const nodesOf = ({ low, high, knots }) => (knots ? [low, ...knots, high] : []);

// The columns of a curve at a number: hats, or ramps of a monotone effect.
function curve(field, value) {
  const nodes = nodesOf(field);
  const ramps = nodes.slice(1).map((end, i) => clip((clip(value, field.low, field.high) - nodes[i]) / (end - nodes[i]), 0, 1));
  if (typeof field.effect === "string") return ramps.map((ramp) => (1 / Math.sqrt(ramps.length)) * ramp);
  return nodes.map((_, i) => (i ? ramps[i - 1] : 1) - (ramps[i] ?? 0));
}

const COLUMNS = {
  number(field, text) {
    const value = number(field, text);
    if (field.low === null) return [value];
    if (field.knots) return curve(field, value);
    return [field.scale === "symmetric" ? 2 * share(field, value) - 1 : share(field, value)];
  },
  category(field, text) {
    const place = field.categories.indexOf(text);
    if (place < 0) throw new Refusal(field, "need_choice");
    if (field.effect !== "monotone") return field.categories.map((_, i) => (i === place ? 1 : 0));
    // A column for each step, all of them together of length 1.
    const steps = field.categories.length - 1;
    return Array.from({ length: steps }, (_, i) => (i < place ? 1 / Math.sqrt(steps) : 0));
  },
  cycle(field, text) {
    const place = field.categories.indexOf(text);
    if (place < 0) throw new Refusal(field, "need_choice");
    return field.circle[place];
  },
  yes_no(field, text, words) {
    const answer = yesOrNo(text, words);
    if (answer === null) throw new Refusal(field, "need_yes_no");
    return [answer === spelled(words, true) ? 1 : 0];
  },
};

export function encodeFeature(field, text, words) {
  const columns = answered(field, text, words, (answer) => COLUMNS[field.kind](field, answer, words));
  return field.recorded ? [...columns, isMissing(field, text) ? 1 : 0] : columns;
}

export function encodeOutcome(field, text, labels) {
  return answered(field, text, null, (answer) => {
    if (field.kind === "classes") {
      const place = field.classes.indexOf(answer);
      if (place < 0) throw new Refusal(field, "need_choice");
      return labels[place];
    }
    const value = number(field, answer);
    if ((field.least !== null && value < field.least) || (field.most !== null && value > field.most)) {
      throw new Refusal(field, "need_range", { low: field.least, high: field.most });
    }
    if (field.typical) return clip(value, field.low, field.high) / field.typical;
    return field.low === null ? value : 2 * share(field, value) - 1;
  });
}

// The code of a time and of whether it happened, as TimeLabel.coded of expost.data.labels has it.
export function timeCode({ periods, length: long }, time, happened) {
  const [exact, whole] = [time / long, Math.round(time / long)];
  const counted = Math.abs(exact - whole) <= 1e-9 * Math.max(whole, 1) ? whole : exact;
  const event = happened && counted <= periods;
  const rows = event ? Math.max(Math.ceil(counted), 1) : Math.floor(counted);
  return String(2 * Math.min(rows, periods) + Number(event));
}

export function length(row) {
  const direct = Math.sqrt(row.reduce((sum, x) => sum + x * x, 0));
  if (Number.isFinite(direct)) return direct;
  // The squares overflowed: factor the largest entry out.
  const largest = Math.max(1, ...row.map(Math.abs));
  return largest * Math.sqrt(row.reduce((sum, x) => sum + (x / largest) ** 2, 0));
}

// What a row of this length is multiplied by to lie inside the ball of radius `norm`.
export function shrinkage(long, columns, norm, intercept, { roundings, smallest_scale: smallest }) {
  const margin = 1 + (columns + (intercept ? 1 : 0) + roundings) * Number.EPSILON;
  const ratio = norm / (long * margin);
  return Math.min(1, ratio < smallest ? 0 : ratio);
}

// The row inside the ball of radius `norm`, with a constant 1 for the intercept.
export function scaleRow(row, norm, intercept, constants) {
  const scale = shrinkage(length(row), row.length, norm, intercept, constants);
  const scaled = scale === 1 ? row.slice() : row.map((x) => x * scale);
  return intercept ? [...scaled, 1] : scaled;
}

// What one row of a person with so many weighs, before weights of its own.
export const shareOf = ({ plan, rows_per_person: least }, count) =>
  plan.unit === "person" ? 1 / Math.max(count, least ?? 1) : 1;

// The weight of a record: what the person gives, times that of her class and her row's share of her. One that she does
// not know counts as the largest, and `atMost` says so.
export function weightOf({ fields }, publication, answers, label, count) {
  const { weight: place, class_weight: byClass, labels } = publication;
  const atMost = place !== null && answers[place] === UNKNOWN;
  const given = place === null ? 1 : atMost ? fields[place].most : encodeOutcome(fields[place], answers[place], null);
  const own = given * shareOf(publication, count);
  return { weight: byClass === null ? own : own * byClass[labels.indexOf(label)], atMost };
}

// The columns of all features, and of the products that the publication has of two of them.
export const joined = ({ products }, blocks, times) => [
  ...blocks.flat(),
  ...products.flatMap(([left, right]) => blocks[left].flatMap((a) => blocks[right].map((b) => times(a, b)))),
];

// The encoded row before it is scaled, the label and the weight of a person's answers; `count` is how many rows she has.
export function encodeWhole(numbers, publication, answers, count = 1) {
  const { fields, constants } = numbers;
  const blocks = publication.features.map((place) => encodeFeature(fields[place], answers[place], constants.words));
  const row = joined(publication, blocks, (a, b) => a * b);
  const place = publication.outcome;
  const label = encodeOutcome(fields[place], answers[place], publication.labels);
  return { row, label, ...weightOf(numbers, publication, answers, label, count) };
}

// The same, with the row as the mechanism saw it.
export function encode(numbers, publication, answers, count = 1) {
  const { row, ...others } = encodeWhole(numbers, publication, answers, count);
  const { norm, intercept, places } = publication; // rows of a record have intercepts of their own
  return { row: scaleRow(row, norm, intercept && !places, numbers.constants), ...others };
}
