// What a reader allows for the noise: for a single row, for a person by her number of rows, and for rows of which
// nothing is known. Python computes all quantiles; here they are only chosen.

import { moved } from "./numbers.js";

// Mixtures of a Hessian's lower bound with a matrix that needs none, as in expost.reports.records.
function mixtures({ mixtures: weights, definite }, basis, lower, floor, margin) {
  const largest = lower[0] < 0 ? floor / (floor - lower[0]) : 1;
  const tried = [...weights.map((weight) => largest * weight), floor / (floor + margin)];
  const kept = tried.filter((weight) => {
    const values = lower.map((value) => value * weight + floor * (1 - weight));
    return Math.min(...values) > definite * Math.max(...values);
  });
  return { basis, weights: kept, values: lower, floor };
}

// The mixtures of a person: by the margin of so many different rows.
function pencils(constants, { spectrum, rounding, plan }, level, known, margin) {
  if (plan.reduced) return { public: level.public, adaptive: level.adaptive && { ...level.adaptive, floor: known.floor } };
  if (spectrum.length === 0) return { public: level.public, adaptive: null };
  const lower = moved(spectrum, margin, rounding.curvature);
  const mixed = (basis, floor) => mixtures(constants, basis, lower, floor, margin);
  return {
    public: mixed(level.public.basis, plan.l2),
    adaptive: level.adaptive && mixed(level.adaptive.basis, known.floor),
  };
}

// The quantiles for a record, or for a person where its facts are those of one. Where rows are forgotten, those that are
// known have a part of the allowed error.
export function quantilesFor({ constants }, publication, { confidence, every }, { person }) {
  const scope = every ? "every" : "fixed";
  const level = publication.levels[confidence][scope];
  if (person === undefined) return { ...level, scope };
  const known = person.forgotten ? level.remembered : level.people;
  const { corners, plan, places } = publication;
  const rows = corners && plan.unit === "row" && !places ? person.count : person.distinct;
  const [noise, gradient, model, statistics, margin, slope, rest] = known.lines[Math.min(rows, known.lines.length) - 1];
  return {
    scope,
    noise: [noise, null, slope, rest],
    gradient: level.gradient && [gradient, null],
    cost: level.cost,
    whole: level.whole && [model, statistics, ...level.whole.slice(2)],
    ...(level.public === null ? { public: null, adaptive: null } : pencils(constants, publication, level, known, margin)),
    upper: level.upper,
    forgotten: person.forgotten ? level.forgotten[person.forgotten - 1] : null,
  };
}
