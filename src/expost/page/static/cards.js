// One card of questions for each row of a person, or for each person of a household. A place is a question of a card:
// cards have as many questions as there are fields, and one more where she confirms what was copied.

import { Card } from "./card.js";
import { element, say } from "./language.js";
import { wordsOf } from "./words.js";

export class Cards {
  constructor(numbers, place, changed) {
    const { publications } = numbers;
    this.numbers = numbers;
    this.stride = numbers.fields.length + 1;
    this.words = wordsOf(publications);
    this.ofPerson = publications.some(({ plan }) => plan.unit === "person");
    this.most = Math.min(...publications.map(({ most_rows: most }) => most));
    this.changed = changed;
    this.list = element("div");
    this.cards = [];
    place.append(...(this.ofPerson ? [this.counter()] : []), this.list, ...(this.ofPerson || this.most === 1 ? [] : [this.adder()]));
    place.addEventListener("submit", (event) => event.preventDefault());
    this.resize(1);
  }

  // "How many visits did you have?"
  counter() {
    const { words } = this;
    this.number = element("input", { id: "count", type: "text", inputMode: "numeric", autocomplete: "off", value: "1" });
    this.number.setAttribute("aria-describedby", "count-note count-message");
    this.uncounted = element("input", { type: "checkbox", id: "count-unknown" });
    this.problem = element("p", { className: "msg", id: "count-message" });
    this.number.addEventListener("input", () => {
      this.uncounted.checked = false;
      this.recount();
    });
    this.uncounted.addEventListener("change", () => this.recount());
    return element(
      "div",
      { className: "field counter" },
      element("label", { htmlFor: "count", textContent: say("form.how_many", words) }),
      element("span", { className: "sub", id: "count-note", textContent: say("form.how_many_note", words) }),
      element("div", { className: "box" }, this.number),
      element("label", { className: "dunno" }, this.uncounted, say("form.unknown")),
      this.problem,
    );
  }

  recount() {
    const text = this.number.value.trim();
    const wanted = /^\d+$/.test(text) ? Number(text) : 0;
    this.invalid = this.uncounted.checked || wanted < 1 || wanted > this.most;
    if (!this.invalid) this.resize(wanted);
    const key = this.uncounted.checked ? "form.uncounted" : wanted > this.most ? "form.too_many" : "form.need_count";
    this.problem.textContent = this.invalid ? say(key, { ...this.words, most: this.most }) : "";
    this.problem.classList.toggle("error", this.invalid);
    this.number.setAttribute("aria-invalid", String(this.invalid));
    this.changed(true);
  }

  // "Add someone from your household"
  adder() {
    this.add = element("button", { type: "button", className: "btn", textContent: say("form.add_relative") });
    this.add.addEventListener("click", () => {
      this.resize(this.cards.length + 1);
      this.focus((this.cards.length - 1) * this.stride);
      this.changed(true);
    });
    return element("div", { className: "relatives" }, this.add, element("p", { className: "small quiet", textContent: say("form.relatives_note") }));
  }

  resize(count) {
    while (this.cards.length > count) this.cards.pop().node.remove();
    while (this.cards.length < count) {
      this.cards.push(new Card(this, this.cards.length));
      this.list.append(this.cards.at(-1).node);
    }
    for (const card of this.cards) card.only(count === 1);
    if (this.add) this.add.disabled = count >= this.most;
  }

  remove(card) {
    // Those that come after keep their answers, under the number before.
    const kept = this.cards.filter((one) => one !== card).map(({ form }) => form.state.answers);
    this.resize(kept.length);
    kept.forEach((answers, i) => this.cards[i].form.fill(answers));
    this.changed(true);
    this.add.focus();
  }

  // What is answered and what is not, over all cards that she remembers.
  get state() {
    const states = this.cards.map((card, i) => ({ ...card.state, first: i * this.stride })).filter((one) => !one.forgotten);
    const places = (name) => states.flatMap((one) => one[name].map((place) => one.first + place));
    const total = (name) => states.reduce((sum, one) => sum + one[name], 0);
    return {
      rows: states.map(({ answers }) => answers),
      places: states.map(({ first }) => first / this.stride),
      forgotten: this.cards.length - states.length,
      uncounted: this.invalid === true,
      done: total("done"),
      all: total("all"),
      started: this.cards.length > 1 || states.some(({ started }) => started),
      ...Object.fromEntries(["wrong", "open", "clipped", "missing"].map((name) => [name, places(name)])),
    };
  }

  get left() {
    return new Set(this.cards.flatMap(({ form }, i) => [...form.left].map((place) => i * this.stride + place)));
  }

  explain() {
    for (const card of this.cards) card.explain();
  }

  // Fills as many cards as there are rows; `read` says of each what in it could not be read.
  fill(rows, read = []) {
    if (this.number) {
      this.number.value = String(rows.length);
      this.uncounted.checked = false;
      this.recount();
    }
    if (this.cards.length < rows.length) this.resize(rows.length);
    rows.forEach((answers, i) => this.cards[i].take(answers, read[i]?.problems ?? []));
  }

  clear() {
    if (this.number) {
      this.number.value = "1";
      this.uncounted.checked = false;
      this.recount();
    }
    this.resize(1);
    this.cards[0].clear();
  }

  focus(place) {
    const card = this.cards[Math.floor(place / this.stride)];
    card.node.open = true;
    if (place % this.stride < this.stride - 1) card.form.focus(place % this.stride);
    else card.confirmed.box.focus();
  }

  titles(places) {
    return [...new Set(places.map((place) => this.cards[0].form.titles([place % this.stride])[0]))];
  }
}
