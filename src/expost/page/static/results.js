// The result: odds in words, the interval on a scale, three figures; and the what-if curve.

import { readAll } from "./bounds.js";
import { barChart, curveChart, scaleChart } from "./chart.js";
import { numeral, spelled } from "./encoding.js";
import { element } from "./form.js";
import { capital, comparison, factor, rounded, title } from "./odds.js";

const STEPS = 80;
// How far a curve may go to either side so that its width is still finite.
const FARTHEST = Number.MAX_VALUE / 4;

export const worstCase = (publications) =>
  publications.reduce((sum, { plan }) => (sum === null || plan.epsilon === null ? null : sum + plan.epsilon), 0);

export const widthOf = (place) => Math.max(280, Math.min(place.clientWidth || 640, 760));

// A number shown rounded, with its exact value for machines.
const exact = (value, up = true) => element("data", { value: String(value), textContent: rounded(value, up) });

function figure(name, key, content, words) {
  return element(
    "div",
    { className: "figure", dataset: { figure: key } },
    element("dt", { textContent: name }),
    element("dd", {}, content, element("span", { className: "words", textContent: words })),
  );
}

const times = (loss) => (loss === 0 ? "no change of the odds" : `odds change by a factor of at most ${factor(loss)}`);

function legend(items) {
  return element(
    "ul",
    { className: "legend" },
    ...items.map(([kind, text]) => element("li", {}, element("span", { className: `swatch ${kind}` }), text)),
  );
}

function marks(total, worst) {
  const promised = worst === null ? [] : [["worst", `worst case promised to everyone: ${rounded(worst)}`]];
  return [["total", `the total: at most ${rounded(total)}`], ...promised];
}

function card(heading, reading, publication, width) {
  const worst = publication.plan.epsilon;
  const range = `${rounded(reading.lower, false)} to ${rounded(reading.upper)}`;
  const described = `The model cost you ${range}; ${marks(reading.total, worst).map(([, text]) => text).join("; ")}.`;
  const interval = element("span", {}, exact(reading.lower, false), " to ", exact(reading.upper));
  return element(
    "article",
    { className: "card" },
    ...(heading ? [element("h3", { textContent: heading })] : []),
    scaleChart({ ...reading, worst }, width, described),
    legend([["interval", `the model: ${range}`], ...marks(reading.total, worst)]),
    element(
      "dl",
      { className: "figures" },
      figure("What the model cost", "model", interval, times(reading.upper)),
      figure(
        "What the report cost",
        "report",
        exact(reading.reportCost),
        reading.reportCost === 0 ? "nothing was released beside the model" : times(reading.reportCost),
      ),
      figure("The total, at most", "total", exact(reading.total), times(reading.total)),
    ),
    element("p", { className: "comparison", textContent: comparison(reading.total, worst) }),
  );
}

export function showReadings(place, fields, publications, { readings, total }) {
  const width = widthOf(place) - 40;
  const several = publications.length > 1;
  const cards = readings.map((reading, i) =>
    card(several ? `${i + 1}. ${capital(title(fields, publications[i]))}` : "", reading, publications[i], width),
  );
  if (several) {
    const worst = worstCase(publications);
    cards.unshift(
      element(
        "article",
        { className: "card" },
        element("h3", { textContent: `All ${publications.length} publications together` }),
        scaleChart({ total, worst }, width, `All of them together cost you at most ${rounded(total)}.`),
        legend(marks(total, worst)),
        element("dl", { className: "figures" }, figure("All of them together, at most", "sum", exact(total), times(total))),
        element("p", { className: "comparison", textContent: comparison(total, worst) }),
      ),
    );
  }
  place.replaceChildren(...cards);
}

// The total of all publications with one answer replaced.
function totalWith(numbers, answers, options, place, text) {
  return readAll(numbers, Object.assign([...answers], { [place]: text }), options).total;
}

export function showWhatIf(place, numbers, answers, options, chosen) {
  const { publications, constants } = numbers;
  const field = numbers.fields[chosen];
  const width = widthOf(place);
  const at = (text) => totalWith(numbers, answers, options, chosen, text);
  const described = `How your total would change with ${field.name}.`;
  if (field.kind === "number") {
    const typed = numeral(answers[chosen]);
    const own = Number.isNaN(typed) ? field.missing : typed;
    const reach = Math.min(Math.max(1, 2 * Math.abs(own), ...publications.map(({ norm }) => norm)), FARTHEST);
    const [low, high] = [field.low ?? field.least ?? -reach, field.high ?? field.most ?? reach];
    const points = Array.from({ length: STEPS + 1 }, (_, i) => low + (high - low) * (i / STEPS)).map((x) => ({
      x,
      y: at(String(x)),
    }));
    const here = { x: Math.min(Math.max(own, low), high), y: at(String(own)) };
    place.replaceChildren(curveChart(points, here, width, described, field.name));
    return;
  }
  const values = field.categories ?? field.classes ?? [true, false].map((value) => spelled(constants.words, value));
  const bars = values.map((name) => ({ name, y: at(name), text: rounded(at(name)) }));
  place.replaceChildren(barChart(bars, answers[chosen], width, described));
}
