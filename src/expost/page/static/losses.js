// First and second derivative of each loss in the linear predictor, as in expost.losses.

const sigmoid = (t) => 1 / (1 + Math.exp(-t));

const DERIVATIVES = {
  logistic(eta, y) {
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
    return [residual / stretch, stretch ** -3];
  },
  squared(eta, y) {
    return [eta - y, 1];
  },
};

export function derivatives(loss, eta, y) {
  return DERIVATIVES[loss.name](eta, y, loss);
}
