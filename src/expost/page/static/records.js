// What a report reads of a record, for one linear predictor and for several classes, as in expost.reports.records.

import { encode } from "./encoding.js";
import { derivatives, lossOf } from "./losses.js";
import { dot, softmaxAt } from "./softmax.js";

export const size = (vector) => Math.sqrt(dot(vector, vector));

// The reciprocals of the eigenvalues of each mixture, mixture by mixture.
export const reciprocals = ({ weights, values, floor }) =>
  weights.map((weight) => values.map((value) => 1 / (value * weight + floor * (1 - weight))));

export const squares = (row, basis) => basis.map((direction) => dot(row, direction) ** 2);

// The smallest form / (1 - w * part * form), over the weights at which something is left.
export function smallest(forms, weights, part) {
  return forms.reduce((least, form, i) => {
    const left = 1 - weights[i] * part * form;
    return left > 0 ? Math.min(least, form / left) : least;
  }, Infinity);
}

function scalarFacts({ loss, coefficients, gradient, bases }, { row, label, weight }) {
  const norm = size(row);
  const [slope, curvature] = derivatives(lossOf(loss, row), dot(row, coefficients[0]), label).map((one) => weight * one);
  const steepness = Math.abs(slope);
  const coordinates = bases.map((basis) => squares(row, basis));
  const bends = (pencil) => reciprocals(pencil).map((scale) => curvature * dot(coordinates[pencil.basis], scale));
  return {
    steepness: { fixed: steepness, every: steepness },
    gradientNorm: steepness * norm,
    along: gradient === null ? null : slope * dot(row, gradient[0]),
    hessianNorm: curvature * norm ** 2,
    releasedNorm: curvature * norm ** 2,
    logDeterminant: (l2) => Math.log1p((curvature * norm ** 2) / l2),
    above: (pencil, share) => Math.log1p(smallest(bends(pencil), pencil.weights.map(share), 1)),
    below(pencil, member) {
      const [bend] = bends(pencil);
      return member ? -Math.log1p(-(bend < 1 ? bend : 0)) : Math.log1p(bend);
    },
  };
}

// The noise along a row is bounded by √2 times the mass of the wrong classes for a record fixed in advance, and by
// the gradient's length for every record at once.
function softmaxFacts(publication, { row, label, weight }) {
  const { loss, coefficients, gradient, plan } = publication;
  const norm = size(row);
  const at = softmaxAt(lossOf(loss, row), coefficients.map((predictor) => dot(row, predictor)), label);
  const slopes = at.gradient.map((slope) => weight * slope);
  return {
    steepness: { fixed: weight * (Math.SQRT2 * at.slope), every: size(slopes) },
    gradientNorm: size(slopes) * norm,
    along: gradient === null ? null : dot(slopes, gradient.map((predictor) => dot(row, predictor))),
    hessianNorm: weight * at.curvatureNorm * norm ** 2,
    logDeterminant: (l2) => at.logDeterminant(weight * (norm ** 2 / l2)),
    ...(plan.reduced ? reducedForms : wholeForms)(publication, row, weight, norm, at),
  };
}

// With a reduced Hessian a record has one number for each mixture, and its part of that Hessian.
function reducedForms({ bases }, row, weight, norm, at) {
  const coordinates = bases.map((basis) => squares(row, basis));
  const mass = weight * at.smallestMass;
  return {
    releasedNorm: mass * norm ** 2,
    above(pencil, share) {
      const forms = reciprocals(pencil).map((scale) => dot(coordinates[pencil.basis], scale));
      const least = smallest(forms, pencil.weights.map(share), mass);
      return Number.isFinite(least) ? at.logDeterminant(weight * least) : Infinity;
    },
    below: () => 0,
  };
}

// With the whole Hessian it has a small matrix for each mixture, with a row for each class.
function wholeForms({ bases, coefficients }, row, weight, norm, at) {
  const columns = row.length;
  const coordinates = bases.map((basis) => {
    const along = basis.map((direction) =>
      coefficients.map((_, a) => dot(row, direction.slice(a * columns, (a + 1) * columns))),
    );
    return at.factor.map((column) => along.map((part) => Math.sqrt(weight) * dot(column, part)));
  });
  const forms = (place, scale) =>
    coordinates[place].map((a) => coordinates[place].map((b) => a.reduce((sum, x, i) => sum + x * b[i] * scale[i], 0)));
  return {
    releasedNorm: weight * at.curvatureNorm * norm ** 2,
    above(pencil, share) {
      const sizes = reciprocals(pencil).map((scale, i) => {
        const [part, form] = [share(pencil.weights[i]), forms(pencil.basis, scale)];
        const outside = part > 0 ? logDeterminantOf(form, -part) : 0;
        return logDeterminantOf(form, 1 - part) - outside;
      });
      return Math.min(...sizes);
    },
    below(pencil, member) {
      const form = forms(pencil.basis, reciprocals(pencil)[0]);
      if (!member) return logDeterminantOf(form, 1);
      const found = -logDeterminantOf(form, -1);
      return Number.isFinite(found) ? found : 0;
    },
  };
}

// log det(I + sN) of a positive semi-definite N, by elimination that keeps the pivots' distance from one, so that
// small matrices keep their digits; minus infinity where I + sN is not positive definite.
export function logDeterminantOf(matrix, scale) {
  const rest = matrix.map((row) => row.map((entry) => scale * entry));
  const sign = Math.sign(scale);
  let total = 0;
  for (let j = 0; j < rest.length; j++) {
    const pivot = Math.max(Math.max(sign * rest[j][j], 0) * sign, -1);
    total += Math.log1p(pivot);
    const over = pivot > -1 ? 1 + pivot : 1;
    for (let i = j + 1; i < rest.length; i++) {
      for (let k = j + 1; k < rest.length; k++) rest[i][k] -= (rest[i][j] * rest[k][j]) / over;
    }
  }
  return total;
}

// At most how long the vector is that a record adds to the numbers which recalibrate the model, with a score and a label
// in these ranges; as in expost.fitting.contributions.
export function added({ moments, intercept, coefficients }, [low, high], [least, most]) {
  if (!moments) return 1;
  const [constant] = intercept ? coefficients[0].slice(-1) : [0];
  const atMost = (a, b) => Math.min(Math.max(Math.abs(a), Math.abs(b)), 1);
  const q = moments.reach > 0 ? atMost((low - constant) / moments.reach, (high - constant) / moments.reach) : 0;
  const r = atMost(most - low, least - high);
  return size([1, q, q * q, r, q * r].map((entry, i) => moments.weights[i] * entry));
}

// How many records are in her cell of the histogram, with noise.
const counted = ([ends, ...counts], score, label) => counts[label][ends.filter((end) => end <= score).length];

export function factsOf(numbers, publication, answers) {
  const record = encode(numbers, publication, answers);
  const { row, label, atMost } = record;
  const score = dot(row, publication.coefficients[0]);
  return {
    atMost,
    cell: publication.cells && counted(publication.cells, score, label),
    added: added(publication, [score, score], [label, label]),
    norm: size(row),
    norm1: row.reduce((sum, x) => sum + Math.abs(x), 0),
    ...(publication.loss.name === "softmax" ? softmaxFacts : scalarFacts)(publication, record),
  };
}
