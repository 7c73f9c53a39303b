// A question for one of several values.

import { answerTitle, Control } from "./control.js";
import { valuesOf } from "./encoding.js";
import { element, say } from "./language.js";

// Up to so many values are shown side by side; more become a menu.
const MOST_BUTTONS = 6;

export class ChoiceControl extends Control {
  constructor(numbers, place) {
    super(numbers, place);
    const { field, id } = this;
    this.values = valuesOf(numbers, field);
    const titles = this.values.map((value) => answerTitle(numbers, field, value));
    const described = this.message.id;
    this.buttons = this.values.length <= MOST_BUTTONS ? titles.map((text, i) => this.button(text, i)) : null;
    this.menu = this.buttons ? null : this.makeMenu(titles, described);
    const shape = this.buttons ? ["fieldset", "legend", {}] : ["div", "label", { htmlFor: id }];
    this.node = element(
      shape[0],
      { className: "field", ...(this.buttons ? { attributes: { "aria-describedby": described } } : {}) },
      element(shape[1], { ...shape[2], textContent: this.question }),
      this.menu ?? element("div", { className: "opts" }, ...this.buttons.map(({ label }) => label)),
      this.tools(),
      this.message,
    );
  }

  button(text, i) {
    const input = element("input", { type: "radio", name: this.id, id: `${this.id}-${i}`, value: String(i) });
    input.addEventListener("input", () => this.untick());
    return { input, label: element("label", {}, input, text) };
  }

  makeMenu(titles, described) {
    const options = titles.map((textContent, i) => element("option", { value: this.values[i], textContent }));
    const none = element("option", { value: "", textContent: say("form.choose") });
    const menu = element("select", { id: this.id, attributes: { "aria-describedby": described } }, none, ...options);
    menu.addEventListener("input", () => this.untick());
    return menu;
  }

  typed() {
    const place = this.menu ? this.menu.selectedIndex - 1 : this.buttons.findIndex(({ input }) => input.checked);
    return place < 0 ? {} : { answer: this.values[place] };
  }

  put(answer) {
    const place = this.values.indexOf(answer);
    if (this.menu) this.menu.selectedIndex = place + 1;
    else this.buttons[place].input.checked = true;
  }

  clear(kept) {
    this.untick(kept);
    if (this.menu) this.menu.selectedIndex = 0;
    else for (const { input } of this.buttons) input.checked = false;
  }

  mark() {}

  focus() {
    (this.menu ?? (this.buttons.find(({ input }) => input.checked) ?? this.buttons[0]).input).focus();
  }
}
