// What all publications on the page cost a person together, and what was promised for all of them.

import { readFacts } from "./bounds.js";

const sum = (parts, name) => parts.reduce((total, part) => total + part[name], 0);

// The bound on the sum of a person's losses, from what each publication reads of her record. The noises of all are not
// in one line, so the sum is less than that of the totals (expost.reports.several); where it is not, the totals are
// added up, as they are for a person with several rows. It never falls where a fact of the record rises, which ranges.js relies on.
export function together(numbers, facts, options) {
  const readings = numbers.publications.map((publication, i) => readFacts(numbers, publication, facts[i], options));
  const apart = options.every || readings.length === 1 || facts.some(({ person }) => person !== undefined);
  const noise = apart ? null : numbers.together[options.confidence];
  if (noise === null) return sum(readings, "total");
  const [quantile, rest] = noise;
  const reached = Math.sqrt(sum(readings, "squared")) * quantile;
  return (sum(readings, "known") + reached + rest) * (1 + numbers.constants.slack);
}

// The promise to so many records together: where it is to people, they are one person's.
const promiseOf = ({ plan: { unit, epsilon, families } }, count) =>
  unit === "person" || count === 1 ? epsilon : (families[count - 2] ?? null);

// The promise for all publications together: epsilons and deltas add up. Null where one has none.
export function promised(publications, count = 1) {
  const plans = publications.map((one) => ({ epsilon: promiseOf(one, count), delta: one.plan.delta }));
  if (plans.some(({ epsilon }) => epsilon === null)) return null;
  return { epsilon: sum(plans, "epsilon"), delta: sum(plans, "delta") };
}
