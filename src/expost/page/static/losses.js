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
};

export function derivatives(loss, eta, y) {
  return DERIVATIVES[loss.name](eta, y, loss);
}

// Where a loss bends most, over an interval of scores and one of labels: [score, label]. Each loss but the squared one
// bends less and less on either side of one point.
export function steepestPoint(loss, [low, high], [least, most]) {
  if (loss.name === "pseudo_huber" || loss.name === "squared") {
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
  return [Math.min(Math.max(peak, low), high), least];
}
