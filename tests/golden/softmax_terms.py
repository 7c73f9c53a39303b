"""Golden vectors of the softmax loss, from matrices with many digits; ``make.py`` writes them."""

import mpmath
from make import DIGITS, double, logistic
from mpmath import mp, mpf

LOSSES = [
    {"name": "softmax", "classes": 3},
    {"name": "softmax", "classes": 6},
    {"name": "softmax", "classes": 3, "cap": 0.65, "corner": 0.8},
    {"name": "softmax", "classes": 5, "cap": 0.999, "corner": 0.5},
]
SIZES = [0.0, 1e-8, 0.5, 3.7, 40.0, 650.0, 1e4]
# What the Hessian is multiplied with in the determinant.
SCALES = [1e-12, 0.5, 1e3]


def directions(count):
    """Fixed directions that are no multiple of each other, as doubles."""
    return [
        [double(mpmath.sin(mpf(3 * place + 7 * turn + 1))) for place in range(count)] for turn in range(4)
    ]


def helmert(classes):
    """Scores from linear predictors: the contrast of each class with the mean of those before it."""
    basis = mpmath.zeros(classes, classes - 1)
    for a in range(classes - 1):
        root = 1 / mpmath.sqrt(mpf((a + 1) * (a + 2)))
        for j in range(a + 1):
            basis[j, a] = root
        basis[a + 1, a] = -(a + 1) * root
    return basis


def terms(loss, predictors, y):
    """The mass of the wrong classes, the gradient's length, the Hessian's norm and its log-determinants."""
    classes, basis = loss["classes"], helmert(loss["classes"])
    scores = basis * mpmath.matrix([mpf(one) for one in predictors])
    powers = [mpf(0) if j == y else mpmath.exp(scores[j]) for j in range(classes)]
    total = mpmath.fsum(powers)
    parameters = {key: mpf(loss[key]) for key in ("cap", "corner") if key in loss}
    slope, curvature = logistic(mpmath.log(total) - scores[y], mpf(0), **parameters)
    pi = mpmath.matrix([power / total for power in powers])
    away = pi.copy()
    away[y] -= 1
    hessian = slope * (mpmath.diag(list(pi)) - pi * pi.T) + curvature * (away * away.T)
    norm = mpmath.sqrt(mpmath.fsum(hessian[j, k] ** 2 for j in range(classes) for k in range(classes)))
    determinants = [mpmath.log(mpmath.det(mpmath.eye(classes) + mpf(scale) * hessian)) for scale in SCALES]
    return [slope, slope * mpmath.norm(away), norm, *determinants]


def softmax():
    """For each loss, points of predictors and label with their terms."""
    mp.dps = DIGITS
    found = []
    for loss in LOSSES:
        points = []
        for turn, direction in enumerate(directions(loss["classes"] - 1)):
            for size in SIZES:
                predictors, y = [double(mpf(size) * mpf(one)) for one in direction], turn % loss["classes"]
                points.append([predictors, y, [double(term) for term in terms(loss, predictors, y)]])
        found.append({"loss": loss, "scales": SCALES, "points": points})
    return found
