// The softmax loss of several classes, as in expost.losses.softmax: nothing cancels, so small numbers keep their digits.

import { derivatives } from "./losses.js";

export const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

const total = (values) => values.reduce((sum, x) => sum + x, 0);

// The Helmert matrix, one row per class: scores are its product with the linear predictors.
export function centring(classes) {
  return Array.from({ length: classes }, (_, j) =>
    Array.from({ length: classes - 1 }, (_, a) => {
      const root = 1 / Math.sqrt((a + 1) * (a + 2));
      if (j <= a) return root;
      return j === a + 1 ? -(a + 1) * root : 0;
    }),
  );
}

// The mass of the wrong classes together, how that bends, and the law of the class among them.
function masses(loss, predictors, label) {
  const scores = centring(loss.classes).map((row) => dot(row, predictors));
  const away = scores.map((score, j) => (j === label ? -Infinity : score - scores[label]));
  const top = Math.max(...away);
  const powers = away.map((score) => Math.exp(score - top));
  const sum = total(powers);
  const [slope, curvature] = derivatives({ ...loss, name: "logistic" }, top + Math.log(sum), 0);
  return { slope, curvature, others: powers.map((power) => power / sum) };
}

// The largest entry, and the others with a zero in its place.
function largestApart(others) {
  const place = others.indexOf(Math.max(...others));
  return [others[place], others.map((share, j) => (j === place ? 0 : share))];
}

function logDeterminant({ slope, curvature, others }, scale) {
  const [top, rest] = largestApart(others);
  const t = scale * slope;
  const lifted = total(rest.map((share) => (t * share * (top - share)) / (1 + t * share)));
  const within = total(rest.map((share) => Math.log1p(t * share))) + Math.log1p(lifted);
  const squares = total(others.map((share) => share ** 2 / (1 + t * share)));
  const ratio = (squares * (1 + t * top)) / (1 + lifted);
  return within + Math.log1p(scale * curvature * (1 + ratio));
}

// The Frobenius norm of the Hessian in the scores.
function curvatureNorm({ slope, curvature, others }) {
  const [top, rest] = largestApart(others);
  const [gap, restSquares] = [total(rest), dot(rest, rest)];
  const diagonal = (top * gap) ** 2 + total(rest.map((share) => (share * (1 - share)) ** 2));
  const between = Math.max(restSquares ** 2 - total(rest.map((share) => share ** 4)), 0);
  const within = diagonal + 2 * top ** 2 * restSquares + between;
  const squares = top ** 2 + restSquares;
  const along =
    top * (top * gap - restSquares) ** 2 + total(rest.map((share) => share * (share - squares) ** 2));
  const share = curvature / Math.max(slope, 2 ** -1022);
  return slope * Math.hypot(Math.sqrt(within + 2 * share * along), share * (1 + squares));
}

// The smallest mass of a class: κ/q up to the corner and qκ/(q - κ) beyond it for the true one.
function smallestMass({ cap, corner }, { slope, curvature, others }, label) {
  let own = slope > 0 ? curvature / slope : 1;
  if (cap !== undefined && slope > cap * corner) own = curvature / (1 - curvature / slope);
  return Math.min(own, slope * Math.min(...others.filter((_, j) => j !== label)));
}

// What a report reads of a record with these linear predictors. The factor has one column per class: the Hessian is
// the sum of their squares.
export function softmaxAt(loss, predictors, label) {
  const found = masses(loss, predictors, label);
  const { slope, curvature, others } = found;
  const basis = centring(loss.classes);
  const mean = predictors.map((_, a) => total(others.map((share, j) => share * basis[j][a])));
  return {
    slope,
    gradient: mean.map((one, a) => slope * (one - basis[label][a])),
    factor: basis.map((own, j) => {
      const root = Math.sqrt(j === label ? curvature : slope * others[j]);
      return own.map((entry, a) => (entry - mean[a]) * root);
    }),
    curvatureNorm: curvatureNorm(found),
    smallestMass: smallestMass(loss, found, label),
    logDeterminant: (scale) => logDeterminant(found, scale),
  };
}
