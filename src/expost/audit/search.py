"""The neighbouring data sets that a publication tells apart best, compared with its certificate."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from rich.text import Text

from expost._common.typing import FloatArray
from expost._common.validation import check_count, check_positive, parameter_error
from expost.audit.divergence import Audit, hockey_stick, most_features
from expost.losses import AnyLoss, SoftmaxLoss, VectorLoss
from expost.privacy.plan import Plan

# The rows of a person that the search makes up: more of them are closer to one row, their average.
_MOST_ROWS = 3


@dataclass(frozen=True, eq=False)
class Pair:
    """Neighbouring data sets: the rows ``X`` with labels ``y``, each ``counts`` times, and a record.

    Or a person: then ``record`` has a row for each of hers, and ``label`` and ``weights`` one number each.

    Privacy
    -------
    Invented by a search, from the plan alone: public.
    """

    X: FloatArray
    y: FloatArray
    counts: FloatArray
    record: FloatArray
    label: float | FloatArray
    weights: FloatArray | None = None

    def __str__(self) -> str:
        rows = [
            f"{count:.0f} × {row.round(6).tolist()} with label {label:g}"
            for row, label, count in zip(self.X, self.y, self.counts, strict=True)
        ]
        if self.weights is None:
            who = f"record {self.record.round(6).tolist()} with label {self.label:g}"
        else:
            hers = zip(self.weights, self.record, np.atleast_1d(self.label), strict=True)
            who = "person with " + " and ".join(
                f"{weight:.6g} × {row.round(6).tolist()} with label {label:g}" for weight, row, label in hers
            )
        return f"{who}, among {'; '.join(rows) or 'no other rows'}"


def worst_pair(
    loss: AnyLoss,
    *,
    norm: float,
    epsilon: float,
    sigma: float,
    l2: float,
    sigma_gradient: float | None = None,
    sigma_hessian: float | None = None,
    sigma_eigenvalue: float | None = None,
    sigma_recalibration: float | None = None,
    reduced: bool = False,
    unit: str = "row",
    dimension: int = 1,
    trials: int = 200,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Audit, Pair]:
    """Search for the neighbours with the largest audited delta; :func:`hockey_stick` explains the scales.

    Structured pairs come first: no other row, or many equal rows along or against the record; many *short*
    rows are the worst (docs/auditing.md). Then follow ``trials`` random pairs of at most eight distinct rows,
    every other one a variation of the best so far.

    Parameters
    ----------
    loss
        The loss of a record. An unbounded set of labels is represented by values up to ±1000.
    norm
        The largest Euclidean norm of a row, R.
    epsilon, sigma, l2, sigma_gradient, sigma_hessian, sigma_eigenvalue, sigma_recalibration, reduced
        As for :func:`hockey_stick`.
    unit
        What neighbours differ by. The random people of ``"person"`` have one to three rows.
    dimension
        The number of features, so that there are one or two coefficients. One pair takes seconds with two and
        hundredths of a second with one.
    trials
        How many random pairs to try.
    random_state
        Seed or generator of the search.

    Privacy
    -------
    Output is public: no rows are read, all are made up here.
    """
    check_positive("norm", norm)
    check_count("trials", trials)
    if dimension not in range(1, most_features(loss) + 1):
        raise parameter_error("dimension", "1 or 2, and 1 with two linear predictors", dimension)
    rng = np.random.default_rng(random_state)
    labels = _label_choices(loss)
    scales: dict[str, Any] = {
        "sigma": sigma,
        "sigma_gradient": sigma_gradient,
        "sigma_hessian": sigma_hessian,
        "sigma_eigenvalue": sigma_eigenvalue,
        "sigma_recalibration": sigma_recalibration,
    }

    def audited(pair: Pair) -> tuple[Audit, Pair]:
        return hockey_stick(loss, **vars(pair), epsilon=epsilon, l2=l2, **scales, reduced=reduced), pair

    def delta(result: tuple[Audit, Pair]) -> float:
        return result[0].delta

    structured = _structured_pairs(loss, labels, norm, sigma, dimension)
    best = max(map(audited, structured), key=delta)
    for trial in range(trials):
        if trial % 2:
            pair = _random_pair(rng, labels, norm, dimension, people=unit == "person")
        else:
            pair = _varied(rng, best[1], norm)
        best = max(best, audited(pair), key=delta)
    return best


def _label_choices(loss: AnyLoss) -> tuple[float, ...]:
    labels = loss.labels
    if labels.values is not None:
        return labels.values
    if math.isinf(labels.low) or math.isinf(labels.high):
        return (-1e3, 0.0, 1e3)
    return (labels.low, (labels.low + labels.high) / 2.0, labels.high)


def _structured_pairs(
    loss: AnyLoss, labels: tuple[float, ...], norm: float, sigma: float, dimension: int
) -> Iterator[Pair]:
    """No other row, or a crowd of equal ones; fewer crowds for several predictors, which take longer."""
    record = norm * np.eye(dimension)[0]
    several = isinstance(loss, VectorLoss)
    # Very short rows pull with about half the largest slope each; their total pull has the size of the noise.
    pull = 1e-3 * norm * min(loss.curve.max_slope, 1e3) / 2.0
    forces = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 18.0, 26.0]) if several else np.arange(0.5, 10.0, 0.5)
    longer = [] if several else [*product((0.1, 1.0), (1.0, 10.0, 1e3, 1e6))]
    crowds = [*longer, *product((1e-3,), np.ceil(sigma * forces / pull))]
    # All classes are alike.
    for label in labels[:1] if isinstance(loss, SoftmaxLoss) else labels:
        yield Pair(np.empty((0, dimension)), np.empty(0), np.empty(0), record, label)
        sides: Iterable[tuple[float, float]] = product((-1.0, 1.0), labels)
        if several:
            sides = ((-1.0, label), (1.0, next(one for one in labels if one != label)))
        for (share, count), (side, held) in product(crowds, sides):
            yield Pair(side * share * record[None], np.array([held]), np.array([count]), record, label)


def _random_pair(
    rng: np.random.Generator, labels: tuple[float, ...], norm: float, dimension: int, *, people: bool
) -> Pair:
    n = int(rng.integers(9))
    size = int(rng.integers(1, _MOST_ROWS + 1)) if people else 1
    points = rng.standard_normal((n + size, dimension))
    points *= norm / np.linalg.norm(points, axis=1, keepdims=True)
    # The worst case is expected at full norm: half of the rows stay there.
    points *= rng.uniform(size=(n + size, 1)) ** rng.integers(2, size=(n + size, 1))
    marks = rng.choice(labels, n + size)
    crowd = points[:n], marks[:n], np.floor(10.0 ** rng.uniform(0.0, 6.0, n))
    if not people:
        return Pair(*crowd, points[-1], float(marks[-1]))
    return Pair(*crowd, points[n:], marks[n:], rng.dirichlet(np.ones(size)))


def _varied(rng: np.random.Generator, pair: Pair, norm: float) -> Pair:
    size = 10.0 ** rng.uniform(-3.0, 0.0)
    n, points = len(pair.X), np.vstack([pair.X, pair.record])
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points = points + size * lengths * rng.standard_normal(points.shape)
    points *= np.minimum(1.0, norm / np.linalg.norm(points, axis=1, keepdims=True))
    counts = np.ceil(pair.counts * np.exp(size * rng.standard_normal(len(pair.counts))))
    return replace(pair, X=points[:n], counts=counts, record=points[n:].reshape(pair.record.shape))


@dataclass(frozen=True, eq=False)
class PlanAudit:
    """The delta that a plan certifies and the delta that real neighbouring data sets attain; print it.

    ``certificate`` is ``plan.delta_at(epsilon)``, and ``audited`` what ``pair`` attains there, less the
    estimated error of its integral.

    Privacy
    -------
    Public: a function of the plan and of rows that the search made up.
    """

    epsilon: float
    certificate: float
    audited: float
    pair: Pair

    @property
    def ratio(self) -> float:
        """``audited / certificate``: above 1 the certificate is wrong, near 1 it cannot be improved."""
        return self.audited / self.certificate

    def __str__(self) -> str:
        return (
            f"At epsilon = {self.epsilon:g} the plan certifies delta <= {self.certificate:.6g}.\n"
            f"Real neighbours attain delta >= {self.audited:.6g}, a share of {self.ratio:.5f}:\n"
            f"{self.pair}."
        )

    def __rich__(self) -> Text:
        return Text(str(self))


def audit_plan(
    plan: Plan,
    *,
    epsilon: float | None = None,
    dimension: int = 1,
    trials: int = 100,
    random_state: int | np.random.Generator | None = None,
) -> PlanAudit:
    r"""Try to refute a plan: compare its certified delta with the largest of many neighbouring data sets.

    .. math:: \max_{D, z} \max\{H_\epsilon(P_{D+z}\|P_D),\, H_\epsilon(P_D\|P_{D+z})\}
              \;\le\; \sup_{D, z}(\cdot) \;\le\; \mathtt{plan.delta\_at}(\epsilon)

    The maximum on the left is over the pairs that :func:`worst_pair` tries. Each pair proves, up to
    quadrature, that no valid certificate is smaller. A search that finds nothing near the certificate
    proves nothing: the worst data set may be one that it did not try.

    Parameters
    ----------
    plan
        The plan of :func:`expost.calibrate`.
    epsilon
        The epsilon at which to compare; by default ``plan.epsilon``.
    dimension
        The number of features: 1 or 2, and 1 for three classes; plans for more classes are refused. More
        features cannot lower the worst case: a data set along one direction is one in more dimensions.
    trials
        How many random pairs to try after the structured ones. These take about two seconds for one
        coefficient; for three classes a minute or two, and each random pair a few seconds.
    random_state
        Seed or generator of the search. It has nothing to do with the noise of a release.

    Notes
    -----
    The certificate covers every row of norm at most ``plan.radius``, and the search tries such rows. With an
    intercept all rows end in a constant 1, and the worst case of these rows may be smaller.

    Privacy
    -------
    Output is public: no rows are read, all are made up.

    Examples
    --------
    >>> from expost import calibrate
    >>> found = audit_plan(calibrate(loss="logistic", epsilon=1.0, l2=5.0), trials=1, random_state=0)
    >>> 0.999 < found.ratio <= 1.0
    True
    """
    at = check_positive(
        "epsilon",
        plan.epsilon if epsilon is None else epsilon,
        way_out="Give an `epsilon` if the plan has none." if epsilon is None else "",
    )
    # Everything over the largest weight: an objective and its noise may be divided by a constant.
    audit, pair = worst_pair(
        plan.loss,
        norm=plan.radius,
        epsilon=at,
        l2=plan.l2 / plan.max_weight,
        **asdict(plan.scales.over(plan.max_weight)),
        reduced=plan.reduced,
        unit=plan.unit,
        dimension=dimension,
        trials=trials,
        random_state=random_state,
    )
    return PlanAudit(at, plan.delta_at(at), audit.delta, pair)
