// What all publications on the page cost a person together, and what was promised for all of them.

import { chosenFor, readFacts } from "./bounds.js";

const sum = (parts, name) => parts.reduce((total, part) => total + part[name], 0);

// The bound on the sum of a person's losses, from what each publication reads of her record. The noises of all are not
// in one line, so the sum is less than that of the totals (expost.reports.several); where it is not, the totals are
// added up, as they are where rows are forgotten. It never falls where a fact of the record rises, which ranges.js relies on.
export function together(numbers, facts, options) {
  const readings = numbers.publications.map((publication, i) => readFacts(numbers, publication, facts[i], options));
  const { count = 1, forgotten = 0 } = facts[0].person ?? {};
  const uneven = facts.some(({ person }) => (person?.count ?? 1) !== count);
  const apart = options.every || readings.length === 1 || forgotten > 0 || uneven;
  const noise = apart ? null : numbers.together[options.confidence][count - 1];
  // A choice that several publications used was made once.
  const unit = numbers.publications.every(({ plan }) => plan.unit === "person") ? "person" : "row";
  const chosen = chosenFor({ ...numbers, places: numbers.publications[0].places }, facts[0], unit);
  if (noise === null) return sum(readings, "total") - (sum(readings, "chosen") - chosen);
  const [quantile, rest] = noise;
  const reached = Math.sqrt(sum(readings, "squared")) * quantile;
  return (sum(readings, "known") + reached + rest) * (1 + numbers.constants.slack) + chosen;
}

// The places of publications in the order of their days; those without one stay where they are given.
export function inOrder(publications) {
  const places = publications.map((_, place) => place);
  const dated = publications.every(({ texts }) => texts.date);
  return dated ? places.sort((a, b) => publications[a].texts.date.localeCompare(publications[b].texts.date)) : places;
}

// What one publication adds to the account of a record: its shift squared, and its determinant, which is charged as it
// is or as one more coordinate of the shift.
function charge(numbers, publication, facts, options) {
  const { squared } = readFacts(numbers, publication, facts, options);
  const [grown, { l2 }] = [1 + 2 * publication.rounding.curvature, publication.plan];
  const determinant = facts.logDeterminant(l2) * grown;
  const curved = ((facts.hessianNorm / l2) * grown) ** 2;
  return { squared, determinant, curved, price: determinant > 0 ? curved / determinant : Infinity };
}

// How far publications can have raised the odds that a member is in the data, even if each was decided on by those
// before (expost.reports.wallet). Undefined where nobody has one: for people and families, for those who are not in
// the data, and for every record at once.
export function wallet(numbers, facts, options) {
  const { publications, wallet: { scales, logarithms }, constants: { slack } } = numbers;
  const scale = scales[inOrder(publications)[0]];
  if (options.every || options.member === false || scale === null || facts.some(({ person }) => person)) return undefined;
  const charges = publications.map((publication, i) => charge(numbers, publication, facts[i], options));
  charges.sort((a, b) => a.price - b.price);
  const bound = (moved, left) =>
    Math.max(left, 0) + 0.5 * moved + Math.sqrt((moved + scale) * (logarithms[options.confidence] + Math.log1p(moved / scale)));
  let [moved, left] = [sum(charges, "squared"), sum(charges, "determinant")];
  let least = bound(moved, left);
  for (const { curved, determinant } of charges) {
    [moved, left] = [moved + curved, left - determinant];
    least = Math.min(least, bound(moved, left));
  }
  return least * (1 + slack) + (numbers.chosen ?? 0);
}

// The promise of all publications together to so many records; where it is to people, they are one person's. Null where
// there is none.
export function promised({ publications, promises, promised_delta: delta }, count = 1) {
  const one = count === 1 || publications.every(({ plan }) => plan.unit === "person");
  const epsilon = promises[one ? 0 : count - 1] ?? null;
  return epsilon === null ? null : { epsilon, delta };
}
