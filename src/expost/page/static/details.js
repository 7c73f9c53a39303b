// Every number that was published, as tables, and the file itself.

import { element, say } from "./language.js";
import { shown } from "./notation.js";
import { titleOfModel } from "./odds.js";
import { centring, dot } from "./softmax.js";

const SCALES = {
  sigma: "noise_model",
  sigma_gradient: "noise_gradient",
  sigma_hessian: "noise_hessian",
  sigma_eigenvalue: "noise_eigenvalue",
  sigma_recalibration: "noise_recalibration",
  l2: "l2",
  epsilon: "epsilon",
  delta: "delta",
  grid: "grid",
};

const cell = (value) => (typeof value === "number" ? shown(value) : String(value));

function tableOfRows(title, caption, rows, heads = []) {
  const head = element("tr", {}, element("td"), ...heads.map((text) => element("th", { scope: "col", textContent: text })));
  const body = rows.map(([name, ...values]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", textContent: name }),
      ...values.map((value) => element("td", { textContent: cell(value) })),
    ),
  );
  const made = element(
    "table",
    {},
    element("caption", { textContent: caption }),
    ...(heads.length ? [element("thead", {}, head)] : []),
    element("tbody", {}, ...body),
  );
  return element("div", { className: "scroll", tabIndex: 0, attributes: { role: "region", "aria-label": `${title}: ${caption}` } }, made);
}

const parameters = (thing) =>
  Object.entries(thing)
    .map(([name, value]) => (name === "name" ? value : `${name} ${cell(value)}`))
    .join("; ");

const classWeights = (classes, weights) => classes.map((name, i) => `${name}: ${shown(weights[i])}`).join(", ");

// Whether a coefficient is on a bound or, with an L1 penalty, exactly zero, else its bounds; the intercept has none.
function stateOf(corners, value, i) {
  if (corners === null) return "";
  const low = corners.low?.[i] ?? null;
  const high = corners.high?.[i] ?? null;
  const bound = value === low || value === high;
  if (value === 0 && (bound || corners.l1 > 0)) return say("experts.not_used");
  if (bound) return say("experts.at_bound");
  const ends = [low === null ? [] : `≥\u00a0${shown(low)}`, high === null ? [] : `≤\u00a0${shown(high)}`];
  return ends.flat().join(", ");
}

// Of what a column of a cycle is the cosine or the sine.
const CYCLES = { month: "month_of", weekday: "weekday_of" };

// What the page calls columns whose names have English words: those that features make, and the intercepts of rows.
function wordsOfColumns(fields, { features, outcome, places }) {
  const ofFeatures = features.flatMap((place) => {
    const { name, cycle, recorded } = fields[place];
    const circle = cycle ? ["cos", "sin"].map((part) => [`${part}(${cycle} of ${name})`, `${part}(${say(`experts.${CYCLES[cycle]}`, { name })})`]) : [];
    return recorded ? [...circle, [`${name} not recorded`, say("experts.not_recorded", { name })]] : circle;
  });
  const { asked, classes } = fields[outcome];
  const key = asked === "time" ? "period" : "above";
  const ofRows = Array.from({ length: places ?? 0 }, (_, i) => say(`experts.${key}`, { n: i + 1, name: classes[i] }));
  return { ofFeatures: new Map(ofFeatures), ofRows };
}

function namesOfColumns(fields, publication) {
  const { columns, intercept, places } = publication;
  const { ofFeatures, ofRows } = wordsOfColumns(fields, publication);
  const spoken = (name) => name.split(" × ").map((one) => ofFeatures.get(one) ?? one).join(" × ");
  const own = places ?? Number(intercept);
  const last = places ? ofRows : own ? [say("experts.intercept")] : [];
  return [...columns.slice(0, columns.length - own).map(spoken), ...last];
}

// One column, or one for each class: the coefficients of the classes sum to zero.
function coefficientTable(title, fields, publication) {
  const { loss, coefficients, corners, outcome: place } = publication;
  const [names, outcome] = [namesOfColumns(fields, publication), fields[place]];
  if (loss.name !== "softmax") {
    const rows = names.map((name, i) => {
      const state = stateOf(corners, coefficients[0][i], i);
      return [name, shown(coefficients[0][i]) + (state && ` · ${state}`)];
    });
    return tableOfRows(title, say("experts.coefficients"), rows);
  }
  const basis = centring(loss.classes);
  const rows = names.map((name, i) => {
    const column = coefficients.map((predictor) => predictor[i]);
    return [name, ...basis.map((row) => Number(dot(row, column).toPrecision(6)))];
  });
  return tableOfRows(title, say("experts.coefficients_classes"), rows, outcome.titles?.length ? outcome.titles : outcome.classes);
}

function factsOfFile(fields, publication) {
  const { plan } = publication;
  const scales = Object.entries(SCALES).filter(
    ([key]) => (plan[key] ?? null) !== null && !(key === "delta" && plan.epsilon === null),
  );
  const optional = (there, key, value) => (there ? [[say(`experts.${key}`), value()]] : []);
  return [
    [say("experts.loss"), `${say(`experts.kind_${publication.loss.name}`)} (${parameters(publication.loss)})`],
    [say("experts.norm"), publication.norm],
    ...optional(publication.max_weight !== null, "max_weight", () => publication.max_weight),
    ...optional(publication.class_weight !== null, "class_weight", () =>
      classWeights(fields[publication.outcome].classes, publication.class_weight),
    ),
    ...optional(publication.corners?.l1 > 0, "l1", () => publication.corners.l1),
    ...scales.map(([key, name]) => [say(`experts.${name}`), plan[key]]),
    ...optional(plan.reduced, "reduced", () => say("experts.reduced_value")),
    [say("experts.fingerprint"), publication.sha256],
  ];
}

// What was released with the model.
function besides({ plan: { report }, cells, moments }) {
  const after = [...(cells ? ["histogram"] : []), ...(moments ? ["moments"] : [])];
  return report === "independent" && after.length ? after : [report, ...after];
}

export function showDetails(place, fields, publications) {
  place.append(
    ...publications.map((publication, i) => [publication, `${i + 1}. ${titleOfModel(fields, publication)}`]).flatMap(([publication, title]) => [
      element("h4", { textContent: publications.length > 1 ? title : titleOfModel(fields, publication) }),
      ...besides(publication).map((key) => element("p", { textContent: say(`experts.beside_${key}`) })),
      ...(publication.insecure ? [element("p", { textContent: publication.insecure })] : []),
      tableOfRows(title, say("experts.scales"), factsOfFile(fields, publication)),
      coefficientTable(title, fields, publication),
    ]),
  );
}

// The published file as it was, from what the page holds of it: compressed, in base 64.
export async function fileText(packed) {
  const bytes = Uint8Array.from(atob(packed.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

export async function download(packed, name) {
  const address = URL.createObjectURL(new Blob([await fileText(packed)], { type: "application/json" }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
