// The experts' figures: every number with its exact value, and the total along one answer.

import { readPerson } from "./bounds.js";
import { barChart, curveChart } from "./chart.js";
import { answerTitle } from "./control.js";
import { daysOf, numeral, UNKNOWN, valuesOf } from "./encoding.js";
import { element, language, say, titleOf } from "./language.js";
import { percentText, shown } from "./notation.js";
import { factor, percent, rounded, sureness, titleOfModel } from "./odds.js";

const STEPS = 80;
// How far a curve may go to either side so that its width is still finite.
const FARTHEST = Number.MAX_VALUE / 4;

// A number shown rounded, with its exact value for machines.
const exact = (value, up = true) => element("data", { value: String(value), textContent: rounded(value, up) });

const guarantee = ({ epsilon, delta }) =>
  epsilon === null ? say("experts.row_none") : `${shown(epsilon)}; ${shown(delta)}`;

const interval = ({ lower, upper }) => element("span", {}, exact(lower, false), " – ", exact(upper));

const share = (total, epsilon) => (epsilon === null || !Number.isFinite(total) ? "–" : percentOf(total / epsilon));

const percentOf = (part) => percentText(shown(Math.ceil(1000 * part - 1e-9) / 10));

// One row for each figure: its name, its key, and what it is in each column.
function rowsOf({ readings, total, publications, promise, partly }) {
  const columns = readings.map((reading, i) => ({ reading, plan: publications[i].plan }));
  const several = columns.length > 1;
  const each = (make) => columns.map(({ reading, plan }) => make(reading, plan));
  const row = (name, key, cells, sum) => ({ name, key, cells: several ? [...cells, sum] : cells });
  return [
    row("row_promise", "promise", each((_, plan) => guarantee(plan)), promise === null ? say("experts.row_none") : guarantee(promise)),
    row("row_model", "model", each((reading) => (partly ? "–" : interval(reading))), "–"),
    row("row_report", "report", each((reading) => (partly ? "–" : exact(reading.reportCost))), "–"),
    row("row_cell", "cell", each(({ cell }) => (cell ? shown(Math.round(cell)) : "–")), "–"),
    row("row_chosen", "chosen", each(({ chosen }) => exact(chosen)), "–"),
    row("row_total", "total", each((reading) => exact(reading.total)), element("span", { dataset: { figure: "sum" } }, exact(total))),
    row("row_share", "share", each((reading, plan) => share(reading.total, plan.epsilon)), share(total, promise?.epsilon ?? null)),
    row("row_factor", "factor", each((reading) => factor(reading.total)), factor(total)),
    row("row_belief", "belief", each((reading) => percent(sureness(reading.total))), percent(sureness(total))),
  ].filter(({ key }) => !["cell", "chosen"].includes(key) || publications.some((one) => one[key === "cell" ? "cells" : key]));
}

// The table of figures, or a sentence where there are none.
export function showFigures(place, fields, view) {
  const { readings, publications, confidence, member, every, partly } = view;
  if (readings === null) {
    place.replaceChildren(element("p", { textContent: say("experts.figures_waiting") }));
    return;
  }
  const several = publications.length > 1;
  const heads = several ? [...publications.map((one) => titleOfModel(fields, one)), say("experts.together")] : [];
  const head = element("tr", {}, element("td"), ...heads.map((text) => element("th", { scope: "col", textContent: text })));
  const all = (name, text) => ({ name, key: name, cells: [text] });
  const membership = say(`experts.member_${member === null ? "unknown" : member ? "yes" : "no"}`);
  const rows = [
    ...rowsOf(view),
    all("row_confidence", confidence),
    all("row_scope", `${membership}; ${say(every ? "experts.scope_every" : "experts.scope_fixed")}`),
  ];
  const body = rows.map(({ name, key, cells }) =>
    element(
      "tr",
      { dataset: { figure: key } },
      element("th", { scope: "row", textContent: say(`experts.${name}`) }),
      ...cells.map((cell) => element("td", { className: "n", colSpan: cells.length < heads.length ? heads.length : 1 }, cell)),
    ),
  );
  place.replaceChildren(
    element("table", {}, ...(several ? [element("thead", {}, head)] : []), element("tbody", {}, ...body)),
    ...(partly ? [element("p", { className: "small quiet", textContent: say("experts.figures_unknown") })] : []),
  );
}

// The values of a number that a curve runs over, and the person's own.
function span({ publications }, field, answer) {
  const spelt = (text) => (field.date && !Number.isNaN(daysOf(String(text))) ? daysOf(String(text)) : numeral(String(text)));
  const typed = spelt(answer);
  const otherwise = answer === UNKNOWN ? field.most : field.missing;
  const own = Number.isNaN(typed) ? spelt(otherwise) : typed;
  const reach = Math.min(Math.max(1, 2 * Math.abs(own), ...publications.map(({ norm }) => norm)), FARTHEST);
  const [low, high] = [field.low ?? field.least ?? -reach, field.high ?? field.most ?? reach];
  return { own, low, high, values: Array.from({ length: STEPS + 1 }, (_, i) => low + (high - low) * (i / STEPS)) };
}

// A day at the axis of a curve: the month, and which day of it where there are few.
function dayMark({ low, high }) {
  const few = high - low < 200 ? { day: "numeric" } : {};
  const format = new Intl.DateTimeFormat(language(), { ...few, month: "short", year: "numeric", timeZone: "UTC" });
  return (days) => format.format(days * 86_400_000);
}

// How the total moves with one answer; `totalOf` tells it for all answers.
export function showCurve(place, numbers, answers, chosen, totalOf, width) {
  if (answers === null) {
    place.replaceChildren();
    return;
  }
  const field = numbers.fields[chosen];
  const at = (text) => totalOf(Object.assign([...answers], { [chosen]: text }));
  const title = titleOf(field);
  const described = (totals) =>
    say("experts.curve_label", { title, low: rounded(Math.min(...totals), false), high: rounded(Math.max(...totals)) });
  if (field.kind === "number") {
    const { own, low, high, values } = span(numbers, field, answers[chosen]);
    const points = values.map((x) => ({ x, y: at(String(x)) }));
    const here = { x: Math.min(Math.max(own, low), high), y: at(answers[chosen]) };
    const axis = say("experts.axis");
    place.replaceChildren(curveChart(points, here, width, described(points.map(({ y }) => y)), title, axis, field.date ? dayMark(field) : null));
    return;
  }
  const bars = valuesOf(numbers, field).map((value) => {
    const y = at(value);
    return { value, name: answerTitle(numbers, field, value), y, text: rounded(y) };
  });
  place.replaceChildren(barChart(bars, answers[chosen], width, described(bars.map(({ y }) => y))));
}

export const readingsOf = (numbers, rows, forgotten, options) =>
  numbers.publications.map((publication) => readPerson(numbers, publication, rows, forgotten, options));
