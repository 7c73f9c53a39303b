// A question for a day. Answers are texts such as 1980-12-31; a number counts days, as charts and ranges have them.

import { dateTitle, Control } from "./control.js";
import { dateOf, daysOf } from "./encoding.js";
import { element, say, titleOf } from "./language.js";

const DAY_FIRST = /^(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})$/;
const SLASHED = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/;

// The day of a cell as an answer, as ISO 8601 writes it, with points, or with slashes where the language has the day first
// by all accounts; null for anything else.
export function readDate(cell) {
  const found = DAY_FIRST.exec(cell.trim()) ?? (say("page.slashed") === "day" ? SLASHED.exec(cell.trim()) : null);
  const text = found ? `${found[3]}-${found[2]}-${found[1]}` : cell;
  const days = daysOf(text);
  return Number.isNaN(days) ? null : dateOf(days);
}

export class DateControl extends Control {
  constructor(numbers, place) {
    super(numbers, place);
    const { field, id } = this;
    const title = titleOf(field);
    const range = { title, low: dateTitle(field.low), high: dateTitle(field.high), unit: "" };
    const asked = field.question !== undefined && field.question !== title;
    this.input = element("input", { id, type: "date", autocomplete: "off", min: dateOf(field.low), max: dateOf(field.high) });
    this.input.setAttribute("aria-describedby", `${id}-hint ${this.message.id}`);
    this.input.addEventListener("input", () => this.untick());
    this.node = element(
      "div",
      { className: "field" },
      element("label", { htmlFor: id, textContent: this.question }),
      element("span", { className: "sub", id: `${id}-hint`, textContent: say(asked ? "form.range" : "form.range_plain", range).trim() }),
      element("div", { className: "box" }, this.input),
      this.message,
      this.tools(),
    );
  }

  typed() {
    const { field, input } = this;
    if (input.value === "") return input.validity.badInput ? { problem: this.needed() } : {};
    const days = daysOf(input.value);
    if (Number.isNaN(days)) return { problem: this.needed() };
    const value = dateTitle(days);
    for (const [key, beyond, bound] of [["high", days > field.high, field.high], ["low", days < field.low, field.low]]) {
      if (beyond) return { answer: input.value, clipped: true, note: say(`form.clipped_${key}`, { value, bound: dateTitle(bound) }) };
    }
    return { answer: input.value, note: say("form.read_as", { value }) };
  }

  needed() {
    return say("form.need_date", { example: dateTitle(this.field.example ?? this.field.low) });
  }

  put(answer) {
    this.input.value = Number.isNaN(daysOf(answer)) ? dateOf(Number(answer)) : dateOf(daysOf(answer));
  }

  clear(kept) {
    this.untick(kept);
    this.input.value = "";
  }

  mark(wrong) {
    this.input.setAttribute("aria-invalid", String(wrong));
  }

  focus() {
    this.input.focus();
  }
}
