// Next to the form: how far she has come, and her number. For print: her answers. For screen readers: one sentence when
// the result changes.

import { answerTitle } from "./control.js";
import { element, say, sayCount, titleOf } from "./language.js";
import { rightOfHundred } from "./odds.js";

// So long after the last change the result is read out.
const PAUSE = 900;

export class Side {
  constructor(place, see) {
    this.figure = element("b");
    this.words = element("span", { className: "words" });
    this.count = element("b", { className: "count" });
    this.left = element("span", { className: "quiet" });
    this.bar = element("progress", { max: 1, value: 0, attributes: { "aria-label": say("form.panel") } });
    this.button = element("button", { type: "button", className: "btn main", textContent: say("form.see") });
    this.button.addEventListener("click", see);
    place.append(
      element("p", { className: "now" }, element("span", { className: "name", textContent: say("form.panel") }), this.figure, this.words),
      element("p", { className: "top" }, this.count, " ", this.left),
      this.bar,
      this.button,
    );
    this.place = place;
  }

  show({ state, total, done, all }) {
    const own = state === "own";
    const waiting = ["waiting", "refused", "crowded", "uncounted"].includes(state);
    this.place.classList.toggle("own", own);
    this.figure.textContent = own ? String(rightOfHundred(total)) : "–";
    this.words.textContent = say(own ? "form.panel_value" : waiting ? "form.panel_waiting" : "form.panel_later");
    this.count.textContent = say("form.progress", { done, all });
    this.left.textContent = done < all ? say("form.progress_left", { count: all - done }) : "";
    this.bar.max = all;
    this.bar.value = done;
    this.button.hidden = !own;
  }
}

const answered = (numbers, field, answer) =>
  element("div", {}, element("dt", { textContent: titleOf(field) }), element("dd", { textContent: answerTitle(numbers, field, answer) }));

// Her answers for the printed page: all of the first row, and of the others what differs from the one before.
export function showAnswers(place, numbers, { state, rows, places, records, forgotten, ofPerson, words }) {
  if (state !== "own") {
    place.replaceChildren();
    return;
  }
  const { fields } = numbers;
  const dense = fields.length > 18 || records > 3 ? "answers dense" : "answers";
  const list = (answers, before) => {
    const shown = fields.flatMap((field, i) => (before && before[i] === answers[i] ? [] : [answered(numbers, field, answers[i])]));
    return shown.length ? element("dl", { className: dense }, ...shown) : element("p", { textContent: say("form.same_as_before") });
  };
  const title = (number) => say(ofPerson ? "form.card" : "form.relative", { ...words, number });
  const row = (answers, i) =>
    element("div", {}, element("h3", { textContent: title(places[i] + 1) }), list(answers, ofPerson ? rows[i - 1] : null));
  place.replaceChildren(
    element("h2", { textContent: say("form.answers") }),
    ...(ofPerson && rows.length > 1 ? [element("p", { textContent: say("form.only_changes") })] : []),
    ...(records === 1 ? [list(rows[0], null)] : [element("div", { className: ofPerson ? "visits" : "" }, ...rows.map(row))]),
    ...(forgotten ? [element("p", { textContent: sayCount("answer.forgotten", forgotten, words) })] : []),
  );
}

// Tells those who do not see the page, once she pauses.
export class Announcer {
  constructor(place) {
    Object.assign(this, { place, told: null, timer: 0 });
  }

  tell({ state, total }) {
    const own = state === "own";
    const text = own ? say("answer.announce", { n: rightOfHundred(total) }) : say("answer.announce_waiting");
    const due = own || (this.told !== null && !["example", "partial"].includes(state));
    clearTimeout(this.timer);
    if (!due || text === this.told) return;
    this.timer = setTimeout(() => {
      this.told = text;
      this.place.textContent = text;
    }, PAUSE);
  }
}
