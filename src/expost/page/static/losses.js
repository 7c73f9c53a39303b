// First and second derivative of each loss in the linear predictor, as in expost.losses.

// The small side from its own exponential, so that it keeps its digits.
function sigmoid(t) {
  const decay = Math.exp(-Math.abs(t));
  return (t >= 0 ? 1 : decay) / (1 + decay);
}

// Beyond the corner the slope nears the cap; up to it the loss is the logistic one.
function capped(eta, y, cap, corner) {
  const steep = cap * corner;
  const rate = (steep * (1 - steep)) / (cap - steep);
  const wrong = y > 0.5 ? -eta : eta;
  const inner = Math.min(wrong, Math.log(steep / (1 - steep)));
  const beyond = rate * (wrong - inner);
  const p = sigmoid(inner);
  const slope = p - (cap - steep) * Math.expm1(-beyond);
  return [y > 0.5 ? -slope : slope, p * sigmoid(-inner) * Math.exp(-beyond)];
}

export const DERIVATIVES = {
  logistic(eta, y, { cap, corner }) {
    if (cap !== undefined) return capped(eta, y, cap, corner);
    // The small probability from its own exponential, so that it keeps its digits.
    const decay = Math.exp(-Math.abs(eta));
    const large = 1 / (1 + decay);
    const small = decay * large;
    const p = eta >= 0 ? large : small;
    const q = eta >= 0 ? small : large;
    return [(1 - y) * p - y * q, large * small];
  },
  smoothed_hinge(eta, y, { scale }) {
    const t = (1 - y * eta) / scale;
    const p = sigmoid(t);
    return [-y * p, (p * sigmoid(-t)) / scale];
  },
  pseudo_huber(eta, y, { threshold }) {
    const residual = eta - y;
    const stretch = Math.hypot(1, residual / threshold);
    // A residual beyond double precision has the limiting slope.
    const slope = stretch === Infinity ? Math.sign(residual) * threshold : residual / stretch;
    return [slope, stretch ** -3];
  },
  squared(eta, y) {
    return [eta - y, 1];
  },
  smoothed_pinball(eta, y, { level, scale }) {
    const t = (eta - y) / scale;
    return [Math.tanh(t / 2) / 2 + (0.5 - level), (sigmoid(t) * sigmoid(-t)) / scale];
  },
  bounded_poisson: (eta, y, { threshold }) => squashed(Math.exp(Math.min(eta, 550)), y, threshold),
  bounded_gamma(eta, y, { threshold }) {
    const [slope, bend] = squashed(y * Math.exp(Math.min(-eta, 550)), 1, threshold);
    return [-slope, bend];
  },
};

// A residual with an exponential in it, squashed, and its derivative.
function squashed(power, y, threshold) {
  const stretch = Math.hypot(1, (power - y) / threshold);
  return [(power - y) / stretch, power / stretch / (stretch * stretch)];
}

// The exponential at which that bends most.
const peakOf = (y, threshold) => (y + Math.sqrt(9 * y * y + 8 * threshold ** 2)) / 4;

// Levels of rows by their length, as in expost.losses.records: caps and thresholds of level k are 2^(k/64) times those
// of the longest rows, and the last level is that without a cap, or with 16 times the threshold.
const STEPS = 64;

const reachOf = ({ gradient_cap: most, cap, threshold }) => most / (cap ?? threshold);

const limit = (loss, level) => reachOf(loss) / 2 ** (level / STEPS);

function levelOf(loss, squared, columns) {
  const square = squared * (1 + 2 ** -40 + columns * 2 ** -51);
  const last = Math.ceil(STEPS * Math.log2(loss.cap === undefined ? 16 : 1 / loss.cap));
  let level = Math.floor(STEPS * Math.log2(reachOf(loss) / Math.sqrt(square)));
  // The logarithm may be off by its last digit.
  if (limit(loss, level + 1) ** 2 >= square) level += 1;
  if (limit(loss, level) ** 2 < square) level -= 1;
  return Math.min(Math.max(level, 0), last);
}

function onLevel({ gradient_cap: _, cap, corner, threshold, ...loss }, level) {
  const factor = 2 ** (level / STEPS);
  if (threshold !== undefined) return { ...loss, threshold: threshold * factor };
  return cap * factor < 1 ? { ...loss, cap: cap * factor, corner } : loss;
}

// The losses of rows between two lengths of so many columns, and the largest length of a row with each.
export function lossesBetween(loss, shortest, longest, columns) {
  if (loss.gradient_cap === undefined) return [{ loss, length: longest }];
  const [first, last] = [longest, shortest].map((length) => levelOf(loss, length ** 2, columns));
  return Array.from({ length: last - first + 1 }, (_, i) => ({
    loss: onLevel(loss, first + i),
    length: i === 0 ? longest : Math.min(longest, limit(loss, first + i)),
  }));
}

// The loss of a row.
export function lossOf(loss, row) {
  if (loss.gradient_cap === undefined) return loss;
  return onLevel(loss, levelOf(loss, row.reduce((sum, x) => sum + x * x, 0), row.length));
}

export function derivatives(loss, eta, y) {
  return DERIVATIVES[loss.name](eta, y, loss);
}

// Where a loss bends most, over an interval of scores and one of labels: [score, label]. Each loss but the squared one
// bends less and less on either side of one point.
export function steepestPoint(loss, [low, high], [least, most]) {
  const inside = (value, from, to) => Math.min(Math.max(value, from), to);
  if (loss.threshold && loss.name.startsWith("bounded")) {
    const poisson = loss.name === "bounded_poisson";
    const peak = peakOf(poisson ? most : 1, loss.threshold);
    const score = inside(Math.log(poisson ? peak : most / peak), low, high);
    return [score, inside(Math.exp(score) * (poisson ? 1 : peak), least, most)];
  }
  if (["pseudo_huber", "squared", "smoothed_pinball"].includes(loss.name)) {
    // The smallest residual.
    if (high < least) return [high, least];
    const label = Math.max(low, least);
    return label <= Math.min(high, most) ? [label, label] : [low, most];
  }
  let peak = 0;
  if (loss.name === "smoothed_hinge") peak = least;
  if (loss.cap !== undefined) {
    const corner = Math.min(0, Math.log((loss.cap * loss.corner) / (1 - loss.cap * loss.corner)));
    peak = least > 0.5 ? -corner : corner;
  }
  return [inside(peak, low, high), least];
}
