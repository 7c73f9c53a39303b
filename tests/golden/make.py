"""Make the golden vectors again: ``python tests/golden/make.py``.

Nothing that the library or the page computes goes into an expected number. Losses and bounds are written
here a second time, from their definitions, in arithmetic with so many digits that nothing cancels or
overflows. Encodings are exact fractions, rounded after each step of the documented formula. The
publications are fixed inputs with round numbers; only their guarantee and their hash are the library's.
"""

import json
import math
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import mpmath
import numpy as np
from mpmath import mp, mpf

HERE = Path(__file__).parent
# As many digits as lie between the largest double and the smallest.
DIGITS = 700

EXTREMES = [0.0, -0.0]
for _size in (5e-324, 1e-300, 1e-8, 0.5, 1.0, 3.7, 30.0, 700.0, 1e4, 1e16, 1e155, 1e308):
    EXTREMES += [_size, -_size]


def double(number):
    """The nearest double; an infinity where there is none."""
    if number == 0:
        return 0.0
    if abs(number) >= mpf(2) ** 1024:
        return math.inf if number > 0 else -math.inf
    return float(number)


# Losses: slope and curvature in the linear predictor, as the textbook has them.


def logistic(eta, y, cap=None, corner=None):
    if cap is not None:
        # The slope at the corner is the product of two doubles, rounded.
        steep, side = mpf(float(cap) * float(corner)), 1 - 2 * y
        beyond = side * eta - mpmath.log(steep / (1 - steep))
        rest = cap - steep
        if beyond > 0:
            left = rest * mpmath.exp(-steep * (1 - steep) / rest * beyond)
            return side * (cap - left), steep * (1 - steep) * left / rest
    p = 1 / (1 + mpmath.exp(-eta))
    return p - y, p * (1 - p)


def smoothed_hinge(eta, y, scale):
    p = 1 / (1 + mpmath.exp(-(1 - y * eta) / scale))
    return -y * p, p * (1 - p) / scale


def pseudo_huber(eta, y, threshold):
    root = mpmath.sqrt(1 + ((eta - y) / threshold) ** 2)
    return (eta - y) / root, root**-3


def squared(eta, y):
    return eta - y, mpf(1)


def smoothed_pinball(eta, y, level, scale):
    p = 1 / (1 + mpmath.exp(-(eta - y) / scale))
    return p - level, p * (1 - p) / scale


def bounded_poisson(eta, y, largest, threshold):
    mean = mpmath.exp(eta)
    root = mpmath.sqrt(1 + ((mean - y) / threshold) ** 2)
    return (mean - y) / root, mean / root**3


def bounded_gamma(eta, y, threshold):
    ratio = y * mpmath.exp(-eta)
    root = mpmath.sqrt(1 + ((1 - ratio) / threshold) ** 2)
    return (1 - ratio) / root, ratio / root**3


def peak(y, threshold):
    """The largest curvature of a squashed residual of the mean and this label."""
    y, c = mpf(y), mpf(threshold)
    return bounded_poisson(mpmath.log((y + mpmath.sqrt(9 * y**2 + 8 * c**2)) / 4), y, None, c)[1]


def derivatives(loss, eta, y):
    """Slope and curvature for a loss as a publication describes it."""
    parameters = {key: mpf(value) for key, value in loss.items() if key not in ("name", "soft")}
    formulas = {
        "logistic": logistic,
        "smoothed_hinge": smoothed_hinge,
        "pseudo_huber": pseudo_huber,
        "squared": squared,
        "smoothed_pinball": smoothed_pinball,
        "bounded_poisson": bounded_poisson,
        "bounded_gamma": bounded_gamma,
    }
    return formulas[loss["name"]](mpf(eta), mpf(y), **parameters)


REAL = [0.0, -0.0, 0.5, 5e-324, -1e-300, 1e308, -1e308]
LOSSES = [
    ({"name": "logistic", "soft": False}, [0.0, 1.0]),
    ({"name": "logistic", "soft": True}, [0.0, 5e-324, 1e-300, 0.3, 1.0 - 2.0**-53, 1.0]),
    ({"name": "logistic", "soft": False, "cap": 0.65, "corner": 0.8}, [0.0, 1.0]),
    ({"name": "logistic", "soft": False, "cap": 0.999, "corner": 0.999}, [0.0, 1.0]),
    ({"name": "logistic", "soft": False, "cap": 0.01, "corner": 0.25}, [0.0, 1.0]),
    ({"name": "smoothed_hinge", "scale": 0.3}, [-1.0, 1.0]),
    ({"name": "smoothed_hinge", "scale": 1e-9}, [-1.0, 1.0]),
    ({"name": "pseudo_huber", "threshold": 0.5}, REAL),
    ({"name": "pseudo_huber", "threshold": 1e-300}, REAL),
    ({"name": "pseudo_huber", "threshold": 1e30}, REAL),
    ({"name": "squared"}, REAL),
    ({"name": "smoothed_pinball", "level": 0.5, "scale": 0.05}, REAL),
    ({"name": "smoothed_pinball", "level": 0.9, "scale": 1e-9}, REAL),
    ({"name": "bounded_poisson", "largest": 8.0, "threshold": 1.5}, [0.0, 0.5, 8.0]),
    ({"name": "bounded_poisson", "largest": 1e30, "threshold": 1e25}, [0.0, 1e30]),
    ({"name": "bounded_gamma", "threshold": 0.6}, [0.5, 3.0, 1e15]),
]


def losses():
    """For each loss, points of predictor, label, slope and curvature; none whose slope is no double."""
    mp.dps = DIGITS
    found = []
    for loss, labels in LOSSES:
        pairs = [(eta, y) for y in labels for eta in EXTREMES]
        points = [[eta, y, *map(double, derivatives(loss, eta, y))] for eta, y in pairs]
        found.append({"loss": loss, "points": [point for point in points if math.isfinite(point[2])]})
    return found


# Encodings: what a person may type, what it means, and what becomes of it.

# A text and the number that it spells; "" for one that counts as missing, None for one that is refused.
NUMBERS = [
    *((text, text) for text in ("0", "25", "100", "101", "-1", "1e9", "-1e9", "37.25", "1e308", "-1e308")),
    *(
        (text, text)
        for text in ("5e-324", "-5e-324", "1e-300", "2e-300", "1e-400", "0.1", "99.9", "12345.678")
    ),
    *(("-0", "0"), ("+5", "5"), (".5", "0.5"), ("5.", "5"), ("1E3", "1000"), ("1.5e+1", "15"), ("007", "7")),
    *((" 25 ", "25"), ("\t25\n", "25"), ("\u00a025\u2003", "25"), ("\u008525", "25"), ("\x1c25", "25")),
    *((text, None) for text in ("1_000", "4_0", "1_0.2_5e0_1", "٤٠", "٣٥", "３.５", "𝟛𝟡")),
    *((text, "") for text in ("", "nan", "NaN", " -nan ", "+NAN")),
    *((text, None) for text in (" ", "x", "0x10", "1,5", "1 000", "5e", "e5", ".", "+", "--5", "1e", "5 5")),
    *((text, None) for text in ("_1", "1_", "1__0", "1_.5", "1._5", "1e_5", "\ufeff25", "²", "½", "yes")),
    *((text, None) for text in ("inf", "-inf", "Infinity", "1e309", "-1e999", "nan1", "25\x00")),
]
WORDS = [
    *((text, 1.0) for text in ("yes", "YES", " Yes\t", "true", "True", "1", "1.0", "y", "T", "\x1cyes")),
    *((text, 0.0) for text in ("no", "NO", "\nno ", "false", "FALSE", "0", "0.0", "n", " F", "no\u00a0")),
    *(
        (text, None)
        for text in (" ", "maybe", "2", "-1", "01", "1.00", "0.00", "yes.", "nope", "ye s", "\ufeffyes")
    ),
]


def spelled(text):
    """The double that a number in NUMBERS is; None for a missing one."""
    return float(Fraction(text)) if text else None


def share(feature, number):
    low, high = Fraction(feature["low"]), Fraction(feature["high"])
    above = float(min(max(Fraction(number), low), high) - low)
    return float(Fraction(above) / Fraction(float(high - low)))


def encode_number(feature, meaning):
    if meaning is None:
        return None
    number = spelled(meaning)
    if number is None:
        number = feature["missing"]
    if number is None:
        return None
    inside = share(feature, number)
    return [inside] if feature["scale"] == "unit" else [float(2 * Fraction(inside) - 1)]


def feature_cells(feature):
    """Texts for one feature with the columns that they become; None where they are refused."""
    if feature["kind"] == "number":
        return [[text, encode_number(feature, meaning)] for text, meaning in NUMBERS]
    if feature["kind"] == "yes_no":
        default = None if feature["missing"] is None else [float(feature["missing"])]
        return [["", default], *([text, None if one is None else [one]] for text, one in WORDS)]

    def hot(text):
        return (
            [float(text == one) for one in feature["categories"]] if text in feature["categories"] else None
        )

    others = [text.upper() for text in feature["categories"]] + [" north", "north ", "nan", "0", "west", " "]
    return [["", hot(feature["missing"])], *([text, hot(text)] for text in [*feature["categories"], *others])]


def label(publication, meaning):
    """What an outcome becomes; None where it is refused."""
    loss, domain = publication["loss"], publication["domain"]
    if publication["classes"] is not None:
        labels = [-1.0, 1.0] if loss["name"] == "smoothed_hinge" else [0.0, 1.0]
        return dict(zip(publication["classes"], labels, strict=True)).get(meaning)
    number = spelled(meaning) if meaning else None
    if number is not None and domain is not None:
        declared = domain["label"]
        if declared["kind"] == "number":
            return float(2 * Fraction(share(declared, number)) - 1)
        inside = min(max(number, declared["low"]), declared["high"])
        counts = declared["kind"] == "count"
        return inside / (declared["high"] / 8 if counts else math.sqrt(declared["low"] * declared["high"]))
    if number is not None and loss.get("soft"):
        return number if 0.0 <= number <= 1.0 else None
    return number


def outcome_cells(publication):
    """Texts for the outcome with the labels that they become."""
    if publication["classes"] is not None:
        texts = [*publication["classes"], "", " ", "YES", "nan", "no "]
        return [[text, label(publication, text)] for text in texts]
    return [[text, label(publication, meaning)] for text, meaning in NUMBERS]


def encodings(publications):
    """For each publication that declares them, the cells of its features; for each, those of its outcome."""
    found = {}
    for name, publication in publications.items():
        features = publication["domain"]["features"] if publication["domain"] else []
        found[name] = {
            "features": {feature["name"]: feature_cells(feature) for feature in features},
            "outcome": outcome_cells(publication),
        }
    return found


# Bounds: the terms of a report, as the docstrings of expost.reports have them.

# What a computed statistic may be off by: of its noise, or of the largest Hessian, if that is more.
ERROR, HESSIAN_ERROR = mpf(2) ** -20, mpf(2) ** -44
# What the output's noise takes of a failure probability, and what else separates the printed coefficients
# from the exact minimiser, in standard deviations of that noise.
OF_OUTPUT = REST = mpf(2) ** -10
# Of the Hessian from below and from above, the eigenvalue, the gradient and the objective's own noise.
SHARES = {
    "independent": ("0", "0", "0", "0", "1"),
    "leverage": ("0.04", "0.01", "0", "0", "0.95"),
    "dependent": ("0.04", "0.01", "0", "0.52", "0.43"),
    "adaptive": ("0.04", "0.01", "0.05", "0.5", "0.4"),
}
WEIGHTS = "0 .1 .2 .3 .4 .5 .6 .7 .8 .9 .95 .98 .99 .997 .999 .9999 1".split()  # noqa: SIM905


def normal(tail):
    """What a standard normal exceeds with probability ``tail``."""
    return mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * tail)


def chi(freedom, tail):
    """What a chi variable exceeds with probability ``tail``."""
    half = mpf(freedom) / 2

    def excess(x):
        return mpmath.log(mpmath.gammainc(half, x * x / 2, mpmath.inf, regularized=True) / tail)

    return mpmath.findroot(excess, mpmath.sqrt(freedom) + normal(tail))


def goe(dimension, tail):
    """What the largest eigenvalue of the GOE exceeds with probability ``tail``, in one and two dimensions.

    In two it is the sum of a standard normal and an independent Rayleigh variable.
    """
    if dimension == 1:
        return mpmath.sqrt(2) * normal(tail)
    assert dimension == 2

    def excess(t):
        mixed = mpmath.exp(-t * t / 4) / mpmath.sqrt(2) * mpmath.ncdf(t / mpmath.sqrt(2))
        return mpmath.log((mpmath.ncdf(-t) + mixed) / tail)

    return mpmath.findroot(excess, 2 * normal(tail))


@cache
def ellipse(stretch, tail):
    """The first half axis of the ellipse that two standard normals leave with probability ``tail``.

    The second is ``stretch`` times as long. The second normal first: given it, the first one leaves a
    symmetric interval.
    """

    def beyond(q):
        def given(t):
            second = stretch * q * mpmath.sin(t)
            return mpmath.npdf(second) * mpmath.erfc(q * mpmath.cos(t) / mpmath.sqrt(2)) * mpmath.cos(t)

        inside = 2 * stretch * q * mpmath.quad(given, [0, mpmath.pi / 2], method="gauss-legendre")
        return inside + mpmath.erfc(stretch * q / mpmath.sqrt(2))

    with mp.workdps(25):  # more than a double has, and quick
        return mpmath.findroot(lambda q: mpmath.log(beyond(q) / tail), normal(tail / 2))


class Reader:
    """One publication at one confidence and in one scope."""

    def __init__(self, publication, confidence, every):
        self.publication, self.every = publication, every
        self.theta = [mpf(number) for number in publication["coefficients"]]
        self.dimension = len(self.theta)
        scales = {key: publication["plan"][key] for key in publication["plan"] if key.startswith("sigma")}
        self.scales = {key: None if value is None else mpf(value) for key, value in scales.items()}
        self.sigma, self.l2 = self.scales["sigma"], mpf(publication["plan"]["l2"])
        self.precision = publication["precision"]
        self.output_noise = mpf(self.precision["output_noise"])
        self.solver = 2 * mpf(self.precision["solver_radius"]) / self.output_noise
        self.failure = mpf(1.0 - confidence)
        shares = SHARES[publication["plan"]["report"]]
        self.below_share, self.above_share, self.eigenvalue_share, self.gradient_share, self.noise_share = (
            self.failure * mpf(one) for one in shares
        )
        statistics = publication["statistics"]
        self.gradient = statistics["gradient"] and [mpf(number) for number in statistics["gradient"]]
        self.eigenvalue = statistics["eigenvalue"]
        self.hessian = None
        if statistics["hessian"] is not None:
            a, b, c = map(mpf, statistics["hessian"])
            self.hessian = mpmath.matrix([[a, b], [b, c]])
        self.identity = mpmath.eye(self.dimension)
        self.floor = self.l2 * self.identity

    def read(self, row, y, member):
        """Lower end, upper end, report's cost and total; ``member`` may be None."""
        self.row = mpmath.matrix(row)
        self.norm = mpmath.norm(self.row)
        self.norm1 = mpmath.norm(self.row, 1)
        eta = sum((x * theta for x, theta in zip(self.row, self.theta, strict=True)), mpf(0))
        self.slope, self.curvature = derivatives(self.publication["loss"], eta, y)
        sides = [self.one_side(side) for side in ([True, False] if member is None else [member])]
        lower = double(min(side[0] for side in sides))
        upper, total = (double(max(side[place] for side in sides)) for place in (1, 2))
        # Where no double is above the loss none is said to be below it.
        return [lower if math.isfinite(upper) else 0.0, upper, double(self.cost(self.failure)), total]

    def form(self, matrix):
        """The curvature times the quadratic form of the inverse at the row."""
        return self.curvature * (self.row.T * mpmath.inverse(matrix) * self.row)[0]

    def mixtures(self, lower, floor, *more):
        """The weights at which the mixture of two lower bounds is positive definite, and the mixtures."""
        # Relative to the second, the first has these eigenvalues; the mixture has w e + 1 - w.
        root = mpmath.inverse(mpmath.cholesky(floor))
        smallest = min(mpmath.eigsy(root * lower * root.T, eigvals_only=True))
        largest = 1 / (1 - smallest) if smallest < 0 else mpf(1)
        weights = [*(largest * mpf(weight) for weight in WEIGHTS), *more]
        mixed = [(weight, weight * lower + (1 - weight) * floor) for weight in weights]
        for weight, matrix in mixed:
            values = mpmath.eigsy(matrix, eigvals_only=True)
            if min(values) > mpf("1e-12") * max(values):
                yield weight, matrix

    @property
    def margin(self):
        """Of the noise along one direction, or along every one."""
        tail = self.below_share
        quantile = goe(self.dimension, tail) if self.every else mpmath.sqrt(2) * normal(tail)
        return (quantile + self.error("sigma_hessian")) * self.scales["sigma_hessian"]

    def determinant(self, member):
        if self.hessian is None:
            small, large = mpf(0), mpmath.log(1 + self.form(self.floor))
            return (small, large) if member else (-large, -small)
        lower = self.hessian - self.margin * self.identity
        # At one weight a mixture with a multiple of the identity is a multiple of the noisy Hessian.
        mixed = self.mixtures(lower, self.floor, self.l2 / (self.l2 + self.margin))
        found = [(weight if member else 0, self.form(matrix)) for weight, matrix in mixed]
        if self.eigenvalue is not None:
            quantile = normal(self.eigenvalue_share) + self.error("sigma_eigenvalue")
            margin = quantile * self.scales["sigma_eigenvalue"]
            least = max(self.l2, mpf(self.eigenvalue) - margin)
            mixed = self.mixtures(lower, least * self.identity, least / (least + self.margin))
            found += [(1 if member else 0, self.form(matrix)) for _, matrix in mixed]
        large = mpmath.log(1 + min(a / (1 - w * a) for w, a in found if w * a < 1))
        above = goe(self.dimension, self.above_share) + self.error("sigma_hessian")
        above *= self.scales["sigma_hessian"]
        bend = self.form(self.hessian + above * self.identity)
        small = min(large, -mpmath.log(1 - bend) if member else mpmath.log(1 + bend))
        return (small, large) if member else (-large, -small)

    def reach(self, failure, unit=1):
        """Of the noise along the row, and of the gradient's change from the exact minimiser; in ``unit``s."""
        share = OF_OUTPUT * failure
        left = failure - share
        rest = chi(self.dimension, share) if self.every else normal(share / 2)
        moved = unit * self.tilt * (rest + REST)
        if not self.every:
            return self.norm * (normal(left / 2) + moved)
        each = (1 - (1 - left / 2) ** (mpf(1) / self.dimension)) / 2
        return min(self.norm * (chi(self.dimension, left / 2) + moved), self.norm1 * (normal(each) + moved))

    def inner_product(self, member):
        steep = abs(self.slope)
        width = steep * self.reach(self.noise_share) / self.sigma
        if self.gradient is None:
            return -width, width
        noise = self.scales["sigma_gradient"]
        both = self.sigma**2 + noise**2
        along = sum(x * g for x, g in zip(self.row, self.gradient, strict=True))
        centre = (-1 if member else 1) * self.slope * along / both
        left_open = self.reach(self.gradient_share, mpmath.sqrt(both) / noise)
        narrow = steep * left_open * noise / (self.sigma * mpmath.sqrt(both))
        low, high = max(centre - narrow, -width), min(centre + narrow, width)
        if low <= high:
            return low, high
        return min(centre - narrow, -width), max(centre + narrow, width)

    def interval(self, determinant, product):
        quadratic = (self.slope * self.norm / self.sigma) ** 2 / 2
        low, high = (one + quadratic + other for one, other in zip(determinant, product, strict=True))
        return max(low, -high, mpf(0)), max(high, -low)

    @property
    def parts(self):
        """How far the record moves each statistic, in units of its noise."""
        bend = self.curvature * self.norm**2
        parts = {
            "sigma_gradient": abs(self.slope) * self.norm,
            "sigma_hessian": bend / mpmath.sqrt(2),
            "sigma_eigenvalue": bend,
        }
        return {
            key: part / self.scales[key] + 2 * self.error(key) if self.scales[key] else 0
            for key, part in parts.items()
        }

    def of_logistic(self):
        """The largest slope, and the largest curvature: at one half, or at a corner before it."""
        cap, corner = (mpf(self.publication["loss"].get(key) or 1) for key in ("cap", "corner"))
        at = min(mpf(1) / 2, cap * corner)
        return cap, at * (1 - at)

    @property
    def worst(self):
        """The largest slope and the largest curvature of the loss, and the largest norm of a row."""
        loss = self.publication["loss"]
        steepest, most_curved = {
            "logistic": self.of_logistic,
            "smoothed_hinge": lambda: (1, mpf("0.25") / mpf(loss["scale"])),
            "pseudo_huber": lambda: (mpf(loss["threshold"]), 1),
            "squared": lambda: (mpmath.inf, 1),
            "smoothed_pinball": lambda: (
                max(loss["level"], 1 - loss["level"]),
                mpf("0.25") / mpf(loss["scale"]),
            ),
            "bounded_poisson": lambda: (mpf(loss["threshold"]), peak(loss["largest"], loss["threshold"])),
            "bounded_gamma": lambda: (mpf(loss["threshold"]), peak(1, loss["threshold"])),
        }[loss["name"]]()
        radius = mpmath.sqrt(mpf(self.publication["norm"]) ** 2 + self.publication["fit_intercept"])
        return steepest, most_curved, radius

    @property
    def all_rows(self):
        """The largest Hessian that the rows can have."""
        _, most_curved, radius = self.worst
        return most_curved * radius**2 * self.precision["rows_at_most"]

    @property
    def tilt(self):
        """How far the printed coefficients' gradient is from the noise, per deviation of the output's."""
        return self.output_noise * (self.l2 + self.all_rows) / self.sigma

    def error(self, key):
        """What a computed statistic may be off by, in units of its noise."""
        of_hessian = 0 if key == "sigma_gradient" else HESSIAN_ERROR * self.all_rows / self.scales[key]
        return max(ERROR, of_hessian)

    @property
    def stretch(self):
        """The ratio of the axes of the total's ellipse, from the largest slope and curvature of the loss."""
        steepest, most_curved, radius = self.worst
        sigma2, sigma3, sigma4 = (
            self.scales[f"sigma_{name}"] or mpmath.inf for name in ("gradient", "hessian", "eigenvalue")
        )
        curved = most_curved * radius**2 * mpmath.sqrt(1 / (2 * sigma3**2) + 1 / sigma4**2)
        steep = steepest * radius * mpmath.sqrt(1 / self.sigma**2 + 1 / sigma2**2)
        return (
            min(max((3 * curved / steep) ** mpf("-0.4"), mpf(1)), mpf(4)) if steepest < mpmath.inf else mpf(1)
        )

    @property
    def shift(self):
        return mpmath.sqrt(sum(part**2 for part in self.parts.values()))

    @property
    def statistics_dimension(self):
        d = self.dimension
        sizes = {"sigma_gradient": d, "sigma_hessian": d * (d + 1) // 2, "sigma_eigenvalue": 1}
        return sum(size for key, size in sizes.items() if self.scales[key])

    def cost(self, failure):
        if not self.statistics_dimension:
            return mpf(0)
        quantile = chi(self.statistics_dimension, failure) if self.every else normal(failure / 2)
        return self.shift * (self.shift / 2 + quantile)

    def one_side(self, member):
        determinant = self.determinant(member)
        lower, upper = self.interval(determinant, self.inner_product(member))
        if not self.statistics_dimension:
            return lower, upper, upper
        tail = self.failure - self.below_share - self.eigenvalue_share
        square = (self.slope * self.norm / self.sigma) ** 2 + self.shift**2 + self.solver**2
        bent = self.parts["sigma_hessian"] ** 2 + self.parts["sigma_eigenvalue"] ** 2 + self.solver**2
        # Errors of computed gradients lie in directions of their own.
        error = 2 * ERROR * bool(self.gradient)
        if self.every:
            # The noise of the objective and the gradient in a ball, and in another all other noise.
            others = self.statistics_dimension - self.dimension * bool(self.gradient)
            steep, curved = mpmath.sqrt(square - bent), mpmath.sqrt(bent)
            noise = chi(self.dimension, tail / 2) * steep + chi(others, tail / 2) * curved
            noise += (error + self.solver) * chi(self.dimension, mpf("1e-15"))
        else:
            longer = self.stretch
            noise = ellipse(longer, tail) * mpmath.sqrt(square - bent + longer**2 * bent)
            noise += error * mpf("8.1")
        return lower, upper, max(map(abs, determinant)) + square / 2 + noise


def encoded(publication, answers):
    """The row inside the ball, in many digits, and the label of a person's answers."""
    domain = publication["domain"]
    if domain is None:
        row = [float(text) for text in answers[:-1]]
    else:
        cells = [dict(feature_cells(feature)) for feature in domain["features"]]
        row = [x for cell, text in zip(cells, answers, strict=False) for x in cell[text]]
    row = [mpf(x) for x in row]
    length, norm = mpmath.norm(mpmath.matrix(row)), mpf(publication["norm"])
    ratio = norm / length if length else mpf(1)
    scale = min(mpf(1), ratio if ratio >= mpf("1e-290") else mpf(0))
    constant = [mpf(1)] * publication["fit_intercept"]
    return [x * scale for x in row] + constant, label(publication, answers[-1])


PERSONS = {
    "wide": [
        ["25", "37.25", "2e-300", "1e308", "north", "a", "yes", "0", "yes"],
        ["", "1e9", "1e-300", "-1e308", "", "A", "", "1.0", "no"],
        ["-1", "12345.678", "5e-324", "0", "1", "a", "T", "n", "no"],
    ],
    "huber": [
        *(["0.3", "0.4", y] for y in ("1e308", "-1e308", "1e155", "0.5", "0", "-0.0", "5e-324", "1e-300")),
        *([*x, "1e308"] for x in (("0", "0"), ("-0.0", "5e-324"), ("1e200", "-1e200"), ("1e308", "1e308"))),
    ],
    "scores": [["25", "1e9"], ["101", "-1e308"], ["37.25", "0"], ["1e308", "1e308"]],
    "quantile": [["25", "1e9"], ["101", "-1e308"], ["37.25", "0"]],
    "count": [["25", "0"], ["101", "25"], ["0", "1e9"], ["37.25", "-1e308"]],
    "amount": [["25", "101"], ["101", "1e9"], ["0", "0"], ["37.25", "37.25"]],
    "hinge": [["0.2", "-0.9", "b"], ["30", "40", "a"], ["-1e-300", "0", "b"], ["0.01", "0.02", "a"]],
    "logistic": [["0.2", "yes"], ["-1e308", "no"], ["1e-300", "no"], ["0.5", "yes"]],
    "capped": [["0.2", "yes"], ["0.2", "no"], ["-1e308", "no"], ["1e-300", "no"], ["-0.5", "yes"]],
    "soft": [["0.5", "0.5", "0.3"], ["1e155", "1", "1"], ["-0.7", "0.1", "5e-324"]],
    "squared": [["0.1", "0.2", y] for y in ("0.5", "1e16", "-1e150", "1e308", "-1e308")],
}
QUESTIONS = [
    {"confidence": "95%", "member": None, "every": False},
    {"confidence": "95%", "member": True, "every": True},
    {"confidence": "99.9999%", "member": False, "every": False},
    {"confidence": "90%", "member": True, "every": False},
]


def bounds(publications):
    """For each publication: answers, a question, and lower end, upper end, report's cost and total."""
    mp.dps = 60
    found = {}
    for name, persons in PERSONS.items():
        found[name] = []
        for question in QUESTIONS:
            level = float(question["confidence"].removesuffix("%")) / 100
            # Text as the menu shows it; the nearest double to it is the confidence.
            reader = Reader(publications[name], float(f"{level:.8g}"), question["every"])
            for answers in persons:
                figures = reader.read(*encoded(publications[name], answers), question["member"])
                found[name].append({"answers": answers, "options": question, "figures": figures})
    return found


def publications():
    """Publications of every loss and kind of report; the only part that the library makes."""
    import expost
    from expost import AmountLabel, Category, ClassLabel, CountLabel, Domain, Number, NumberLabel, YesNo
    from expost.fitting.release import Release

    wide = Domain(
        features=(
            Number(name="age", low=0.0, high=100.0, missing=50.0),
            Number(name="income", low=-1000.0, high=90000.0, scale="unit"),
            Number(name="dose", low=1e-300, high=3e-300, scale="unit", missing=1e-300),
            Number(name="anything", low=-8e307, high=8e307),
            Category(name="ward", categories=("north", "south, old", 'the "east"', "1"), missing="north"),
            Category(name="letter", categories=("a", "A")),
            YesNo(name="smoker", missing=False),
            YesNo(name="insured"),
        ),
        label=ClassLabel(name="ill", classes=("no", "yes")),
        norm=1.6,
    )
    scores = Domain(
        features=(Number(name="age", low=0.0, high=100.0),),
        label=NumberLabel(name="score", low=-5.0, high=20.0),
    )
    counts, amounts = (
        scores.model_copy(update={"label": one})
        for one in (
            CountLabel(name="visits", high=52.0),
            AmountLabel(name="cost", low=4.0, high=2500.0),
        )
    )
    hessian = np.array([[9.0, 1.5], [1.5, 6.0]])
    # For so many rows slopes and curvatures change by less than a figure shows.
    given = {"norm": 1.0, "l2": 2.0, "sigma": 4.0, "rows_at_most": 10**11}

    def made(loss, report, coefficients, *, intercept=False, domain=None, classes=None, plan=given, **others):
        dimension = len(coefficients)
        scales = {"sigma_hessian": 0.4} if report != "independent" else {}
        statistics = {"hessian": hessian} if report != "independent" else {}
        if report in ("dependent", "adaptive"):
            scales["sigma_gradient"], statistics["gradient"] = 3.0, np.array([2.5, -4.0])
        if report == "adaptive":
            scales["sigma_eigenvalue"], statistics["eigenvalue"] = 0.5, 5.25
        norm = {} if domain is None else {"norm": domain.row_norm}
        release = Release(
            plan=expost.calibrate(
                loss=loss, report=report, fit_intercept=intercept, **(plan | norm), **scales
            ),
            coefficients=np.array(coefficients),
            insecure=True,
            **statistics,
            **others,
        )
        assert report == "independent" or dimension == 2
        names = None if domain is None else domain.column_names
        classes = classes or getattr(domain and domain.label, "classes", None)
        publication = expost.Publication.from_release(
            release, classes=classes, feature_names=names, domain=domain
        )
        return json.loads(publication.to_json())

    weights = [0.25 * (-1) ** place * place for place in range(len(wide.column_names) + 1)]
    return {
        "wide": made(expost.LogisticLoss(), "independent", weights, intercept=True, domain=wide),
        "huber": made(expost.PseudoHuber(0.5), "independent", [0.3, -0.7]),
        "scores": made(expost.PseudoHuber(0.5), "dependent", [0.8, -0.1], intercept=True, domain=scores),
        "quantile": made(
            expost.SmoothedPinball(0.9, 0.05), "leverage", [0.8, -0.1], intercept=True, domain=scores
        ),
        "count": made(expost.BoundedPoisson(), "adaptive", [0.8, -0.1], intercept=True, domain=counts),
        "amount": made(expost.BoundedGamma(0.5), "dependent", [0.8, -0.1], intercept=True, domain=amounts),
        "hinge": made(expost.SmoothedHinge(0.3), "leverage", [1.5, -0.5], classes=["a", "b"]),
        "logistic": made(
            expost.LogisticLoss(), "adaptive", [2.0, 0.5], intercept=True, classes=["no", "yes"]
        ),
        "capped": made(
            expost.LogisticLoss(cap=0.65, corner=0.8),
            "adaptive",
            [2.0, 0.5],
            intercept=True,
            classes=["no", "yes"],
        ),
        "soft": made(expost.LogisticLoss(soft=True), "adaptive", [0.6, -0.2]),
        "squared": made(expost.SquaredLoss(), "dependent", [0.3, -0.7]),
    }


def read(name):
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def lines(value, depth):
    """JSON with one line for each thing at a depth."""
    if depth and isinstance(value, dict):
        inside = [f"{json.dumps(key)}: {lines(one, depth - 1)}" for key, one in value.items()]
        return "{\n" + ",\n".join(inside) + "\n}"
    if depth and isinstance(value, list):
        return "[\n" + ",\n".join(lines(one, depth - 1) for one in value) + "\n]"
    # JSON has no word for infinity, but a number this large is read as one everywhere.
    return re.sub(r'(?<!["\w])Infinity(?!["\w])', "1e999", json.dumps(value))


def written(name, value, depth):
    (HERE / f"{name}.json").write_text(lines(value, depth) + "\n", encoding="utf-8")


def main():
    from softmax_terms import softmax  # it takes formulas from here

    written("softmax", softmax(), 3)
    written("publications", publications(), 2)
    written("losses", losses(), 3)
    written("encodings", encodings(read("publications")), 3)
    written("bounds", bounds(read("publications")), 2)


if __name__ == "__main__":
    main()
