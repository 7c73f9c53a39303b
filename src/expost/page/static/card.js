// One card of questions: a row of a person, or a person of a household. The first row is asked as ever; the others copy
// the one before when they are opened, and count once she has confirmed them.

import { Form } from "./form.js";
import { element, say } from "./language.js";

export class Card {
  constructor(cards, index) {
    const { words, ofPerson, numbers, stride } = cards;
    Object.assign(this, { cards, index, last: stride - 1, copies: ofPerson && index > 0 });
    const title = ofPerson ? say("form.card", { ...words, number: index + 1 }) : say("form.relative", { number: index + 1 });
    this.id = `card-${index + 1}`;
    this.status = element("span", { className: "count" });
    this.body = element("div", { attributes: { role: "group", "aria-label": title } });
    this.form = new Form({ ...numbers, prefix: index === 0 ? "" : `${this.id}-` }, this.body);
    this.form.listen(this.body, (settled) => cards.changed(settled));
    this.lost = this.tick("forgotten", say("form.forgotten", { ...words, title }));
    this.confirmed = this.tick("confirmed", say("form.confirm", { title }));
    this.note = element("p", { className: "small quiet", textContent: say("form.copied", words) });
    const extra = ofPerson ? [this.lost.node] : index > 0 ? [this.remover()] : [];
    this.tools = element("div", { className: "tools" }, ...extra);
    this.node = element(
      "details",
      { className: "card", open: index === 0, id: this.id },
      element("summary", {}, element("span", { className: "card-title", textContent: title }), this.status),
      this.tools,
      ...(this.copies ? [this.note] : []),
      this.body,
      ...(this.copies ? [this.confirmed.node] : []),
    );
    this.node.addEventListener("toggle", () => this.node.open && this.copy());
  }

  // A box that says something of the whole card.
  tick(kind, text) {
    const box = element("input", { type: "checkbox", id: `${this.id}-${kind}` });
    box.addEventListener("change", () => this.cards.changed(true));
    return { box, node: element("label", { className: "dunno" }, box, text) };
  }

  remover() {
    const button = element("button", { type: "button", className: "btn text", textContent: say("form.remove_relative") });
    button.addEventListener("click", () => this.cards.remove(this));
    return button;
  }

  // Takes over what was answered on the card before, until she has answered something here.
  copy() {
    if (!this.copies || this.form.state.started) return;
    this.form.fill(this.cards.cards[this.index - 1].form.state.answers);
    this.form.left.clear();
    this.cards.changed(true);
  }

  get forgotten() {
    return this.cards.ofPerson && this.cards.cards.length > 1 && this.lost.box.checked;
  }

  // That of its form, and one question more where she has to confirm it.
  get state() {
    const state = { ...this.form.state, forgotten: this.forgotten };
    if (!this.copies) return state;
    const sure = this.confirmed.box.checked;
    return { ...state, done: state.done + Number(sure), all: state.all + 1, missing: sure ? state.missing : [...state.missing, this.last] };
  }

  // Shows itself as the only one, or as one of several.
  only(alone) {
    this.node.classList.toggle("only", alone);
    this.body.role = alone ? "presentation" : "group";
    if (alone) {
      this.lost.box.checked = false;
      this.node.open = true;
    }
  }

  explain() {
    const { words, ofPerson, cards } = this.cards;
    const open = cards.length === 1 ? "form.unknown_note" : ofPerson ? "form.unknown_row" : "form.unknown_relative";
    this.form.explain(say(open, words));
    const { done, all, missing, wrong } = this.state;
    const ready = missing.length === 0 && wrong.length === 0;
    const text = this.forgotten ? say("form.card_forgotten") : ready ? say("form.card_ready") : say("form.count", { done, all });
    if (this.status.textContent !== text) this.status.textContent = text;
    this.node.classList.toggle("ready", ready || this.forgotten);
    for (const part of [this.body, this.note, this.confirmed.node]) part.hidden = this.forgotten;
  }

  // Puts in the answers of a row from a file, which needs no confirmation, and marks what could not be read.
  take(answers, problems) {
    this.form.fill(answers);
    this.form.mark(problems);
    this.lost.box.checked = false;
    this.confirmed.box.checked = true;
  }

  clear() {
    this.form.clear();
    this.lost.box.checked = false;
  }
}
