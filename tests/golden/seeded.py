"""Seeded fits of every kind, whose published numbers are kept to the last bit in ``fits.json``.

``python tests/golden/seeded.py`` writes the file anew. Noise scales are given: only the fit decides.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse

import expost

FILE = Path(__file__).with_name("fits.json")
RNG = np.random.default_rng(20)
ROWS = RNG.normal(size=(300, 4)) * [1.0, 0.5, 0.2, 0.1] / 2.0
WRONG_WAY = RNG.normal(size=300) > 3.0 * ROWS[:, 0]
CLASSES = np.digitize(ROWS[:, 0] + 0.2 * RNG.normal(size=300), [-0.3, 0.3])
OUTCOMES = np.clip(ROWS @ [0.8, -0.5, 0.0, 1.0] + 0.1 * RNG.normal(size=300), -1.0, 1.0)
WEIGHTS = RNG.uniform(0.0, 2.0, 300)
SCALES = {
    "independent": {},
    "leverage": {"sigma_hessian": 4.0},
    "dependent": {"sigma_hessian": 4.0, "sigma_gradient": 5.0},
    "adaptive": {"sigma_hessian": 4.0, "sigma_gradient": 5.0, "sigma_eigenvalue": 6.0},
}
LOGISTIC, CAPPED, SOFTMAX = expost.LogisticLoss(), expost.LogisticLoss(cap=0.7), expost.SoftmaxLoss(3)
HUBER, HINGE = expost.PseudoHuber(0.3), expost.SmoothedHinge(0.5)
GRADIENTS = expost.LogisticLoss(cap=0.6, gradient_cap=0.84)
CASES = {
    **{f"logistic {report}": (LOGISTIC, ROWS, WRONG_WAY, {"report": report}) for report in SCALES},
    "capped": (CAPPED, ROWS, WRONG_WAY, {}),
    "single precision": (CAPPED, ROWS.astype(np.float32), WRONG_WAY, {}),
    "columns": (CAPPED, np.asfortranarray(ROWS), WRONG_WAY, {}),
    "sparse": (CAPPED, scipy.sparse.csr_array(ROWS * (abs(ROWS) > 0.1)), WRONG_WAY, {}),
    "long rows": (CAPPED, 7.0 * ROWS, WRONG_WAY, {}),
    "no intercept": (CAPPED, ROWS, WRONG_WAY, {"fit_intercept": False}),
    "weights": (CAPPED, ROWS, WRONG_WAY, {"max_weight": 2.0}),
    "hinge": (HINGE, ROWS, 2.0 * WRONG_WAY - 1.0, {}),
    "pseudo-Huber adaptive": (HUBER, ROWS, OUTCOMES, {"report": "adaptive"}),
    "squared": (expost.SquaredLoss(), ROWS, OUTCOMES, {}),
    "softmax": (SOFTMAX, ROWS, CLASSES, {}),
    "softmax adaptive": (SOFTMAX, ROWS, CLASSES, {"report": "adaptive"}),
    "softmax weights": (SOFTMAX, ROWS, CLASSES, {"max_weight": 2.0}),
    "capped gradients": (GRADIENTS, ROWS, WRONG_WAY, {"report": "leverage"}),
    "sparse, capped gradients": (GRADIENTS, scipy.sparse.csr_array(ROWS * (abs(ROWS) > 0.1)), WRONG_WAY, {}),
    "widths": (expost.PseudoHuber(0.2, gradient_cap=0.28), ROWS, OUTCOMES, {}),
    "softmax, capped gradients": (expost.SoftmaxLoss(3, 0.5, gradient_cap=0.7), ROWS, CLASSES, {}),
}


def fitted(name):
    """The numbers that the fit publishes, by their names."""
    loss, rows, labels, options = CASES[name]
    report = options.get("report", "independent")
    plan = expost.calibrate(
        loss=loss, sigma=3.0, l2=2.0, norm=1.0, **SCALES[report], **{"fit_intercept": True} | options
    )
    model = expost.GeneralizedLinearModel(
        loss=loss, norm=1.0, plan=plan, random_state=7, fit_intercept=plan.fit_intercept
    )
    weights = WEIGHTS if "max_weight" in options else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        document = json.loads(model.fit(rows, labels * 1.0, sample_weight=weights).publication_.to_json())
    return {"coefficients": document["coefficients"], **document["statistics"]}


def main():
    """Write the numbers of all cases."""
    kept = [f"{json.dumps(name)}: {json.dumps(fitted(name))}" for name in CASES]
    FILE.write_text("{\n" + ",\n".join(kept) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
