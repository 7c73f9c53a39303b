// The answer: what it is about, one sentence, three pictures, and the reservations.

import { element, paragraph, rich, say, sayCount } from "./language.js";
import { percentText } from "./notation.js";
import { rare, rightOfHundred, timesRight } from "./odds.js";
import { people, sample } from "./people.js";

const pill = (state) => element("span", { className: "pill", textContent: say(`answer.${state}_pill`) });

function statusOf(view) {
  const { state, done, all, title, values, line } = view;
  if (state === "own" && view.records > 1) {
    return ["own", say(view.ofPerson ? "answer.rows_status" : "answer.family_status", { ...view.words, count: view.records }), "change"];
  }
  if (state === "own") return ["own", line ? say("answer.row_status", { line }) : say("answer.own_status"), "change"];
  if (state === "uncounted") return ["waiting", say("answer.uncounted_status", view.words), "fix"];
  if (state === "waiting") return ["waiting", say("answer.waiting_status", { title }), "fix"];
  if (state === "refused") return ["waiting", say("answer.refused_status", { reason: view.reason }), "fix"];
  if (state === "crowded") return ["waiting", say("answer.many_open_status"), "fix"];
  if (state === "partial") return ["example", say("answer.partial_status", { done, all }), "go_on"];
  return ["example", values ? say("answer.example_values", { values }) : say("answer.example_status"), "enter"];
}

function status(view) {
  const [kind, text, action] = statusOf(view);
  const about = element("span", { className: "about", textContent: text });
  // At first the page's one solid button leads to the form; this one is for whoever comes to the answer by keyboard.
  const className = action === "enter" ? "btn text" : "btn";
  const button = element("button", { type: "button", className, textContent: say(`answer.${action}`) });
  button.addEventListener("click", () => view.act());
  return element("div", { className: "status" }, pill(kind), about, button);
}

// The headline and the sentence under it.
function spoken({ total, state, member, count, promise, records, ofPerson }) {
  if (total === null) {
    const text = promise === null ? ["answer.waiting_plain"] : ["answer.waiting_text", { n: rightOfHundred(promise.epsilon) }];
    return [element("h2", { id: "headline", textContent: say("answer.headline_waiting") }), paragraph("", ...text)];
  }
  const n = rightOfHundred(total);
  const family = records > 1 && !ofPerson;
  const whose = state !== "own" ? "example" : family ? "family" : member === false ? "outside" : ofPerson ? "person" : "you";
  return [
    element("h2", { id: "headline" }, ...rich("answer.headline", { n, count })),
    paragraph("", `answer.picture_${whose}`, { n }),
  ];
}

// The answer's sentences and pictures. Those of the example are shown first as pictures: nothing there is hers.
function said(view, pictures) {
  const [headline, text] = spoken(view);
  const block = (...parts) => element("div", { className: "say" }, ...parts);
  const own = !["example", "partial"].includes(view.state);
  const between = flags({ ...view, cover: () => view.cover() });
  return own ? [block(headline, text), ...between, pictures] : [block(headline), ...between, pictures, element("div", { className: "after" }, text)];
}

function panel(className, title, sub, figure, picture, caption, sure = "\u00a0") {
  return element(
    "figure",
    { className: `panel ${className}` },
    element("h3", { textContent: title }),
    element("p", { className: "fig" }, element("small", { textContent: sub }), element("b", { textContent: figure }), element("small", { className: "sure", textContent: sure })),
    ...(picture ? [picture] : []),
    element("figcaption", { textContent: caption }),
  );
}

function yours({ total, state, records, ofPerson, confidence }) {
  const you = records > 1 && !ofPerson ? "answer.after_family" : "answer.after_you";
  const title = say(state === "own" || total === null ? you : "answer.after_example");
  if (total === null) return panel("you", title, "\u00a0", "–", people(null), say("answer.after_waiting"));
  const n = rightOfHundred(total);
  const caption = say("answer.after_caption", { more: n - 50, wrong: 100 - n });
  return panel("you", title, say("answer.at_most"), percentText(n), people(n), caption, say("answer.after_sure", timesRight(confidence)));
}

function everyones({ promise, insecure, records, ofPerson, words, lacks }) {
  const family = records > 1 && !ofPerson;
  const title = family ? say("answer.promise_family", { count: records }) : say("answer.promise", words);
  const none = family && !lacks ? "answer.promise_family_none" : "answer.promise_none_caption";
  if (promise === null) return panel("all none", title, "\u00a0", say("answer.promise_none"), null, say(none));
  const n = rightOfHundred(promise.epsilon);
  const caption = insecure
    ? say("answer.promise_void")
    : say(family ? "answer.promise_family_caption" : "answer.promise_caption", { ...words, more: n - 50 });
  const sure = insecure ? undefined : say("answer.promise_sure", { rare: rare(promise.delta) });
  return panel("all", title, say("answer.at_most"), percentText(n), people(n), caption, sure);
}

const before = () =>
  panel("before", say("answer.before"), say("answer.before_sub"), percentText(50), people(50), say("answer.before_caption"));

function key(promise) {
  const more = [sample("more", "you"), ...(promise === null ? [] : [sample("more", "all")])];
  const item = (drawings, text) => element("li", {}, ...drawings, text);
  return element(
    "ul",
    { className: "key" },
    item([sample("luck")], say("answer.key_luck")),
    item(more, say("answer.key_more")),
    item([sample("wrong")], say("answer.key_wrong")),
  );
}

function flags(view) {
  const { total, promise, clipped, open, tried, crowded, state, insecure } = view;
  const found = insecure ? [paragraph("", "answer.void")] : [];
  if (total !== null && promise !== null && rightOfHundred(total) > rightOfHundred(promise.epsilon)) found.push(element("p", {}, ...rich("answer.above")));
  if (total !== null && rightOfHundred(total) === 100) found.push(paragraph("", "answer.no_limit"));
  if (state === "own" && clipped.length) found.push(paragraph("", "answer.clipped", { titles: clipped.join(", ") }));
  if (state === "own" && open > 0) found.push(element("p", { textContent: sayCount("answer.open", open) }));
  if (view.worth) found.push(paragraph("", "answer.worth", view.worth));
  if (crowded) found.push(paragraph("", view.ofPerson ? "answer.all_forgotten" : "answer.family_open", view.words));
  if (state === "own" && view.forgotten > 0) found.push(element("p", { textContent: sayCount("answer.forgotten", view.forgotten, view.words) }));
  if (state === "own" && tried) {
    const button = element("button", { type: "button", className: "btn text", textContent: say("answer.tried_every") });
    button.addEventListener("click", () => view.cover());
    found.push(element("p", {}, say("answer.tried"), " ", button));
  }
  return found.length ? [element("div", { className: "flag" }, ...found)] : [];
}

function notes({ every, confidence }) {
  const note = (name, text, named) => element("div", {}, element("h3", { textContent: say(name) }), paragraph("", text, named));
  return element(
    "div",
    { className: "notes" },
    note("answer.limit", "answer.limit_text"),
    note("answer.sure", every ? "answer.sure_every" : "answer.sure_text", timesRight(confidence)),
    note("answer.start", "answer.start_text"),
  );
}

// Draws the answer anew where it says something else than before.
export class Answer {
  constructor(place) {
    this.place = place;
    this.told = "";
  }

  show(view) {
    const told = JSON.stringify(view);
    this.view = view;
    if (told === this.told) return;
    this.told = told;
    const own = { own: "own", example: "example", partial: "example" }[view.state] ?? "paused";
    const focused = this.place.contains(document.activeElement) && document.activeElement.tagName === "BUTTON";
    this.place.className = `answer ${own}`;
    this.place.hidden = false;
    this.place.replaceChildren(
      status({ ...view, act: () => this.view.act() }),
      ...said({ ...view, cover: () => this.view.cover() }, element("div", { className: "trio" }, before(), yours(view), everyones(view))),
      key(view.promise),
      notes(view),
    );
    if (focused) this.place.querySelector("button")?.focus();
  }
}
