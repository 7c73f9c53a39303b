// What a report reads of a record, for one linear predictor and for several classes, as in expost.reports.records.

import { encode } from "./encoding.js";
import { derivatives } from "./losses.js";
import { dot, softmaxAt } from "./softmax.js";

const size = (vector) => Math.sqrt(dot(vector, vector));

function scalarFacts({ loss, coefficients, gradient }, { row, label, weight }) {
  const norm = size(row);
  const [slope, curvature] = derivatives(loss, dot(row, coefficients[0]), label).map((one) => weight * one);
  const steepness = Math.abs(slope);
  return {
    curvature,
    steepness: { fixed: steepness, every: steepness },
    gradientNorm: steepness * norm,
    along: gradient === null ? null : slope * dot(row, gradient[0]),
    releasedNorm: curvature * norm ** 2,
    logDeterminant: (l2) => Math.log1p((curvature * norm ** 2) / l2),
  };
}

// The noise along a row is bounded by √2 times the mass of the wrong classes for a record fixed in advance, and by
// the gradient's length for every record at once.
function softmaxFacts({ loss, coefficients, gradient }, { row, label, weight }) {
  const norm = size(row);
  const at = softmaxAt(loss, coefficients.map((predictor) => dot(row, predictor)), label);
  const slopes = at.gradient.map((slope) => weight * slope);
  return {
    steepness: { fixed: weight * (Math.SQRT2 * at.slope), every: size(slopes) },
    gradientNorm: size(slopes) * norm,
    along: gradient === null ? null : dot(slopes, gradient.map((predictor) => dot(row, predictor))),
    releasedNorm: weight * at.curvatureNorm * norm ** 2,
    logDeterminant: (l2) => at.logDeterminant(weight * (norm ** 2 / l2)),
  };
}

export function factsOf(numbers, publication, answers) {
  const record = encode(numbers, publication, answers);
  const { row } = record;
  return {
    row,
    norm: size(row),
    norm1: row.reduce((sum, x) => sum + Math.abs(x), 0),
    squares: publication.bases.map((basis) => basis.map((direction) => dot(row, direction) ** 2)),
    ...(publication.loss.name === "softmax" ? softmaxFacts : scalarFacts)(publication, record),
  };
}
