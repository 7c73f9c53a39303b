// Several publications: what each can give away on its own, and all of them together.

import { day, element, language, say } from "./language.js";
import { rightOfHundred, titleOfModel } from "./odds.js";
import { inOrder } from "./together.js";

const step = (when, figure, text, className = "") =>
  element(
    "li",
    { className },
    element("span", { className: "when", textContent: when }),
    element("b", {}, figure),
    element("p", { textContent: text }),
  );

const figureOf = (total) =>
  total === null
    ? say("timeline.step_waiting")
    : element("data", { value: String(total), textContent: say("timeline.figure", { n: rightOfHundred(total) }) });

function stepOf(fields, publication, total, number) {
  const { plan, texts } = publication;
  const title = titleOfModel(fields, publication);
  const purpose = texts.purpose && [null, undefined, language()].includes(texts.language) ? `${say("timeline.purpose", texts)} ` : "";
  const promise = plan.epsilon === null ? say("timeline.step_none") : say("timeline.step", { n: rightOfHundred(plan.epsilon) });
  const text = `${title}. ${purpose}${promise}`;
  return step(texts.date ? day(texts.date) : `${number}.`, figureOf(total), text);
}

const onTheWay = (wallet) =>
  element(
    "p",
    { className: "intro wallet" },
    element("b", {}, say("timeline.wallet"), " ", figureOf(wallet), "."),
    ` ${say("timeline.wallet_text")}`,
  );

// `singles` are the totals of the publications on their own, null where they are not known. `wallet` is what holds
// however they were chosen, undefined where nobody has one.
export function showTimeline(place, { fields, publications }, singles, { total, promise, wallet }) {
  const count = publications.length;
  if (count < 2) return;
  place.hidden = false;
  const last =
    promise === null ? say("timeline.last_none", { count }) : say("timeline.last_text", { count, n: rightOfHundred(promise.epsilon) });
  place.replaceChildren(
    element("h2", { id: "timeline-title", textContent: say("timeline.title") }),
    element("p", { className: "intro", textContent: say("timeline.intro", { count }) }),
    element(
      "ol",
      { className: "steps" },
      step(say("timeline.before"), say("timeline.luck"), say("timeline.before_text")),
      ...inOrder(publications).map((i, number) => stepOf(fields, publications[i], singles[i], number + 1)),
      step(say("timeline.last"), figureOf(total), last, "last"),
    ),
    ...(wallet === undefined ? [] : [onTheWay(wallet)]),
  );
}
