// What is read of a record at most, over a box of encoded rows, by interval arithmetic: looser than at the corners of
// the box, but there may be any number of unknown answers, and any loss. docs/mathematics.md, proposition 14.2, proves it.

import { shrinkage } from "./encoding.js";
import { derivatives, lossesBetween, steepestPoint } from "./losses.js";
import { added, reciprocals, smallest } from "./records.js";
import { centring, dot } from "./softmax.js";

// Larger than all rounding errors in the length of a row.
const ROUNDING = 1e-9;

const total = (values) => values.reduce((sum, x) => sum + x, 0);

// The largest and the smallest size of a number between two others.
const farthest = ([low, high]) => Math.max(Math.abs(low), Math.abs(high));
const nearest = ([low, high]) => (low * high <= 0 ? 0 : Math.min(Math.abs(low), Math.abs(high)));

// The rows of a box as the mechanism sees them: `columns` are the ranges of the encoded columns before scaling.
function rowsOf({ constants }, { norm, intercept }, columns) {
  const [longest, shortest] = [farthest, nearest].map((end) => Math.hypot(...columns.map(end)));
  const scale = (long) => shrinkage(long, columns.length, norm, intercept, constants);
  const scales = [scale(longest), scale(shortest)];
  return {
    columns,
    scales,
    least: Math.hypot(Math.min(shortest, norm) * (1 - ROUNDING), ...(intercept ? [1] : [])),
    norm: Math.hypot(Math.min(longest, norm), ...(intercept ? [1] : [])),
    norm1: scales[1] * total(columns.map(farthest)) + (intercept ? 1 : 0),
  };
}

// The range of a linear function of the rows, whose last coefficient is the intercept's where there is one.
function linear({ columns, scales }, coefficients) {
  let [low, high] = [0, 0];
  columns.forEach(([from, to], j) => {
    const ends = [coefficients[j] * from, coefficients[j] * to];
    low += Math.min(...ends);
    high += Math.max(...ends);
  });
  const constant = coefficients[columns.length] ?? 0;
  const ends = scales.flatMap((scale) => [scale * low, scale * high]);
  return [constant + Math.min(...ends), constant + Math.max(...ends)];
}

// The largest square of every coordinate of the rows in a basis.
const coordinates = (rows, basis) => basis.map((direction) => farthest(linear(rows, direction)) ** 2);

// The largest slope and curvature over a range of scores and labels, of rows of every length: those have losses of their
// own where gradients are capped. Then each with the length of a row, and with its square.
export function steepest({ loss, intercept }, rows, score, labels, weight) {
  const columns = rows.columns.length + (intercept ? 1 : 0);
  const found = lossesBetween(loss, rows.least, rows.norm, columns).map(({ loss: own, length }) => {
    // Slopes rise with the score and fall with the label, so the largest is at an end.
    const ends = [derivatives(own, score[0], labels[1])[0], derivatives(own, score[1], labels[0])[0]];
    const slope = weight * Math.max(...ends.map(Math.abs));
    const curvature = weight * derivatives(own, ...steepestPoint(own, score, labels))[1];
    return [slope, curvature, slope * length, slope * length ** 2, curvature * length ** 2];
  });
  const [slope, curvature, gradient, bent, hessian] = found[0].map((_, i) => Math.max(...found.map((one) => one[i])));
  return { slope, curvature, gradient, bent, hessian };
}

export function scalarBox(publication, rows, labels, weight) {
  const { coefficients, bases } = publication;
  const score = linear(rows, coefficients[0]);
  const { slope: steepness, curvature, gradient, hessian } = steepest(publication, rows, score, labels, weight);
  const parts = bases.map((basis) => coordinates(rows, basis));
  const bends = (pencil) => reciprocals(pencil).map((scale) => curvature * dot(parts[pencil.basis], scale));
  const { norm, norm1 } = rows;
  return {
    norm,
    norm1,
    steepness: { fixed: steepness, every: steepness },
    gradientNorm: gradient,
    added: added(publication, score, labels),
    along: 0,
    releasedNorm: hessian,
    logDeterminant: (l2) => Math.log1p(hessian / l2),
    above: (pencil, share) => Math.log1p(smallest(bends(pencil), pencil.weights.map(share), 1)),
    below: () => 0,
  };
}

// The wrong classes over a box: their mass and how it bends at most, the largest share of each among them, and between
// what the sum of the squared shares lies.
function wrongClasses(publication, rows, label, weight) {
  const { loss, coefficients } = publication;
  const basis = centring(loss.classes);
  const ofClass = (j) => coefficients[0].map((_, i) => total(basis[j].map((entry, a) => entry * coefficients[a][i])));
  const own = ofClass(label);
  const others = basis.flatMap((_, j) => (j === label ? [] : [j]));
  const away = others.map((j) => linear(rows, ofClass(j).map((entry, i) => entry - own[i])));
  const mass = (end) => {
    const top = Math.max(...away.map((one) => one[end]));
    return top + Math.log(total(away.map((one) => Math.exp(one[end] - top))));
  };
  const range = [mass(0), mass(1)];
  const plain = { ...loss, name: "logistic" };
  const shares = away.map(([, high], j) => 1 / (1 + total(away.map(([low], i) => (i === j ? 0 : Math.exp(low - high))))));
  const most = Math.max(...shares);
  const least = Math.max(...away.map(([low], j) => 1 / (1 + total(away.map(([, high], i) => (i === j ? 0 : Math.exp(high - low)))))));
  return {
    count: others.length,
    ...steepest({ ...publication, loss: plain }, rows, range, [0, 0], weight),
    shares,
    most,
    squares: [Math.max(1 / others.length, least ** 2), most],
  };
}

export function softmaxBox(publication, rows, label, weight) {
  const { plan } = publication;
  const wrong = wrongClasses(publication, rows, label, weight);
  const { count, slope, curvature, squares, most } = wrong;
  const { norm, norm1 } = rows;
  const gradient = slope * Math.sqrt(1 + squares[1]);
  // The Hessian in the scores is curvature uu' + slope W: |u|² = 1 + s, and W has trace 1 - s and rank count - 1.
  const [along, within] = [curvature * (1 + squares[1]), slope * (1 - squares[0])];
  const bounded = (scale, bend, steep) =>
    Math.log1p(scale * bend * (1 + squares[1])) + (count - 1) * Math.log1p((scale * steep * (1 - squares[0])) / (count - 1));
  const logDeterminant = (scale) => bounded(scale, curvature, slope);
  const facts = {
    norm,
    norm1,
    steepness: { fixed: Math.SQRT2 * slope, every: gradient },
    gradientNorm: wrong.gradient * Math.sqrt(1 + squares[1]),
    along: 0,
    logDeterminant: (l2) => bounded(1 / l2, wrong.hessian, wrong.bent),
    below: () => 0,
  };
  return { ...facts, ...(plan.reduced ? reducedBox : wholeBox)(publication, rows, wrong, logDeterminant, { along, within, most }) };
}

function reducedBox({ bases }, rows, { slope, shares }, logDeterminant) {
  const parts = bases.map((basis) => coordinates(rows, basis));
  const mass = slope * Math.min(...shares);
  return {
    releasedNorm: mass * rows.norm ** 2,
    above(pencil, share) {
      const forms = reciprocals(pencil).map((scale) => dot(parts[pencil.basis], scale));
      const least = smallest(forms, pencil.weights.map(share), mass);
      return Number.isFinite(least) ? logDeterminant(least) : Infinity;
    },
  };
}

const times = ([a, b], [c, d]) => {
  const ends = [a * c, a * d, b * c, b * d];
  return [Math.min(...ends), Math.max(...ends)];
};

// The largest eigenvalue of the part of an inverse Hessian that a row sees, a number for each pair of predictors: at most
// its largest sum of sizes in a row, and at most its trace. `along` has a range for each direction and predictor.
function largestForm(along, scale) {
  const predictors = along[0].map((_, a) => a);
  const sizes = predictors.map((a) =>
    predictors.map((b) => {
      if (a === b) return total(along.map((parts, i) => scale[i] * farthest(parts[a]) ** 2));
      let [low, high] = [0, 0];
      along.forEach((parts, i) => {
        const [from, to] = times(parts[a], parts[b]);
        low += scale[i] * from;
        high += scale[i] * to;
      });
      return farthest([low, high]);
    }),
  );
  return Math.min(Math.max(...sizes.map(total)), total(predictors.map((a) => sizes[a][a])));
}

function wholeBox({ bases, coefficients }, rows, { slope }, logDeterminant, { along, within, most }) {
  const columns = coefficients[0].length;
  const parts = bases.map((basis) =>
    basis.map((direction) => coefficients.map((_, a) => linear(rows, direction.slice(a * columns, (a + 1) * columns)))),
  );
  return {
    releasedNorm: (along + Math.min(within, Math.sqrt(slope * most * within))) * rows.norm ** 2,
    above(pencil, share) {
      const sizes = reciprocals(pencil).map((scale, i) => {
        const [part, form] = [share(pencil.weights[i]), largestForm(parts[pencil.basis], scale)];
        const left = 1 - part * form * (along + within);
        return left > 0 ? logDeterminant((1 - part) * form) - Math.log(left) : Infinity;
      });
      return Math.min(...sizes);
    },
  };
}

// The facts over a box of encoded columns with a label, or between two labels where that is a number.
export function boxFacts(numbers, publication, columns, labels, weight) {
  const rows = rowsOf(numbers, publication, columns);
  if (publication.loss.name === "softmax") return softmaxBox(publication, rows, labels[0], weight);
  return scalarBox(publication, rows, labels, weight);
}
