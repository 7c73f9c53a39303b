// The form: one question per field, answers as texts.

import { splitLine } from "./csv.js";
import { numeral, spelled, yesOrNo } from "./encoding.js";

export function element(kind, properties = {}, ...children) {
  const made = document.createElement(kind);
  const { dataset, ...others } = properties;
  Object.assign(made, others);
  Object.assign(made.dataset, dataset);
  made.append(...children);
  return made;
}

function hint(field, words) {
  const parts = [];
  if (field.kind === "number" && field.low !== null) parts.push(`from ${field.low} to ${field.high}`);
  else if (field.kind === "number" && Number.isFinite(field.least)) parts.push(`from ${field.least} to ${field.most}`);
  if (field.missing !== null && field.missing !== undefined) {
    const word = typeof field.missing === "boolean" ? spelled(words, field.missing) : field.missing;
    parts.push(`empty counts as ${word}`);
  }
  return parts.join("; ");
}

function menu(id, values) {
  const select = element("select", { id, name: id }, element("option", { value: "", textContent: "choose…" }));
  select.append(...values.map((value) => element("option", { value, textContent: value })));
  return select;
}

function control(field, id, words) {
  if (field.kind === "classes") return menu(id, field.classes);
  if (field.kind === "category") return menu(id, field.categories);
  if (field.kind === "yes_no") return menu(id, [spelled(words, true), spelled(words, false)]);
  // Not type="number": scripts cannot see text there that is not a number, so the page could not report it.
  return element("input", { id, name: id, type: "text", inputMode: "decimal", autocomplete: "off" });
}

export class Form {
  constructor({ fields, constants }, place) {
    this.fields = fields;
    this.words = constants.words;
    this.controls = fields.map((field, i) => control(field, `field-${i}`, this.words));
    this.notes = fields.map((field, i) => element("span", { id: `note-${i}`, className: "note" }));
    place.append(
      ...fields.map((field, i) => {
        this.controls[i].setAttribute("aria-describedby", `note-${i}`);
        const label = element("label", { htmlFor: `field-${i}`, textContent: field.name });
        const box = element("div", { className: "field" }, label, this.controls[i], this.notes[i]);
        if (field.role === "outcome") box.classList.add("outcome");
        return box;
      }),
    );
    this.explain(new Map());
  }

  get answers() {
    return this.controls.map((control) => (control.tagName === "INPUT" ? control.value.trim() : control.value));
  }

  // Shows the hints, and for each refused answer the reason.
  explain(refusals) {
    this.fields.forEach((field, i) => {
      const sentence = refusals.get(i) ?? "";
      this.controls[i].setAttribute("aria-invalid", sentence ? "true" : "false");
      this.notes[i].textContent = [sentence, this.clipped(field, i), hint(field, this.words)].filter(Boolean).join(" ");
      this.notes[i].classList.toggle("refused", sentence !== "");
    });
  }

  clipped(field, i) {
    const value = numeral(this.controls[i].value);
    if (field.kind !== "number" || field.low === null) return "";
    if (value > field.high) return `Counted as ${field.high}.`;
    return value < field.low ? `Counted as ${field.low}.` : "";
  }

  // Fills the form from one line of a table; returns a sentence about the result.
  paste(line) {
    const cells = splitLine(line);
    if (cells.length !== this.fields.length) {
      return `The line has ${cells.length} values; ${this.fields.length} are needed.`;
    }
    const unknown = [];
    cells.forEach((cell, i) => {
      const { kind } = this.fields[i];
      const word = kind === "yes_no" ? (yesOrNo(cell, this.words) ?? cell) : cell;
      this.controls[i].value = word;
      if (this.controls[i].value !== word) {
        this.controls[i].value = "";
        unknown.push(this.fields[i].name);
      }
    });
    return unknown.length ? `Not one of the listed values: ${unknown.join(", ")}.` : "The form is filled in.";
  }
}
