// A question for a number with its unit.

import { answerTitle, Control, sampleNumber } from "./control.js";
import { element, say, titleOf } from "./language.js";
import { converted, decimalMark, readNumber, shown, unitOf } from "./notation.js";

function hintOf(field) {
  const [low, high] = [field.low ?? field.least ?? null, field.high ?? field.most ?? null];
  const title = titleOf(field);
  const unit = field.unit ?? "";
  const asked = field.question !== undefined && field.question !== title;
  if (low === null || high === null) return asked ? (unit ? say("form.titled", { title, unit }) : title) : unit;
  const range = { title, low: shown(low), high: shown(high), unit };
  return say(asked ? "form.range" : "form.range_plain", range).trim();
}

// The range of a field's answers in another unit.
const rangeOf = ({ low, high, least, most }, times) => {
  const [from, to] = [low ?? least ?? null, high ?? most ?? null];
  return { low: from === null ? null : from / times, high: to === null ? null : to / times };
};

export class NumberControl extends Control {
  constructor(numbers, place) {
    super(numbers, place);
    const { field, id } = this;
    const hint = hintOf(field);
    const described = [...(hint ? [`${id}-hint`] : []), this.message.id].join(" ");
    // Not type="number": scripts cannot see text there that is not a number, so the page could not report it.
    this.input = element("input", { id, type: "text", inputMode: "decimal", autocomplete: "off" });
    this.input.setAttribute("aria-describedby", described);
    this.input.addEventListener("input", () => this.untick());
    this.node = element(
      "div",
      { className: "field" },
      element("label", { htmlFor: id, textContent: this.question }),
      ...(hint ? [element("span", { className: "sub", id: `${id}-hint`, textContent: hint })] : []),
      element("div", { className: "box" }, this.input, ...this.unitParts()),
      this.message,
      this.tools(),
    );
  }

  unitParts() {
    const { unit, units } = this.field;
    if (!unit) return [];
    if (!units) return [element("span", { className: "unit", textContent: unit })];
    this.unit = element(
      "select",
      { className: "unit", attributes: { "aria-label": `${say("form.unit_label")}: ${this.question}` } },
      ...[[unit, 1], ...Object.entries(units)].map(([name, times]) => element("option", { value: String(times), textContent: name })),
    );
    return [this.unit];
  }

  typed() {
    const { field } = this;
    if (this.input.value.trim() === "") return {};
    const [bare, stated] = unitOf(field, this.input.value);
    const times = stated !== 1 ? stated : Number(this.unit?.value ?? 1);
    const read = readNumber(bare, decimalMark(), rangeOf(field, times));
    if (read === null) return { problem: say("form.need_number", { example: sampleNumber(field) }) };
    if (read.small) return { problem: say("form.ambiguous", read) };
    const answer = converted(read.text, times);
    const changed = read.guessed || times !== 1 || bare.trim().replace(decimalMark(), ".") !== read.text;
    return { answer, ...this.noteOn(answer, changed) };
  }

  noteOn(answer, changed) {
    const { field } = this;
    const value = Number(answer);
    const title = answerTitle(this.numbers, field, answer);
    for (const [key, beyond, bound] of [["high", value > field.high, field.high], ["low", value < field.low, field.low]]) {
      if (field.low !== null && beyond) {
        return { clipped: true, note: say(`form.clipped_${key}`, { value: title, bound: answerTitle(this.numbers, field, String(bound)) }) };
      }
    }
    return changed ? { note: say("form.read_as", { value: title }) } : {};
  }

  put(answer) {
    this.input.value = answer.replace(".", decimalMark());
  }

  clear(kept) {
    this.untick(kept);
    this.input.value = "";
    if (this.unit) this.unit.selectedIndex = 0;
  }

  mark(wrong) {
    this.input.setAttribute("aria-invalid", String(wrong));
  }

  focus() {
    this.input.focus();
  }
}
