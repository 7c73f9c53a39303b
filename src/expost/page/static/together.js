// What all publications on the page cost a person together, and what was promised for all of them.

import { readFacts } from "./bounds.js";

const sum = (parts, name) => parts.reduce((total, part) => total + part[name], 0);

// The bound on the sum of a person's losses, from what each publication reads of her record. The noises of all are not
// in one line, so the sum is less than that of the totals (expost.reports.several); where it is not, the totals are
// added up. It never falls where a fact of the record rises, which ranges.js relies on.
export function together(numbers, facts, options) {
  const readings = numbers.publications.map((publication, i) => readFacts(numbers, publication, facts[i], options));
  const noise = options.every || readings.length === 1 ? null : numbers.together[options.confidence];
  if (noise === null) return sum(readings, "total");
  const [quantile, rest] = noise;
  const reached = Math.sqrt(sum(readings, "squared")) * quantile;
  return (sum(readings, "known") + reached + rest) * (1 + numbers.constants.slack);
}

// The promise for all publications together: epsilons and deltas add up. Null where one has no worst case.
export function promised(publications) {
  if (publications.some(({ plan }) => plan.epsilon === null)) return null;
  const plans = publications.map(({ plan }) => plan);
  return { epsilon: sum(plans, "epsilon"), delta: sum(plans, "delta") };
}
