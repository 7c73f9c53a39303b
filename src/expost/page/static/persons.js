// What a report reads of a person with several rows, or of a family, as in expost.losses.persons: the sum of the rows'
// gradients and all columns of their factors, written out in all coefficients.

import { encode } from "./encoding.js";
import { derivatives, lossOf } from "./losses.js";
import { added, factsOf, logDeterminantOf, reciprocals, size } from "./records.js";
import { dot, softmaxAt } from "./softmax.js";

const times = (vector, scale) => vector.map((x) => x * scale);

const sum = (vectors) => vectors.reduce((all, one) => all.map((x, i) => x + one[i]));

// A row's gradient and the columns of its factor at coefficients, predictor by predictor.
function writtenOut({ loss }, coefficients, { row, label, weight }) {
  if (loss.name !== "softmax") {
    const [slope, curvature] = derivatives(lossOf(loss, row), dot(row, coefficients[0]), label);
    return { gradient: times(row, weight * slope), columns: [times(row, Math.sqrt(weight * curvature))], mass: 0 };
  }
  const at = softmaxAt(lossOf(loss, row), coefficients.map((predictor) => dot(row, predictor)), label);
  const spread = (entries) => entries.flatMap((entry) => times(row, entry));
  return {
    gradient: spread(times(at.gradient, weight)),
    columns: at.factor.map((column) => spread(times(column, Math.sqrt(weight)))),
    mass: weight * at.smallestMass,
  };
}

// The sum of vectors, or zero where they cancel.
function directionOf({ cancelled }, vectors) {
  const found = sum(vectors);
  const lengths = vectors.reduce((all, one) => all + size(one), 0);
  return size(found) > cancelled * lengths ? found : times(found, 0);
}

// How much of her gradient is along and across a direction that no noise decides: that of her gradient at zero
// coefficients, or of the sum of her factor's columns there.
function steepnessOf({ constants }, publication, records, gradient) {
  const zero = publication.coefficients.map((predictor) => predictor.map(() => 0));
  const rows = records.map((record) => writtenOut(publication, zero, record));
  let towards = directionOf(constants, rows.map((row) => row.gradient));
  if (!towards.some((x) => x !== 0)) towards = directionOf(constants, rows.map(({ columns }) => sum(columns)));
  const along = dot(gradient, towards) / (size(towards) || 1);
  return [along, Math.sqrt(Math.max(dot(gradient, gradient) - along ** 2, 0))];
}

// All inner products of some vectors, or of their entries where these are fewer: their determinants agree.
function gram(vectors, scale = null) {
  const scaled = scale === null ? vectors : vectors.map((vector) => vector.map((x, i) => x * Math.sqrt(scale[i])));
  const turned = scaled.length > scaled[0].length ? scaled[0].map((_, i) => scaled.map((vector) => vector[i])) : scaled;
  return turned.map((a) => turned.map((b) => dot(a, b)));
}

const frobenius = (matrix) => Math.sqrt(matrix.reduce((all, row) => all + dot(row, row), 0));

// Bounds of the determinant term from small matrices, one for each mixture.
function forms({ bases, plan }, columns) {
  const coordinates = bases.map((basis) => columns.map((column) => basis.map((direction) => dot(column, direction))));
  const whole = gram(columns);
  const logDeterminant = (l2) => logDeterminantOf(whole, 1 / l2);
  if (plan.reduced) {
    return {
      logDeterminant,
      // Nothing is known by a Hessian that has her rows in it.
      above: (pencil, share) => (share(-1) === 1 ? Infinity : logDeterminant(pencil.floor)),
      below: () => 0,
    };
  }
  return {
    logDeterminant,
    releasedNorm: frobenius(whole),
    above(pencil, share) {
      const sizes = reciprocals(pencil).map((scale, i) => {
        const [part, form] = [share(pencil.weights[i]), gram(coordinates[pencil.basis], scale)];
        return logDeterminantOf(form, 1 - part) - (part > 0 ? logDeterminantOf(form, -part) : 0);
      });
      return Math.min(...sizes);
    },
    below(pencil, member) {
      const form = gram(coordinates[pencil.basis], reciprocals(pencil)[0]);
      if (!member) return logDeterminantOf(form, 1);
      const found = -logDeterminantOf(form, -1);
      return Number.isFinite(found) ? found : 0;
    },
  };
}

// Whether a row of a record counts, and its label, from the code of the outcome: as in expost.data.labels.
const ANSWERS = {
  ordered: (code, place) => [true, code > place],
  time: (code, place) => [code >= 2 * place + 2, code === 2 * place + 3],
};

// A record as the rows of one person, as expost.data.spread has it; those that do not count are left out, but the first.
export function spread({ spread: kind, places }, { row, label, weight, atMost }) {
  const rows = Array.from({ length: places }, (_, place) => {
    const [counts, yes] = ANSWERS[kind](label, place);
    const unit = Array.from({ length: places }, (__, i) => (i === place ? 1 : 0));
    return { row: [...row, ...unit], label: yes ? 1 : 0, weight: counts ? weight / places : 0, atMost };
  });
  return rows.filter(({ weight: share }, place) => share > 0 || place === 0);
}

// The facts of a person by the answers of all rows that she remembers, and the number of those that she does not. One
// row alone is read as ever, but for a record that is several.
export function factsOfPerson(numbers, publication, rows, forgotten = 0) {
  const count = publication.places ?? rows.length + forgotten;
  if (count === 1) return factsOf(numbers, publication, rows[0]);
  const records = publication.places
    ? spread(publication, encode(numbers, publication, rows[0]))
    : rows.map((answers) => encode(numbers, publication, answers, count));
  const { coefficients, gradient: measured, plan } = publication;
  const parts = records.map((record) => writtenOut(publication, coefficients, record));
  const gradient = sum(parts.map((part) => part.gradient));
  const [along, across] = steepnessOf(numbers, publication, records, gradient);
  const facts = {
    atMost: publication.places > 0 && records[0].atMost,
    norm: 1,
    norm1: null,
    steepness: { fixed: Math.hypot(along, numbers.constants.stretch * across), every: size(gradient) },
    gradientNorm: size(gradient),
    along: measured === null ? null : dot(gradient, measured.flat()),
    ...forms(publication, parts.flatMap(({ columns }) => columns)),
    added: records.reduce((all, { row, label }) => {
      const score = dot(row, coefficients[0]);
      return all + added(publication, [score, score], [label, label]);
    }, 0),
    person: { distinct: new Set(records.map(({ row }) => row.join())).size, forgotten, count },
  };
  if (!plan.reduced) return facts;
  return { ...facts, releasedNorm: frobenius(gram(records.map(({ row }, i) => times(row, Math.sqrt(parts[i].mass))))) };
}
