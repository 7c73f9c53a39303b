// The form: questions in groups, and how far she has come.

import { DateControl } from "./calendar.js";
import { ChoiceControl } from "./choice.js";
import { UNKNOWN } from "./encoding.js";
import { element, say, titleOf } from "./language.js";
import { NumberControl } from "./quantity.js";

const groupOf = (field) => field.group ?? say(field.role === "outcome" ? "form.outcome_group" : "form.group");

export class Form {
  constructor(numbers, place) {
    this.fields = numbers.fields;
    this.controls = this.fields.map((field, i) => {
      if (field.date) return new DateControl(numbers, i);
      return field.kind === "number" ? new NumberControl(numbers, i) : new ChoiceControl(numbers, i);
    });
    this.forgetWeights();
    this.left = new Set();
    this.groups = [...new Set(this.fields.map(groupOf))].map((title) => this.group(title));
    place.append(...this.groups.map(({ node }) => node));
    place.addEventListener("keydown", (event) => this.onKey(event));
  }

  // Hardly anyone knows the weight of her record, so that question is answered from the start.
  forgetWeights() {
    this.controls.filter(({ field }) => field.role === "weight").forEach((control) => control.set(UNKNOWN));
  }

  group(title) {
    const count = element("span", { className: "count" });
    const members = this.controls.filter(({ field }) => groupOf(field) === title);
    const node = element(
      "fieldset",
      { className: "group" },
      element("legend", {}, title, " ", count),
      element("div", { className: "fields" }, ...members.map((control) => control.node)),
    );
    return { node, count, members };
  }

  // Enter goes on to the next question.
  onKey(event) {
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    const place = this.controls.findIndex(({ node }) => node.contains(event.target));
    this.left.add(place);
    (this.controls[place + 1] ?? this.controls[place]).focus();
  }

  // Listens: `changed` is called at every letter, with whether a field was finished.
  listen(place, changed) {
    const at = (event) => this.controls.findIndex(({ node }) => node.contains(event.target));
    place.addEventListener("input", (event) => {
      if (at(event) >= 0) this.controls[at(event)].unread = null;
      if (event.target.type === "text") this.left.delete(at(event));
      changed(event.target.type !== "text");
    });
    place.addEventListener("focusout", (event) => {
      if (at(event) >= 0) this.left.add(at(event));
      changed(true);
    });
  }

  // What is answered and what is not. Answers are texts, UNKNOWN, or undefined.
  get state() {
    const readings = this.controls.map((control) => control.reading);
    const places = (test) => readings.flatMap((reading, place) => (test(reading) ? [place] : []));
    return {
      answers: readings.map(({ answer }) => answer),
      done: readings.filter(({ answer }) => answer !== undefined).length,
      all: readings.length,
      started: readings.some(({ answer, problem }, place) => (answer !== undefined || problem) && this.fields[place].role !== "weight"),
      wrong: places(({ problem }) => problem !== undefined),
      open: places(({ answer }) => answer === UNKNOWN),
      clipped: places(({ clipped }) => clipped),
      missing: places(({ answer, problem }) => answer === undefined && problem === undefined),
    };
  }

  // Shows how each answer counts and what is wrong with it.
  explain(unknown) {
    this.controls.forEach((control, place) => control.explain(this.left.has(place), unknown));
    for (const { count, members } of this.groups) {
      const done = members.filter(({ reading }) => reading.answer !== undefined).length;
      const text = say("form.count", { done, all: members.length });
      if (count.textContent !== text) count.textContent = text;
    }
  }

  // Puts in answers; undefined leaves a question open.
  fill(answers) {
    answers.forEach((answer, place) => {
      if (answer === undefined) this.controls[place].clear();
      else this.controls[place].set(answer);
      this.left.add(place);
    });
  }

  // Says of cells of a file that they could not be read, each at its question.
  mark(problems) {
    for (const { place, text } of problems) this.controls[place].unread = text;
  }

  clear() {
    this.controls.forEach((control) => control.clear());
    this.forgetWeights();
    this.left.clear();
  }

  focus(place) {
    this.controls[place].focus();
  }

  titles(places) {
    return places.map((place) => titleOf(this.fields[place]));
  }
}
