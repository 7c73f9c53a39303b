// What a publication cost a record, with the same terms in the same order as in expost.reports.

import { encode } from "./encoding.js";
import { derivatives } from "./losses.js";

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

// What the bounds need to know about a record.
export function factsOf(numbers, publication, answers) {
  const { row, label, weight } = encode(numbers, publication, answers);
  const [slope, curvature] = derivatives(publication.loss, dot(row, publication.coefficients), label).map(
    (derivative) => weight * derivative,
  );
  return {
    row,
    slope,
    curvature,
    norm: Math.sqrt(dot(row, row)),
    norm1: row.reduce((sum, x) => sum + Math.abs(x), 0),
    along: publication.gradient === null ? null : dot(row, publication.gradient),
    squares: publication.bases.map((basis) => basis.map((direction) => dot(row, direction) ** 2)),
  };
}

// The curvature times the quadratic form of each mixture's inverse at the row.
function bends(facts, { basis, weights, values, floor }) {
  const squares = facts.squares[basis];
  return weights.map((weight) => {
    const reciprocals = values.map((value) => 1 / (value * weight + floor * (1 - weight)));
    return facts.curvature * dot(squares, reciprocals);
  });
}

// The smallest a / (1 - wa), over the weights with wa < 1.
function smallest(values, weights) {
  return values.reduce((least, a, i) => {
    const below = 1 - weights[i] * a;
    return below > 0 ? Math.min(least, a / below) : least;
  }, Infinity);
}

// Bounds on the determinant term, from what is known about the record's leverage.
function determinant(publication, quantiles, facts, member) {
  const sided = (small, large) => (member ? [small, large] : [-large, -small]);
  if (quantiles.public === null) {
    return sided(0, Math.log1p((facts.curvature * facts.norm ** 2) / publication.plan.l2));
  }
  const weigh = (mixtures, weight) => smallest(bends(facts, mixtures), mixtures.weights.map(weight));
  let excess = weigh(quantiles.public, (weight) => (member ? weight : 0));
  if (quantiles.adaptive !== null) excess = Math.min(excess, weigh(quantiles.adaptive, () => (member ? 1 : 0)));
  const large = Math.log1p(excess);
  if (quantiles.upper === null) return sided(0, large);
  const [bend] = bends(facts, quantiles.upper);
  const small = member ? -Math.log1p(-(bend < 1 ? bend : 0)) : Math.log1p(bend);
  return sided(Math.min(small, large), large);
}

const reach = (facts, [norm, norm1]) =>
  norm1 === null ? facts.norm * norm : Math.min(facts.norm * norm, facts.norm1 * norm1);

// Bounds on the inner product of the record's gradient with the noise.
function innerProduct({ plan }, facts, noise, gradient, member) {
  const steepness = Math.abs(facts.slope);
  const width = (steepness * reach(facts, noise)) / plan.sigma;
  if (gradient === null) return [-width, width];
  const together = Math.hypot(plan.sigma, plan.sigma_gradient);
  const centre = ((member ? -1 : 1) * facts.slope * facts.along) / together ** 2;
  const narrow = steepness * reach(facts, gradient) * (plan.sigma_gradient / (plan.sigma * together));
  const low = Math.max(centre - narrow, -width);
  const high = Math.min(centre + narrow, width);
  if (low <= high) return [low, high];
  // The intervals are disjoint only where one of them has failed; then return one that covers both.
  return [Math.min(centre - narrow, -width), Math.max(centre + narrow, width)];
}

// `wider` is larger than every rounding error in adding up the terms, so that rounding only widens intervals.
function interval({ plan }, facts, wider, [t1Low, t1High], [t3Low, t3High]) {
  const t2 = 0.5 * ((facts.slope * facts.norm) / plan.sigma) ** 2;
  const slack = wider * (Math.abs(t1Low) + Math.abs(t1High) + t2 + Math.abs(t3Low) + Math.abs(t3High));
  // If a term is beyond double precision, the lower end is zero and the upper end infinite.
  if (!Number.isFinite(slack)) return { lower: 0, upper: Infinity };
  const low = t1Low + t2 + t3Low - slack;
  const high = t1High + t2 + t3High + slack;
  return { lower: Math.max(low, -high, 0), upper: Math.max(high, -low) };
}

// How far the record moves the noise of the objective, the gradient, and the statistics of its curvature, each
// in units of their noise; the last with the solver's part, which the printed coefficients may tell.
function shiftsOf({ plan, rounding }, facts, solver) {
  const gradient = Math.abs(facts.slope) * facts.norm + rounding.slope * plan.sigma;
  const curvature = facts.curvature * facts.norm ** 2 * (1 + rounding.curvature);
  const part = (sensitivity, sigma, error) => (sigma === null ? 0 : sensitivity / sigma + 2 * error);
  const { errors } = rounding;
  return {
    model: gradient / plan.sigma,
    gradient: part(gradient, plan.sigma_gradient, errors.gradient),
    curved: Math.hypot(
      solver,
      part(Math.SQRT1_2 * curvature, plan.sigma_hessian, errors.hessian),
      part(curvature, plan.sigma_eigenvalue, errors.eigenvalue),
    ),
  };
}

function oneSide({ slack }, publication, quantiles, facts, member) {
  const t1 = determinant(publication, quantiles, facts, member);
  const t3 = innerProduct(publication, facts, quantiles.noise, quantiles.gradient, member);
  const { lower, upper } = interval(publication, facts, slack, t1, t3);
  if (quantiles.whole === null) return { lower, upper, total: upper };
  // The whole publication as one Gaussian experiment.
  const [quantile, stretch, rest] = quantiles.whole;
  const { model, gradient, curved } = shiftsOf(publication, facts, publication.rounding.solver);
  const steep = Math.hypot(model, gradient);
  const largest = Math.max(Math.abs(t1[0]), Math.abs(t1[1])) * (1 + 2 * publication.rounding.curvature);
  const reached = quantile * Math.hypot(steep, stretch * curved) + rest;
  return { lower, upper, total: largest + 0.5 * (steep ** 2 + curved ** 2) + reached };
}

// The interval for the model, the report's cost and the total. `member` is null where it is not known;
// `every` makes the figures hold for every record at once, even one chosen after seeing the page.
export function read(numbers, publication, answers, { confidence, member, every }) {
  const facts = factsOf(numbers, publication, answers);
  const level = publication.levels[confidence];
  const quantiles = every ? level.every : level.fixed;
  const sides = (member === null ? [true, false] : [member]).map((side) =>
    oneSide(numbers.constants, publication, quantiles, facts, side),
  );
  const { gradient, curved } = shiftsOf(publication, facts, 0);
  const shift = Math.hypot(gradient, curved);
  return {
    lower: Math.min(...sides.map((side) => side.lower)),
    upper: Math.max(...sides.map((side) => side.upper)),
    reportCost: quantiles.cost === null ? 0 : shift * (0.5 * shift + quantiles.cost),
    total: Math.max(...sides.map((side) => side.total)),
  };
}
