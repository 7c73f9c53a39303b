// What a publication cost a record, with the same terms in the same order as in expost.reports.

import { shareOf } from "./encoding.js";
import { factsOfPerson } from "./persons.js";
import { quantilesFor } from "./quantiles.js";

// Bounds on the determinant term, from what is known about the record's leverage.
function determinant(publication, quantiles, facts, member) {
  const sided = (small, large) => (member ? [small, large] : [-large, -small]);
  if (quantiles.public === null) return sided(0, facts.logDeterminant(publication.plan.l2));
  let large = facts.above(quantiles.public, (weight) => (member ? weight : 0));
  if (quantiles.adaptive !== null) large = Math.min(large, facts.above(quantiles.adaptive, () => (member ? 1 : 0)));
  const small = quantiles.upper === null ? 0 : facts.below(quantiles.upper, member);
  return sided(Math.min(small, large), large);
}

const reach = (facts, [norm, norm1]) =>
  norm1 === null ? facts.norm * norm : Math.min(facts.norm * norm, facts.norm1 * norm1);

// Bounds on the inner product of the record's gradient with the noise.
function innerProduct({ plan }, facts, { noise, gradient, scope }, member) {
  const steepness = facts.steepness[scope];
  // With corners the noise also reaches so much further by the gradient's length, and whatever it is.
  const [, , slope, rest] = noise;
  const width = (steepness * reach(facts, noise)) / plan.sigma + ((slope * facts.gradientNorm) / plan.sigma + rest);
  if (gradient === null) return [-width, width];
  const together = Math.hypot(plan.sigma, plan.sigma_gradient);
  const centre = ((member ? -1 : 1) * facts.along) / together ** 2;
  const narrow = steepness * reach(facts, gradient) * (plan.sigma_gradient / (plan.sigma * together));
  const low = Math.max(centre - narrow, -width);
  const high = Math.min(centre + narrow, width);
  if (low <= high) return [low, high];
  // The intervals are disjoint only where one of them has failed; then return one that covers both.
  return [Math.min(centre - narrow, -width), Math.max(centre + narrow, width)];
}

const NONE = { determinant: 0, length: 0, product: 0, steep: 0, curved: 0, shift: 0, reached: 0 };

// What rows of which nothing is known can add at most, as in expost.reports.forgotten.
function worst({ plan, largest_row: largest, ...publication }, { forgotten, whole }, { person }) {
  if (!person?.forgotten) return NONE;
  const weight = shareOf({ plan, ...publication }, person.count);
  const all = person.forgotten * weight;
  const [noise, model, statistics] = forgotten;
  const slope = largest.slope ?? Infinity;
  const gradient = plan.sigma_gradient === null ? 0 : (largest.gradient ?? Infinity);
  const [steep, curved] = [all * Math.hypot(slope / plan.sigma, gradient), all * largest.curved];
  const parts = [model * steep, statistics * curved];
  return {
    determinant: person.forgotten * largest.rank * Math.log1p((weight * largest.curvature) / plan.l2),
    length: all * slope,
    product: (all * slope * noise) / plan.sigma,
    steep,
    curved,
    shift: all * Math.hypot(gradient, largest.curved),
    reached: whole?.[2] ? parts[0] + parts[1] : Math.hypot(...parts),
  };
}

// `wider` is larger than every rounding error in adding up the terms, so that rounding only widens intervals. Under an
// unknown weight or with forgotten rows each term lies anywhere between zero and what it is at the largest.
function interval({ plan }, facts, more, wider, first, third) {
  const atMost = facts.atMost || more !== NONE;
  const spread = ([low, high]) => (atMost ? [Math.min(low, 0), Math.max(high, 0)] : [low, high]);
  const [[t1Low, t1High], [t3Low, t3High]] = [first, third].map(spread);
  const t2 = 0.5 * ((facts.gradientNorm + more.length) / plan.sigma) ** 2;
  const slack = wider * (Math.abs(t1Low) + Math.abs(t1High) + t2 + Math.abs(t3Low) + Math.abs(t3High));
  // If a term is beyond double precision, the lower end is zero and the upper end infinite.
  if (!Number.isFinite(slack)) return { lower: 0, upper: Infinity };
  const low = t1Low + (atMost ? 0 : t2) + t3Low - slack;
  const high = t1High + t2 + t3High + slack;
  return { lower: Math.max(low, -high, 0), upper: Math.max(high, -low) };
}

// How many records of the table are hers: one, where that is several rows.
const recordsOf = (places, person) => (places ? 1 : (person?.count ?? 1));

const part = (sensitivity, sigma, error) => (sigma === null ? 0 : sensitivity / sigma + 2 * error);

// How far a gradient of this length moves the noise of the objective and of the gradient, in units of each. Each known
// row of a family weighs as much as one.
function steepOf({ plan, rounding, places }, { person }, length) {
  const weight = plan.unit === "row" ? recordsOf(places, person) - (person?.forgotten ?? 0) : 1;
  const gradient = length + weight * rounding.slope * plan.sigma;
  return {
    model: gradient / plan.sigma,
    gradient: part(gradient, plan.sigma_gradient, rounding.errors.gradient),
  };
}

// How far the record moves the statistics of its curvature, in units of their noise; with the solver's part, which
// the printed coefficients may tell.
function curvedOf({ plan, rounding: { curvature: drift, errors } }, facts, solver) {
  const curvature = facts.releasedNorm * (1 + drift);
  return Math.hypot(
    solver,
    part(Math.SQRT1_2 * curvature, plan.sigma_hessian, errors.hessian),
    part(curvature, plan.sigma_eigenvalue, errors.eigenvalue),
    (facts.added ?? 1) / (plan.sigma_recalibration ?? Infinity),
  );
}

function oneSide({ slack }, publication, quantiles, facts, member) {
  const more = worst(publication, quantiles, facts);
  const [low, high] = determinant(publication, quantiles, facts, member);
  const t1 = member ? [low, high + more.determinant] : [low - more.determinant, high];
  const [least, most] = innerProduct(publication, facts, quantiles, member);
  const { lower, upper } = interval(publication, facts, more, slack, t1, [least - more.product, most + more.product]);
  const together = ({ model, gradient }) => Math.hypot(model, gradient);
  const steep = together(steepOf(publication, facts, facts.gradientNorm));
  const curved = curvedOf(publication, facts, publication.rounding.solver);
  const largest = Math.max(Math.abs(t1[0]), Math.abs(t1[1])) * (1 + 2 * publication.rounding.curvature);
  const squared = (steep + more.steep) ** 2 + (curved + more.curved) ** 2;
  const shift = { known: largest + 0.5 * squared, squared };
  if (quantiles.whole === null) return { lower, upper, total: upper, ...shift };
  // The whole publication as one Gaussian experiment.
  const [model, statistics, apart, rest] = quantiles.whole;
  const reaching = together(steepOf(publication, facts, facts.steepness[quantiles.scope] * facts.norm));
  const parts = [model * reaching, statistics * curved];
  const reached = apart ? parts[0] + parts[1] : Math.hypot(...parts);
  return { lower, upper, total: shift.known + (reached + rest) + more.reached, ...shift };
}

// What private choices cost her at most: so much for each of her rows, or for all of them where it was promised so.
export const chosenFor = ({ chosen = 0, places }, { person }, unit) =>
  chosen * (unit === "row" ? recordsOf(places, person) : 1);

// The interval for the model, the report's cost and the total, from what is read of the record. `member` is null
// where it is not known; `every` makes the figures hold for every record at once, even one chosen after seeing the
// page. `known` and `squared` are what the sum over publications reads.
export function readFacts(numbers, publication, facts, options) {
  const quantiles = quantilesFor(numbers, publication, options, facts);
  const sides = (options.member === null ? [true, false] : [options.member]).map((side) =>
    oneSide(numbers.constants, publication, quantiles, facts, side),
  );
  const more = worst(publication, quantiles, facts).shift;
  const shift = more + Math.hypot(steepOf(publication, facts, facts.gradientNorm).gradient, curvedOf(publication, facts, 0));
  const largest = (name) => Math.max(...sides.map((side) => side[name]));
  const chosen = chosenFor(publication, facts, publication.plan.unit);
  return {
    lower: Math.min(...sides.map((side) => side.lower)),
    upper: largest("upper"),
    reportCost: quantiles.cost === null ? 0 : shift * (0.5 * shift + quantiles.cost),
    chosen,
    total: largest("total") + chosen,
    cell: facts.cell,
    known: largest("known"),
    squared: largest("squared"),
  };
}

// The same, from the answers for all rows that she remembers and the number of those that she does not.
export const readPerson = (numbers, publication, rows, forgotten, options) =>
  readFacts(numbers, publication, factsOfPerson(numbers, publication, rows, forgotten), options);

// The same for a single row.
export const read = (numbers, publication, answers, options) => readPerson(numbers, publication, [answers], 0, options);
