// Her own table as answers: which column is which question, and what each cell says.

import { readDate } from "./calendar.js";
import { answerTitle, dateTitle, sampleNumber } from "./control.js";
import { placeInCycle, Refusal, timeCode, UNKNOWN, yesOrNo } from "./encoding.js";
import { say, titleOf } from "./language.js";
import { converted, markOf, readNumber, shown, unitOf } from "./notation.js";
import { check } from "./ranges.js";
import { plainText, SEPARATORS, splitTable } from "./table.js";

export const MOST_ROWS = 500;
// The most bytes of a file, and letters of a text, that are read.
export const MOST_BYTES = 1e6;
// Longer texts are no names, units or categories: a publication has none that are longer.
const MOST_LETTERS = 300;

// A file that cannot be used; its message is a sentence for the person.
export class FileRefusal extends Error {}

const refuse = (key, named) => {
  throw new FileRefusal(say(`file.${key}`, named));
};

// Names are compared without case, blanks and punctuation.
const folded = (name) => name.toLowerCase().normalize("NFKC").replace(/[^\p{L}\p{N}]+/gu, "");

// Names that a field goes by.
export const namesOf = (field) => [field.name, field.title, ...(field.aliases ?? [])].filter(Boolean);

// A time has a second column, which says whether it happened.
export const eventOf = (field) => (field.asked === "time" ? [field.event] : []);

// The part of a column's name before a unit in brackets, and the unit.
function unitInName(name) {
  const found = /^(.*?)\s*[([]([^)\]]+)[)\]]\s*$/.exec(name);
  return found ? [found[1], found[2]] : [name, null];
}

// What a column is, by the names that fields go by; the first field that has a name keeps it.
function placesOf(fields, spelled) {
  const named = fields.flatMap((field, place) => [
    ...eventOf(field).map((name) => [spelled(name), { place, event: true }]),
    ...namesOf(field).map((name) => [spelled(name), { place, event: false }]),
  ]);
  return new Map(named.filter(([name]) => name !== "").reverse());
}

// The field that a column's name means, and what to multiply its numbers by; null for no field.
function fieldOf(fields, exact, alike, name) {
  if (name.length > MOST_LETTERS) return null;
  const [bare, unit] = unitInName(name);
  for (const candidate of [name, bare]) {
    const found = exact.get(candidate) ?? alike.get(folded(candidate));
    if (found === undefined) continue;
    if (candidate === name) return { ...found, factor: 1 };
    const [number, factor] = unitOf(fields[found.place], `1 ${unit}`);
    // In a unit that nobody declared, the numbers mean something else.
    return fields[found.place].unit && number !== "1" ? null : { ...found, factor };
  }
  return null;
}

// The table under the separator that fits best: most columns known by name, or as many values as questions.
function bestTable(fields, text) {
  const [exact, alike] = [placesOf(fields, (name) => name), placesOf(fields, folded)];
  const tried = SEPARATORS.map((separator) => {
    const rows = splitTable(text, separator);
    const columns = (rows[0]?.cells ?? []).map((name) => fieldOf(fields, exact, alike, name));
    const known = columns.filter((column) => column !== null).length;
    return { separator, rows, columns, known };
  });
  const named = tried.reduce((best, one) => (one.known > best.known ? one : best));
  if (named.known > 0) return { ...named, header: true };
  const counted = tried.find(({ rows }) => rows[0]?.cells.length === fields.length);
  if (counted) return { ...counted, header: false, columns: fields.map((_, place) => ({ place, event: false, factor: 1 })) };
  const found = Math.max(...tried.map(({ rows }) => rows[0]?.cells.length ?? 0));
  return refuse("no_match", { count: fields.length, found });
}

function readNumeral(field, cell, factor, mark) {
  const [bare, stated] = unitOf(field, cell);
  const read = readNumber(bare, mark);
  if (read === null) throw new Refusal(field, "need_number");
  if (read.small) throw new Refusal(field, "ambiguous", read);
  return converted(read.text, stated === 1 ? factor : stated);
}

function readYesNo({ constants: { words } }, cell) {
  const local = { yes: [...words.yes, folded(say("form.yes")), "ja", "j"], no: [...words.no, folded(say("form.no")), "nein"] };
  return yesOrNo(cell, local);
}

// A time and whether it happened, as the code of the outcome.
function readTime(numbers, field, [cell, event], factor, mark) {
  const [time, happened] = [Number(readNumeral(field, cell, factor, mark)), readYesNo(numbers, event)];
  if (time < 0) throw new Refusal(field, "need_number");
  if (happened === null) throw new Refusal(field, "need_yes_no");
  return timeCode(field, time, happened === numbers.constants.words.yes[0]);
}

function readCell(numbers, field, cell, factor, mark) {
  if (field.date) {
    const found = readDate(cell);
    if (found === null) throw new Refusal(field, "need_date", { example: dateTitle(field.example ?? field.low) });
    return found;
  }
  if (field.kind === "number") {
    return /^[+-]?nan$/i.test(cell) ? "" : readNumeral(field, cell, factor, mark);
  }
  if (field.kind === "yes_no") return readYesNo(numbers, cell) ?? cell;
  const date = field.cycle ? readDate(cell) : null;
  if (date !== null) return placeInCycle(field, date);
  const values = field.categories ?? field.classes;
  if (field.asked === "time") {
    // A time alone does not say whether it happened, and is no code of the outcome.
    const found = values.find((value) => folded(answerTitle(numbers, field, value)) === folded(cell));
    if (found === undefined) throw new Refusal(field, "need_choice");
    return found;
  }
  if (values.includes(cell)) return cell;
  const bare = cell.length > MOST_LETTERS ? "" : folded(cell);
  const alike = (one) => folded(one) === bare && bare !== "";
  const place = values.findIndex((value) => alike(value) || alike(answerTitle(numbers, field, value)));
  if (place >= 0) return values[place];
  const number = readNumber(cell, mark)?.text;
  return values.find((value) => number !== undefined && value.trim() !== "" && Number(value) === Number(number)) ?? cell;
}

// One cell as an answer, or the two of a time. An empty one is undefined where nothing is declared for that, and UNKNOWN
// for a weight; so is a word for a missing value. What cannot be read is undefined too, and goes to the list of problems.
function answerOf(numbers, { place, factor }, found, mark, problems) {
  const field = numbers.fields[place];
  const cells = found.map((one) => (numbers.missing_words.includes(one.trim()) ? "" : one));
  const cell = cells.includes("") ? "" : cells.join("; ");
  const counts = field.missing !== null && field.missing !== undefined;
  const empty = counts ? "" : field.role === "weight" ? UNKNOWN : undefined;
  if (cell === "" && !counts) return empty;
  try {
    const read = () => (cells.length > 1 ? readTime(numbers, field, cells, factor, mark) : readCell(numbers, field, cell, factor, mark));
    const answer = cell === "" ? "" : read();
    if (answer === "" && !counts) return empty;
    check(numbers, place, answer);
    return answer;
  } catch (problem) {
    if (!(problem instanceof Refusal)) throw problem;
    const named = Object.fromEntries(
      Object.entries({ example: sampleNumber(field), ...problem.named }).map(([key, value]) => [key, typeof value === "number" ? shown(value) : value]),
    );
    const short = cell.length > 40 ? `${cell.slice(0, 39)}…` : cell;
    problems.push({ place, text: say("file.cell", { cell: short, reason: say(`form.${problem.key}`, named) }) });
    return undefined;
  }
}

// Reads a table: for each of its rows the answers in the order of the form, undefined where it has none.
export function readTable(numbers, text) {
  const { fields } = numbers;
  if (text.length > MOST_BYTES) refuse("too_long", { count: MOST_ROWS });
  const clean = plainText(text);
  if (clean.trim() === "") refuse("empty");
  const { rows, columns, header, separator } = bestTable(fields, clean);
  const names = header ? rows[0].cells : fields.map(titleOf);
  const body = header ? rows.slice(1) : rows;
  if (body.length === 0) refuse("no_rows");
  if (body.length > MOST_ROWS) refuse("too_long", { count: MOST_ROWS });
  columns.forEach((column, i) => {
    const first = columns.findIndex((one) => one !== null && one.place === column?.place && one.event === column.event);
    if (column !== null && first < i) refuse("twice", { title: titleOf(fields[column.place]), first: names[first], second: names[i] });
  });
  const uneven = body.find(({ cells }) => cells.length !== names.length);
  if (uneven) refuse("wrong_count", { line: uneven.line, found: uneven.cells.length, count: names.length });
  const isNumeric = ({ place, event }) => (fields[place].kind === "number" && !fields[place].date) || (fields[place].asked === "time" && !event);
  const numeric = columns.flatMap((column, i) => (column && isNumeric(column) ? [i] : []));
  const mark = markOf(body.flatMap(({ cells }) => numeric.map((i) => cells[i])), separator);
  const places = [...new Set(columns.filter((column) => column !== null).map(({ place }) => place))];
  // The columns of an answer: one, or a time's and after it that of the event.
  const sources = places.map((place) => {
    const own = columns.flatMap((column, i) => (column?.place === place ? [{ ...column, i }] : []));
    return own.sort((one, other) => Number(one.event) - Number(other.event));
  });
  return {
    header,
    unused: names.filter((_, i) => columns[i] === null),
    rows: body.map((row) => {
      const answers = fields.map(() => undefined);
      const cells = fields.map(() => "");
      const problems = [];
      for (const own of sources) {
        const [{ place }] = own;
        const found = own.map(({ i }) => row.cells[i]);
        answers[place] = answerOf(numbers, own[0], found, mark, problems);
        cells[place] = found.join("; ");
      }
      return { line: row.line, answers, cells, places, problems };
    }),
  };
}
