// Encodes a record as expost.data.features, expost.data.encoding and expost.data.design do.
// Answers are texts, one per field of the form; an empty one is missing.

const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;
const YES = new Set(["yes", "true", "1", "1.0", "y", "t"]);
const NO = new Set(["no", "false", "0", "0.0", "n", "f"]);

// The error for an answer that cannot be read: its field, and a sentence for the person.
export class Refusal extends Error {
  constructor(field, sentence, missing = false) {
    super(sentence);
    this.field = field;
    this.missing = missing;
  }
}

const clip = (value, low, high) => Math.min(Math.max(value, low), high);

function number(field, text) {
  const value = NUMBER.test(text) ? Number(text) : NaN;
  if (!Number.isFinite(value)) throw new Refusal(field, "Please give a number.");
  return value;
}

function share(field, value) {
  return (clip(value, field.low, field.high) - field.low) / (field.high - field.low);
}

// Turns every accepted spelling into "yes" or "no"; null for anything else.
export function yesOrNo(text) {
  const word = text.trim().toLowerCase();
  if (YES.has(word)) return "yes";
  return NO.has(word) ? "no" : null;
}

// Calls `use` with the answer, or returns the encoding of the declared default.
function answered(field, text, use) {
  if (text !== "") return use(text);
  if (field.missing === null || field.missing === undefined) {
    throw new Refusal(field, "Please answer this one.", true);
  }
  return use(typeof field.missing === "boolean" ? (field.missing ? "yes" : "no") : String(field.missing));
}

const COLUMNS = {
  number(field, text) {
    const value = number(field, text);
    if (field.low === null) return [value];
    return [field.scale === "symmetric" ? 2 * share(field, value) - 1 : share(field, value)];
  },
  category(field, text) {
    if (!field.categories.includes(text)) throw new Refusal(field, "Please choose one of the listed values.");
    return field.categories.map((category) => (category === text ? 1 : 0));
  },
  yes_no(field, text) {
    const answer = yesOrNo(text);
    if (answer === null) throw new Refusal(field, "Please answer yes or no.");
    return [answer === "yes" ? 1 : 0];
  },
};

export function encodeFeature(field, text) {
  return answered(field, text, (answer) => COLUMNS[field.kind](field, answer));
}

export function encodeOutcome(field, text, labels) {
  return answered(field, text, (answer) => {
    if (field.kind === "classes") {
      const place = field.classes.indexOf(answer);
      if (place < 0) throw new Refusal(field, "Please choose one of the listed values.");
      return labels[place];
    }
    const value = number(field, answer);
    if ((field.least !== null && value < field.least) || (field.most !== null && value > field.most)) {
      throw new Refusal(field, `Please give a number from ${field.least} to ${field.most}.`);
    }
    return field.low === null ? value : 2 * share(field, value) - 1;
  });
}

function length(row) {
  const direct = Math.sqrt(row.reduce((sum, x) => sum + x * x, 0));
  if (Number.isFinite(direct)) return direct;
  // The squares overflowed: factor the largest entry out.
  const largest = Math.max(1, ...row.map(Math.abs));
  return largest * Math.sqrt(row.reduce((sum, x) => sum + (x / largest) ** 2, 0));
}

// The row inside the ball of radius `norm`, with a constant 1 for the intercept.
export function scaleRow(row, norm, intercept) {
  const margin = 1 + (row.length + (intercept ? 1 : 0) + 8) * Number.EPSILON;
  const ratio = norm / (length(row) * margin);
  const scale = Math.min(1, ratio < 1e-290 ? 0 : ratio);
  const scaled = scale === 1 ? row.slice() : row.map((x) => x * scale);
  return intercept ? [...scaled, 1] : scaled;
}

// The encoded row and label of a person's answers.
export function encode(fields, publication, answers) {
  const row = publication.features.flatMap((place) => encodeFeature(fields[place], answers[place]));
  const place = publication.outcome;
  const label = encodeOutcome(fields[place], answers[place], publication.labels);
  return { row: scaleRow(row, publication.norm, publication.intercept), label };
}
