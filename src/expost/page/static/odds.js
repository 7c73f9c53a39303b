// Losses in words. Rounding never makes a promise stronger.

// How sure someone can be afterwards who thought it 50:50 before.
export const sureness = (loss) => 1 / (1 + Math.exp(-loss));

export function rounded(value, up = true) {
  if (value === 0) return "0";
  if (value === Infinity) return "∞";
  const digits = 2 - Math.floor(Math.log10(Math.abs(value)));
  const unit = 10 ** Math.abs(digits);
  const scaled = digits >= 0 ? value * unit : value / unit;
  const whole = up ? Math.ceil(scaled - 1e-9) : Math.floor(scaled + 1e-9);
  if (digits < 0) return grouped(whole * unit);
  return digits > 6 ? (whole / unit).toExponential(2) : (whole / unit).toFixed(digits);
}

// Thousands in groups, in the same way for every locale.
export const grouped = (whole) => String(whole).replace(/\B(?=(\d{3})+$)/g, ",");

// A probability of at least one half, as a percentage with more digits the closer it is to certainty.
export function percent(probability) {
  const left = 100 * (1 - probability);
  if (left < 1e-6) return "100%";
  const digits = left >= 10 ? 0 : Math.max(1, -Math.floor(Math.log10(left)));
  const unit = 10 ** digits;
  return `${(Math.ceil(100 * probability * unit - 1e-9) / unit).toFixed(digits)}%`;
}

export function factor(loss) {
  const times = Math.exp(loss);
  return times > 1e6 ? "more than a million" : rounded(times);
}

export function oddsSentence(total, several) {
  const what = several ? "all of these publications" : "this publication";
  return (
    "Someone who thought it 50:50 that you were in the data can, after seeing " +
    `${what}, be at most ${percent(sureness(total))} sure, either way.`
  );
}

export function comparison(total, worst) {
  if (worst === null) return "There is no worst case to compare with: this kind of model has none.";
  if (total >= worst) {
    return `At this confidence the page cannot promise you more than everyone was promised: ${rounded(worst)}.`;
  }
  const share = total / worst;
  const words = share < 0.01 ? "less than 1%" : `${Math.ceil(100 * share)}%`;
  return `Your total is at most ${words} of the worst case that everyone was promised.`;
}

export const KINDS = {
  logistic: "logistic model",
  softmax: "logistic model",
  smoothed_hinge: "classifier (smoothed hinge)",
  pseudo_huber: "robust linear model",
  squared: "linear model",
};

export function title(fields, publication) {
  const count = publication.features.length;
  const { classes } = publication.loss;
  const several = classes === undefined ? "" : ` (${classes} classes)`;
  return `a ${KINDS[publication.loss.name]} of “${fields[publication.outcome].name}”${several} from ${count} feature${
    count === 1 ? "" : "s"
  }`;
}

export const capital = (sentence) => sentence[0].toUpperCase() + sentence.slice(1);

export const BESIDE = {
  independent: "Nothing was released but the model.",
  leverage: "Noisy numbers on how records spread (a Hessian) were released beside it.",
  dependent: "A noisy Hessian and a noisy gradient were released beside it.",
  adaptive: "A noisy Hessian, gradient and smallest eigenvalue were released beside it.",
};

export const beside = (publication) => BESIDE[publication.plan.report];

// A small probability as "1 in N".
export function chance(probability) {
  const among = Math.floor(1 / probability + 1e-9);
  return `1 in ${grouped(among)}`;
}

export function promise({ epsilon, delta }, insecure) {
  if (epsilon === null) {
    return "No worst case exists for this kind of model, so nothing was promised in advance; what it cost you can still be bounded.";
  }
  const words =
    `someone who thought it 50:50 that you were in the data can be at most ${percent(sureness(epsilon))} sure ` +
    `after seeing everything that was released (ε\u00a0=\u00a0${rounded(epsilon)}), apart from an allowance for rare ` +
    `events of about ${chance(delta)} (δ\u00a0=\u00a0${delta}).`;
  return insecure ? `With secret noise the promise would be: ${words}` : `The promise to everyone: ${words}`;
}
