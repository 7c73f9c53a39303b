// Numbers as people write them: decimal commas or points, marks for thousands, blanks and units.

import { language, say } from "./language.js";

const DIGITS = /^[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?$/i;
const GROUPED = { ".": /^[+-]?\d{1,3}(?:\.\d{3})+(?:,\d*)?$/, ",": /^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?$/ };
const BLANKS = /[\u0020\u00a0\u2009\u202f'’]/g;

// The mark before decimals in the reader's language.
export const decimalMark = () => say("page.decimal");

// A number of hundredths as the language writes it, from the number's text.
export const percentText = (text) => say("page.percent", { n: text });

const other = (mark) => (mark === "." ? "," : ".");

// A number as the reader's language writes it, with all its digits.
export function shown(value) {
  if (!Number.isFinite(value)) return String(value);
  if (value !== 0 && (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-6)) {
    return String(value).replace(".", decimalMark());
  }
  return new Intl.NumberFormat(language(), { maximumSignificantDigits: 15, useGrouping: "min2" }).format(value);
}

// Reads a number in either notation; `mark` is the decimal mark that a comma or point means if it could mean both.
// Answers with {text}, the number with a decimal point and no other mark; with {small, large} where it is ambiguous;
// or with null. With `within`, the range of a field, a mark before three digits is asked about where both readings are in
// range, and the reading that is in range is taken where one is.
export function readNumber(typed, mark, within = null) {
  const text = typed.trim().replace(/^\u2212/, "-");
  const bare = /\d[\u0020\u00a0\u2009\u202f'’]\d{3}(?!\d)/.test(text) ? text.replace(BLANKS, "") : text;
  const marks = bare.match(/[.,]/g) ?? [];
  if (marks.length === 0) return DIGITS.test(bare) ? { text: bare } : null;
  if (new Set(marks).size === 2) {
    // The last one is the decimal mark, the other one groups thousands.
    const decimal = marks.at(-1);
    const group = other(decimal);
    if (!GROUPED[group].test(bare)) return null;
    return { text: bare.replaceAll(group, "").replace(decimal, ".") };
  }
  const [sign] = marks;
  if (marks.length > 1) return GROUPED[sign].test(bare) ? { text: bare.replaceAll(sign, "") } : null;
  if (!DIGITS.test(bare)) return null;
  const [decimal, whole] = [bare.replace(",", "."), bare.replace(sign, "")];
  if (!/^[+-]?[1-9]\d{0,2}[.,]\d{3}$/.test(bare)) return { text: decimal };
  const [small, large] = [decimal, whole].map((text) => within === null || inside(Number(text), within));
  if (within !== null && small !== large) return { text: small ? decimal : whole, guessed: true };
  if (sign === mark && !(within !== null && small)) return { text: decimal };
  return { small: shown(Number(decimal)), large: shown(Number(whole)) };
}

const inside = (value, { low, high }) => low === null || high === null || (low <= value && value <= high);

// The decimal mark of a table, null where it cannot be told. Numbers that could mean two things say nothing; where all
// do, semicolons between cells go with decimal commas, commas with points, and tabs with the reader's own mark.
export function markOf(cells, separator) {
  const clear = (mark) =>
    cells.some((cell) => {
      const read = readNumber(cell, null);
      return read?.text !== undefined && cell.includes(mark) && cell.lastIndexOf(mark) > cell.lastIndexOf(other(mark)) && !GROUPED[mark].test(cell.trim());
    });
  const [commas, points] = [clear(","), clear(".")];
  if (commas !== points) return commas ? "," : ".";
  if (commas) return null;
  if (separator === ";") return cells.some((cell) => cell.includes(".")) ? null : ",";
  return separator === "," ? "." : decimalMark();
}

// Splits "186 µmol/L" into its number and one of the field's units: [text, factor], the factor 1 without a unit.
export function unitOf(field, text) {
  const units = [[field.unit, 1], ...Object.entries(field.units ?? {})].filter(([unit]) => unit);
  const spelled = (one) => one.toLowerCase().replaceAll("μ", "µ").replaceAll(" ", "");
  const found = units.find(([unit]) => spelled(text).endsWith(spelled(unit)) && /\d\s*$/.test(withoutUnit(text, unit)));
  return found ? [withoutUnit(text, found[0]).trim(), found[1]] : [text, 1];
}

function withoutUnit(text, unit) {
  const letters = unit.replaceAll(" ", "").length;
  let end = text.length;
  for (let left = letters; left > 0 && end > 0; end -= 1) if (text[end - 1] !== " ") left -= 1;
  return text.slice(0, end);
}

// A number in another unit, in the field's own, to twelve digits; as it is without one, so that no digit changes.
export const converted = (text, factor) => (factor === 1 ? text : String(Number((Number(text) * factor).toPrecision(12))));
