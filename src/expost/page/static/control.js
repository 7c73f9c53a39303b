// What all questions of the form have in common. Each control knows its answer: a text as encoding.js reads it, UNKNOWN,
// or undefined while there is none.

import { dateOf, daysOf, Refusal, UNKNOWN } from "./encoding.js";
import { day, element, say, titleOf, valueTitle } from "./language.js";
import { shown } from "./notation.js";
import { check, mayBeUnknown } from "./ranges.js";

const hasDefault = (field) => field.missing !== null && field.missing !== undefined;

// A day as the language writes it, from a number of days or from a text such as 1980-12-31.
export const dateTitle = (value) => {
  const days = typeof value === "number" ? value : daysOf(value);
  return day(dateOf(Number.isNaN(days) ? Number(value) : days));
};

// A number with its unit.
const measured = (field, number) => [shown(number), field.unit].filter(Boolean).join("\u00a0");

function defaultWord(field) {
  if (field.date) return dateTitle(field.missing);
  if (typeof field.missing === "boolean") return say(field.missing ? "form.yes" : "form.no");
  return typeof field.missing === "number" ? measured(field, field.missing) : valueTitle(field, field.missing);
}

// Whether it happened, and when: from the code of the outcome, which counts periods twice.
function timeTitle({ name, periods, length, unit }, code) {
  const [seen, event] = [Math.floor(code / 2), code % 2 === 1];
  const [from, to] = event ? [seen - 1, seen] : seen < periods ? [seen, seen + 1] : [0, seen];
  const [low, high] = [from, to].map((end) => shown(Number((end * length).toPrecision(12))));
  const text = event ? (from ? "happened" : "happened_first") : seen === periods ? "followed" : from ? "ended_later" : "ended";
  return say(`form.${text}`, { low, high, unit: unit ?? `(${name})` });
}

// What an answer is shown as, with its unit.
export function answerTitle({ constants }, field, answer) {
  if (answer === UNKNOWN) return say("form.unknown");
  if (answer === "") return hasDefault(field) ? defaultWord(field) : "";
  if (field.kind === "yes_no") return say(answer === constants.words.yes[0] ? "form.yes" : "form.no");
  if (field.asked === "time") return timeTitle(field, Number(answer));
  if (field.kind !== "number") return valueTitle(field, answer);
  if (field.date) return dateTitle(answer);
  return measured(field, Number(answer));
}

// An example of a number for a message; that of a time is a code, and no number that she has.
export const sampleNumber = (field) =>
  shown(field.asked === "time" ? field.length : (field.example ?? (field.low === null ? 1 : (field.low + field.high) / 2)));

// What is asked by the kind of an outcome, where the publisher has no words for it.
const QUESTIONS = { count: "form.counted", ordered: "form.which", time: "form.when" };

const questionOf = (field) => {
  const name = field.title ?? (field.asked === "time" ? field.event : titleOf(field));
  return field.question ?? (field.asked && !(field.asked === "count" && field.unnamed !== undefined) ? say(QUESTIONS[field.asked], { name }) : name);
};

export class Control {
  constructor(numbers, place) {
    Object.assign(this, { numbers, place, field: numbers.fields[place], id: `${numbers.prefix ?? ""}field-${place}` });
    this.question = questionOf(this.field);
    this.message = element("p", { className: "msg", id: `${this.id}-message`, attributes: { "aria-live": "off" } });
    this.extras = [];
    // Why a cell of a file could not be read, until she answers.
    this.unread = null;
  }

  // A box to tick in the place of an answer.
  extra(kind, text) {
    const box = element("input", { type: "checkbox", id: `${this.id}-${kind}` });
    box.addEventListener("input", () => {
      if (box.checked) this.clear(box);
    });
    this.extras.push({ kind, box });
    return element("label", { className: "dunno" }, box, text, element("span", { className: "vh", textContent: `: ${this.question}` }));
  }

  tools() {
    const { field } = this;
    const parts = [];
    if (mayBeUnknown(field)) parts.push(this.extra("unknown", say("form.unknown")));
    if (hasDefault(field)) parts.push(this.extra("missing", say("form.not_recorded")));
    if (field.help) {
      const name = element("span", { className: "vh", textContent: ` ${titleOf(field)}` });
      parts.push(
        element(
          "details",
          { className: "help" },
          element("summary", {}, say("form.help"), name),
          element("p", { textContent: field.help }),
        ),
      );
    }
    return element("div", { className: "tools" }, ...parts);
  }

  get ticked() {
    return this.extras.find(({ box }) => box.checked)?.kind;
  }

  // The answer, and why there is none if what is there cannot be read.
  get reading() {
    if (this.ticked === "unknown") return { answer: UNKNOWN };
    if (this.ticked === "missing") return { answer: "" };
    const reading = this.typed();
    if (reading.answer === undefined && this.unread !== null) return { problem: this.unread };
    if (reading.answer === undefined) return reading;
    try {
      check(this.numbers, this.place, reading.answer);
      return reading;
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      const named = Object.fromEntries(Object.entries(problem.named).map(([name, value]) => [name, shown(value)]));
      return { problem: say(`form.${problem.key}`, { example: sampleNumber(this.field), ...named }) };
    }
  }

  // Says what is wrong, or how the answer counts; problems only once the person has left the field. `unknown` is what is
  // said of an answer that she does not know.
  explain(settled, unknown) {
    const { answer, problem, note } = this.reading;
    const wrong = settled && problem !== undefined;
    this.node.classList.toggle("bad", wrong);
    this.message.classList.toggle("error", wrong);
    this.mark(wrong);
    let text = wrong ? problem : (note ?? "");
    if (answer === UNKNOWN) text = unknown;
    if (this.ticked === "missing") text = say(this.field.recorded ? "form.recorded_note" : "form.missing_note", { value: defaultWord(this.field) });
    if (this.message.textContent !== text) this.message.textContent = text;
  }

  // Puts in an answer.
  set(answer) {
    this.clear();
    const kind = answer === UNKNOWN ? "unknown" : "missing";
    if (answer === UNKNOWN || answer === "") this.extras.find((extra) => extra.kind === kind).box.checked = true;
    else this.put(answer);
  }

  untick(except) {
    this.unread = null;
    for (const { box } of this.extras) if (box !== except) box.checked = false;
  }
}
