// The largest total over everything that unknown answers may have been, as docs/mathematics.md, section 14, proves.
// Values from a list are tried one by one. The range of a number is cut into cells; on a cell every part of a total
// has a bound that is taken at the cell's corners, and cells are halved until the bound is close to a value reached.

import { encodeFeature, encodeOutcome, encodeWhole, length, shrinkage, spelled, UNKNOWN } from "./encoding.js";
import { derivatives, lossesBetween, steepestPoint } from "./losses.js";
import { factsOf, reciprocals, size, smallest, squares } from "./records.js";
import { dot } from "./softmax.js";
import { together } from "./together.js";

// More combinations than this are not tried, and after so many corners of cells the bound is what it is.
const MOST_COMBINATIONS = 4096;
const MOST_CORNERS = 4800;
// Larger than all rounding errors in the bound of a cell.
const ROUNDING = 1e-9;
// How close the bound need come to a total that is reached.
const CLOSE = 0.002;

const valuesOf = ({ constants }, field) =>
  field.categories ?? field.classes ?? [true, false].map((value) => spelled(constants.words, value));

// Whether the largest total over a field's values is proved: any listed values, a weight, and numbers with bounds where
// every publication that uses them has a single linear predictor.
export function mayBeUnknown({ publications }, field, place) {
  if (field.role === "weight") return true;
  if (field.kind !== "number") return true;
  if (field.low === null) return false;
  return publications
    .filter(({ features, outcome }) => features.includes(place) || outcome === place)
    .every(({ loss }) => loss.name !== "softmax");
}

// The unknown answers whose values are searched. A weight is none of them: no smaller one has a larger total.
export const searched = ({ fields }, answers) =>
  answers.flatMap((answer, place) => (answer === UNKNOWN && fields[place].role !== "weight" ? [place] : []));

// Every way to fill in the unknown answers with listed values.
function combinations(numbers, answers, places) {
  return places.reduce(
    (ways, place) =>
      ways.flatMap((way) => valuesOf(numbers, numbers.fields[place]).map((value) => Object.assign([...way], { [place]: value }))),
    [answers],
  );
}

const counted = (numbers, places) =>
  places.reduce((count, place) => count * valuesOf(numbers, numbers.fields[place]).length, 1);

// Answers with a number at its low end (0), its high end (1) or between them.
function placed({ fields }, answers, shares) {
  const filled = [...answers];
  for (const [place, share] of shares) {
    const { low, high } = fields[place];
    filled[place] = String(share === 0 ? low : share === 1 ? high : low + share * (high - low));
  }
  return filled;
}

// All corners of a cell, which is a list of [place, from, to].
const cornersOf = (cell) =>
  cell.reduce((all, [place, from, to]) => all.flatMap((some) => [[...some, [place, from]], [...some, [place, to]]]), [[]]);

// The smallest size of a number between two others.
const nearest = (a, b) => (a * b <= 0 ? 0 : Math.min(Math.abs(a), Math.abs(b)));

// Points whose convex hull holds every row of the cell as the mechanism sees it, and the lengths of these rows.
function hull(numbers, publication, rows) {
  const { norm, intercept } = publication;
  const columns = rows[0].length;
  const longest = Math.max(...rows.map(length));
  const shortest = length(
    rows[0].map((_, j) => nearest(Math.min(...rows.map((row) => row[j])), Math.max(...rows.map((row) => row[j])))),
  );
  const scale = (long) => shrinkage(long, columns, norm, intercept, numbers.constants);
  const scales = [...new Set([scale(longest), scale(shortest)])];
  const end = intercept ? [1] : [];
  return {
    points: scales.flatMap((one) => rows.map((row) => [...row.map((x) => x * one), ...end])),
    norm: Math.hypot(Math.min(longest, norm), ...end),
    least: Math.hypot(Math.min(shortest, norm) * (1 - ROUNDING), ...end),
  };
}

// What is read of a record at most, over a cell.
function factsAtMost(numbers, publication, answers, cell) {
  const { loss, coefficients, bases, outcome } = publication;
  const corners = cornersOf(cell).map((corner) => encodeWhole(numbers, publication, placed(numbers, answers, corner)));
  const { points, norm, least } = hull(numbers, publication, corners.map(({ row }) => row));
  const scores = points.map((point) => dot(point, coefficients[0]));
  const score = [Math.min(...scores), Math.max(...scores)];
  const labels = corners.map(({ label }) => label);
  const label = cell.some(([place]) => place === outcome) ? [Math.min(...labels), Math.max(...labels)] : [labels[0], labels[0]];
  const { weight } = corners[0];
  // Slopes rise with the score and fall with the label, so the largest is at an end. Rows of every length have a loss.
  const parts = lossesBetween(loss, least, norm, points[0].length).map(({ loss: own, length: long }) => {
    const ends = [derivatives(own, score[0], label[1])[0], derivatives(own, score[1], label[0])[0]];
    const steep = weight * Math.max(...ends.map(Math.abs));
    const bend = weight * derivatives(own, ...steepestPoint(own, score, label))[1];
    return { steep, bend, gradient: steep * long, hessian: bend * long ** 2 };
  });
  const most = (name) => Math.max(...parts.map((part) => part[name]));
  const [steepness, curvature] = [most("steep"), most("bend")];
  const coordinates = bases.map((basis) => points.map((point) => squares(point, basis)));
  const bends = (pencil) =>
    reciprocals(pencil).map((scale) => curvature * Math.max(...coordinates[pencil.basis].map((parts) => dot(parts, scale))));
  return {
    norm,
    norm1: Math.max(...points.map((point) => point.reduce((sum, x) => sum + Math.abs(x), 0))),
    steepness: { fixed: steepness, every: steepness },
    gradientNorm: most("gradient"),
    along: 0,
    releasedNorm: most("hessian"),
    logDeterminant: (l2) => Math.log1p(most("hessian") / l2),
    above: (pencil, share) => Math.log1p(smallest(bends(pencil), pencil.weights.map(share), 1)),
    below: () => 0,
  };
}

const involved = (publication, cell) =>
  cell.some(([place]) => publication.features.includes(place) || publication.outcome === place);

// A total that no record of the cell exceeds. The side of a member is never the smaller one where no statistics were
// published, so both are read.
function atMost(numbers, answers, cell, options) {
  const middle = placed(numbers, answers, cell.map(([place, from, to]) => [place, (from + to) / 2]));
  const facts = numbers.publications.map((publication) =>
    involved(publication, cell)
      ? factsAtMost(numbers, publication, answers, cell)
      : factsOf(numbers, publication, middle),
  );
  return together(numbers, facts, { ...options, member: null }) * (1 + ROUNDING);
}

const exactly = (numbers, answers, options) =>
  together(numbers, numbers.publications.map((publication) => factsOf(numbers, publication, answers)), options);

function halves(cell) {
  const widths = cell.map(([, from, to]) => to - from);
  const widest = widths.indexOf(Math.max(...widths));
  const [place, from, to] = cell[widest];
  const middle = (from + to) / 2;
  return [[from, middle], [middle, to]].map(([a, b]) => cell.map((side, i) => (i === widest ? [place, a, b] : side)));
}

// Cells with the largest bound are halved first. Stops as soon as the bound says the same to a reader as a value
// that is reached, or lies close to it.
function overRanges(numbers, ways, places, options, same) {
  const made = (answers, cell) => ({ answers, cell, bound: atMost(numbers, answers, cell, options) });
  const whole = places.map((place) => [place, 0, 1]);
  let open = ways.map((answers) => made(answers, whole));
  let reached = 0;
  for (let cells = 0; ; cells += 1) {
    const top = open.reduce((most, one) => (one.bound > most.bound ? one : most));
    const middle = placed(numbers, top.answers, top.cell.map(([place, from, to]) => [place, (from + to) / 2]));
    const ends = cells === 0 ? cornersOf(top.cell).map((corner) => placed(numbers, top.answers, corner)) : [];
    reached = Math.max(reached, ...[middle, ...ends].map((answers) => exactly(numbers, answers, { ...options, member: null })));
    const close = same(top.bound, reached) && top.bound <= reached * (1 + 10 * CLOSE);
    if (close || top.bound <= reached * (1 + CLOSE) || !Number.isFinite(top.bound) || cells * 2 ** places.length > MOST_CORNERS) return top.bound;
    open = open.filter((one) => one !== top && one.bound > reached);
    open.push(...halves(top.cell).map((cell) => made(top.answers, cell)));
  }
}

// The largest total over the unknown answers; null where there are too many of them to say. `same` tells whether two
// totals are shown alike.
export function largestTotal(numbers, answers, options, same = () => false) {
  const unknown = searched(numbers, answers);
  const ranges = unknown.filter((place) => numbers.fields[place].kind === "number");
  const lists = unknown.filter((place) => numbers.fields[place].kind !== "number");
  const tried = counted(numbers, lists);
  if (tried * 4 ** ranges.length > MOST_COMBINATIONS) return null;
  const ways = combinations(numbers, answers, lists);
  if (ranges.length > 0) return overRanges(numbers, ways, ranges, options, same);
  return Math.max(...ways.map((way) => exactly(numbers, way, options)));
}

// Whether an answer can be read by every publication that asks for it; throws a Refusal if not.
export function check({ fields, constants }, place, answer) {
  const field = fields[place];
  if (answer === UNKNOWN) return;
  if (field.role === "feature") encodeFeature(field, answer, constants.words);
  else encodeOutcome(field, answer, []);
}
