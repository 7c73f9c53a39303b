// The largest total over everything that unknown answers may have been, as docs/mathematics.md, proposition 14.1, proves.
// Values from a list are tried one by one. The range of a number is cut into cells; on a cell every part of a total
// has a bound that is taken at the cell's corners, and cells are halved until the bound is close to a value reached.
// Where there are too many corners, or several classes, intervals are computed with in their place, and where there are
// too many lists of values, each value of these counts as a number between 0 and 1.

import { boxFacts } from "./boxes.js";
import { encodeFeature, encodeOutcome, encodeWhole, joined, length, nodesOf, shrinkage, UNKNOWN, valuesOf, weightOf } from "./encoding.js";
import { derivatives, lossesBetween, steepestPoint } from "./losses.js";
import { factsOfPerson, spread } from "./persons.js";
import { added, reciprocals, size, smallest, squares } from "./records.js";
import { dot } from "./softmax.js";
import { together } from "./together.js";

// More combinations than this are not tried, and after so many corners of cells the bound is what it is.
const MOST_COMBINATIONS = 4096;
const MOST_CORNERS = 4800;
const MOST_BOXES = 200;
// Up to so many corners of a cell are looked at.
const MOST_OF_CELL = 64;
// Where values of an open answer are tried to see how much it would help, and of how many answers.
const SHARES = [0.5, 0, 1, 0.25, 0.75];
const MOST_LOOKED_AT = 4;
const SMALL = 0.1;
// Larger than all rounding errors in the bound of a cell.
const ROUNDING = 1e-9;
// How close the bound need come to a total that is reached.
const CLOSE = 0.002;

const answersTo = (numbers, field) => [...valuesOf(numbers, field), ...(field.recorded ? [""] : [])];

// Whether there is a largest total over a field's values: not over those of a number without bounds.
export const mayBeUnknown = (field) => field.role === "weight" || field.kind !== "number" || field.low !== null;

// The unknown answers whose values are searched. A weight is none of them: no smaller one has a larger total.
export const searched = ({ fields }, answers) =>
  answers.flatMap((answer, place) => (answer === UNKNOWN && fields[place].role !== "weight" ? [place] : []));

// Every way to fill in the unknown answers with listed values.
function combinations(numbers, answers, places) {
  return places.reduce(
    (ways, place) =>
      ways.flatMap((way) => answersTo(numbers, numbers.fields[place]).map((value) => Object.assign([...way], { [place]: value }))),
    [answers],
  );
}

const counted = (numbers, places) =>
  places.reduce((count, place) => count * answersTo(numbers, numbers.fields[place]).length, 1);

const shareAt = ({ low, high }, value) => (value - low) / (high - low);

// Answers with a number at its low end (0), its high end (1) or between them.
function placed({ fields }, answers, shares) {
  const filled = [...answers];
  for (const [place, share] of shares) {
    const { low, high } = fields[place];
    const node = nodesOf(fields[place]).find((one) => shareAt(fields[place], one) === share);
    filled[place] = share === null ? "" : String(share === 0 ? low : share === 1 ? high : (node ?? low + share * (high - low)));
  }
  return filled;
}

// The ends of a side, and the knots between them: the columns of a number are linear from one to the next. Where it
// may not have been recorded, which has a column, there is a corner for that (null).
function pointsOf(field, [, from, to, gap]) {
  const inside = nodesOf(field).map((node) => shareAt(field, node)).filter((share) => from < share && share < to);
  return [from, ...inside, to, ...(gap ? [null] : [])];
}

// All corners of a cell, which is a list of [place, from, to, gap], and of the parts that knots cut it into.
const cornersOf = ({ fields }, cell) =>
  cell.reduce(
    (all, side) => all.flatMap((some) => pointsOf(fields[side[0]], side).map((share) => [...some, [side[0], share]])),
    [[]],
  );

const cornerCount = ({ fields }, cell) => cell.reduce((count, side) => count * pointsOf(fields[side[0]], side).length, 1);

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
  const corners = cornersOf(numbers, cell).map((corner) => encodeWhole(numbers, publication, placed(numbers, answers, corner)));
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
    added: added(publication, score, label),
    along: 0,
    releasedNorm: most("hessian"),
    logDeterminant: (l2) => Math.log1p(most("hessian") / l2),
    above: (pencil, share) => Math.log1p(smallest(bends(pencil), pencil.weights.map(share), 1)),
    below: () => 0,
  };
}

const range = (values) => [Math.min(...values), Math.max(...values)];

// What an answer may be that is no range: itself, or every value of a list that stays unknown.
const valuesAt = (numbers, answers, place) =>
  answers[place] === UNKNOWN ? answersTo(numbers, numbers.fields[place]) : [answers[place]];

// The ranges of the encoded columns and of the label. Columns of a list that stays unknown may be anything between those
// of its values.
function boxOf(numbers, publication, answers, cell) {
  const { fields, constants } = numbers;
  const [low, high] = [1, 2].map((end) => placed(numbers, answers, cell.map((side) => [side[0], side[end]])));
  const blocks = publication.features.map((place) => {
    const side = cell.find(([one]) => one === place);
    const shares = side ? pointsOf(fields[place], side) : [];
    const texts = side ? shares.map((share) => placed(numbers, answers, [[place, share]])[place]) : valuesAt(numbers, answers, place);
    const tried = texts.map((text) => encodeFeature(fields[place], text, constants.words));
    return tried[0].map((_, i) => range(tried.map((columns) => columns[i])));
  });
  const columns = joined(publication, blocks, (a, b) => range(a.flatMap((x) => b.map((y) => x * y))));
  const outcomes = [low, high].map((all) => encodeOutcome(fields[publication.outcome], all[publication.outcome], publication.labels));
  const labels = range(outcomes);
  return { columns, labels, weight: weightOf(numbers, publication, low, outcomes[0], 1).weight };
}

// The same facts by intervals.
function factsInBox(numbers, publication, answers, cell) {
  const { columns, labels, weight } = boxOf(numbers, publication, answers, cell);
  return boxFacts(numbers, publication, columns, labels, weight);
}

// The same of a record that is several rows: each is bounded on its own, and all are added up. A determinant of a sum
// is at most the product of theirs.
function spreadAtMost(numbers, publication, answers, cell) {
  const { places, coefficients: [all], plan: { l2 } } = publication;
  const { columns, labels: [label], weight } = boxOf(numbers, publication, answers, cell);
  const parts = spread(publication, { row: [], label, weight }).map(({ row, ...own }) => {
    const coefficients = [[...all.slice(0, -places), all[all.length - places + row.indexOf(1)]]];
    return boxFacts(numbers, { ...publication, coefficients, bases: [] }, columns, [own.label, own.label], own.weight);
  });
  const sum = (of) => parts.reduce((total, part) => total + of(part), 0);
  const [gradient, logDeterminant] = [sum((part) => part.gradientNorm), (penalty) => sum((part) => part.logDeterminant(penalty))];
  return {
    norm: 1,
    norm1: null,
    steepness: { fixed: numbers.constants.stretch * gradient, every: gradient },
    gradientNorm: gradient,
    along: 0,
    releasedNorm: sum((part) => part.releasedNorm),
    logDeterminant,
    above: () => logDeterminant(l2),
    below: () => 0,
    person: { distinct: parts.length, forgotten: 0, count: places },
  };
}

// Answers with the first value in the place of lists that are still unknown.
const filled = (numbers, answers) =>
  answers.map((answer, place) =>
    answer === UNKNOWN && numbers.fields[place].role !== "weight" ? answersTo(numbers, numbers.fields[place])[0] : answer,
  );

const isOpen = ({ fields }, answers) => (place) => answers[place] === UNKNOWN && fields[place].role !== "weight";

const involved = ({ features, outcome }, places) => places.some((place) => features.includes(place) || outcome === place);

// A total that no record of the cell exceeds. The side of a member is never the smaller one where no statistics were
// published, so both are read.
function atMost(numbers, answers, cell, options) {
  const middle = placed(numbers, answers, cell.map(([place, from, to]) => [place, (from + to) / 2]));
  const lists = middle.map((_, place) => place).filter(isOpen(numbers, middle));
  const facts = numbers.publications.map((publication) => {
    if (!involved(publication, [...cell.map(([place]) => place), ...lists])) return factsOfPerson(numbers, publication, [filled(numbers, middle)]);
    const cornered = publication.loss.name !== "softmax" && lists.length === 0 && cornerCount(numbers, cell) <= MOST_OF_CELL;
    const bound = publication.places ? spreadAtMost : cornered ? factsAtMost : factsInBox;
    return bound(numbers, publication, answers, cell);
  });
  return together(numbers, facts, { ...options, member: null }) * (1 + ROUNDING);
}

const exactly = (numbers, answers, options) =>
  together(numbers, numbers.publications.map((publication) => factsOfPerson(numbers, publication, [filled(numbers, answers)])), options);

function halves(cell) {
  const widths = cell.map(([, from, to]) => to - from);
  const widest = widths.indexOf(Math.max(...widths));
  const [place, from, to, gap] = cell[widest];
  const middle = (from + to) / 2;
  return [[from, middle], [middle, to]].map(([a, b]) => cell.map((side, i) => (i === widest ? [place, a, b, gap] : side)));
}

// Whether cells are boxes of intervals, each of which takes longer to look at than corners do.
const boxed = (numbers, cell) =>
  cornerCount(numbers, cell) > MOST_OF_CELL || numbers.publications.some(({ loss, places }) => loss.name === "softmax" || places);

// The ranges of the answers that are unknown, with corners for what was not recorded if there are to be `gaps`.
const wholeCell = ({ fields }, answers, places, gaps) =>
  places.filter((place) => answers[place] === UNKNOWN).map((place) => [place, 0, 1, gaps && fields[place].recorded]);

// Cells with the largest bound are halved first. Stops as soon as the bound says the same to a reader as a value
// that is reached, or lies close to it.
function overRanges(numbers, ways, places, gaps, options, same, effort) {
  const whole = wholeCell(numbers, ways[0], places, gaps);
  const most = effort * (boxed(numbers, whole) ? MOST_BOXES : MOST_CORNERS / cornerCount(numbers, whole));
  const boundOf = (answers, cell) =>
    searched(numbers, answers).length ? atMost(numbers, answers, cell, options) : exactly(numbers, answers, options);
  const made = (answers, cell) => ({ answers, cell, bound: boundOf(answers, cell) });
  let open = ways.map((answers) => made(answers, wholeCell(numbers, answers, places, gaps)));
  let reached = 0;
  for (let cells = 0; ; cells += 1) {
    const top = open.reduce((most, one) => (one.bound > most.bound ? one : most));
    const middle = placed(numbers, top.answers, top.cell.map(([place, from, to]) => [place, (from + to) / 2]));
    const ends = cells === 0 && cornerCount(numbers, top.cell) <= MOST_OF_CELL ? cornersOf(numbers, top.cell).map((corner) => placed(numbers, top.answers, corner)) : [];
    reached = Math.max(reached, ...[middle, ...ends].map((answers) => exactly(numbers, answers, { ...options, member: null })));
    const close = same(top.bound, reached) && top.bound <= reached * (1 + 10 * CLOSE);
    if (close || top.bound <= reached * (1 + CLOSE) || top.cell.length === 0 || cells > most) return top.bound;
    open = open.filter((one) => one !== top && one.bound > reached);
    open.push(...halves(top.cell).map((cell) => made(top.answers, cell)));
  }
}

// The largest total over the unknown answers, or a bound on it. `same` tells whether two totals are shown alike, and
// less than the whole effort gives a looser bound sooner.
export function largestTotal(numbers, answers, options, same = () => false, effort = 1) {
  const unknown = searched(numbers, answers);
  const ranges = unknown.filter((place) => numbers.fields[place].kind === "number");
  const lists = unknown.filter((place) => numbers.fields[place].kind !== "number");
  const most = ranges.length > 0 && boxed(numbers, wholeCell(numbers, answers, ranges, false)) ? MOST_BOXES : MOST_COMBINATIONS / 4 ** ranges.length;
  // What was not recorded is tried one by one too, where that has a column.
  const gaps = ranges.filter((place) => numbers.fields[place].recorded);
  const few = counted(numbers, lists) * 2 ** gaps.length <= effort * most;
  // Classes are always tried one by one: a loss has no value between two of them.
  const tried = few ? lists : lists.filter((place) => numbers.fields[place].role === "outcome");
  const ways = (few ? gaps : []).reduce(
    (all, place) => all.flatMap((way) => [way, Object.assign([...way], { [place]: "" })]),
    combinations(numbers, answers, tried),
  );
  if (few && ranges.length === 0) return Math.max(...ways.map((way) => exactly(numbers, way, options)));
  return overRanges(numbers, ways, ranges, !few, options, same, effort);
}

// What an answer can do: for each open one, the smallest largest total over some of its values. The best is returned as
// [place, total], or null where none helps. Each open answer is looked at, but of many only the first.
export function worthAnswering(numbers, answers, options, current) {
  const found = searched(numbers, answers).slice(0, MOST_LOOKED_AT).map((place) => {
    const field = numbers.fields[place];
    const values =
      field.kind === "number"
        ? SHARES.map((share) => placed(numbers, answers, [[place, share]])[place])
        : answersTo(numbers, field).slice(0, SHARES.length);
    const totals = values.map((value) => largestTotal(numbers, Object.assign([...answers], { [place]: value }), options, () => true, SMALL));
    return [place, Math.min(...totals)];
  });
  const best = found.reduce((least, one) => (least === null || one[1] < least[1] ? one : least), null);
  return best !== null && best[1] < current ? best : null;
}

// Whether an answer can be read by every publication that asks for it; throws a Refusal if not.
export function check({ fields, constants }, place, answer) {
  const field = fields[place];
  if (answer === UNKNOWN) return;
  if (field.role === "feature") encodeFeature(field, answer, constants.words);
  else encodeOutcome(field, answer, []);
}
