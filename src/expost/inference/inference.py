"""Inference: what the release of one fit says about the population and about a record's classes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from expost._common.typing import FloatArray
from expost._common.validation import check_positive
from expost.data.blocks import Block
from expost.data.dates import Date
from expost.data.design import intercept_count
from expost.data.domain import Domain
from expost.data.encoding import Encoded
from expost.data.features import Number
from expost.data.labels import Label, NumericLabel, RowsLabel
from expost.data.weights import UNWEIGHTED, Weighting
from expost.exceptions import PublicationError
from expost.fitting.release import Release
from expost.inference.coordinates import Coordinates, domain_coordinates, plain_coordinates
from expost.inference.estimate import Estimate, Likelihood, estimate, model_probabilities, undetermined_error
from expost.inference.table import UNDETERMINED, CoefficientTable
from expost.losses import AnyLoss, LogisticLoss, SmoothedPinball, SoftmaxLoss, describe
from expost.losses.records import Lengths
from expost.losses.softmax import centring
from expost.privacy.plan import Plan

# The step of the differences that follow a probability along its predictors.
_STEP = 1e-4


class ProbabilityIntervals(NamedTuple):
    """The probability of each class with its interval; one row per record and one column per class.

    Privacy
    -------
    As private as the records.
    """

    estimate: FloatArray
    """By the coefficients without shrinkage, which :meth:`expost.Publication.summary` shows."""
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Intervals:
    r"""The pass that finds the intervals of every record.

    The linear predictor of a record is a linear function of the coefficients, with a standard error of
    :math:`s = \sqrt{x^\top B\,\mathrm{Cov}(\varphi)B^\top x}`. Two classes have the probabilities at both
    ends, :math:`\eta \pm zs`; of several, each has an interval for its log-odds, by the delta method.
    """

    estimate: Estimate
    basis: FloatArray
    """Coefficients of one linear predictor, from its contrasts."""
    loss: Likelihood
    quantile: float

    def __call__(self, blocks: Iterator[Block]) -> ProbabilityIntervals:
        """The intervals of the part's records, in their order."""
        none = np.empty((0, self.loss.outputs + 1))
        parts = [self._read(rows @ self.basis, self._loss_of(rows)) for rows, *_ in blocks]
        return joined([ProbabilityIntervals(none, none, none), *parts])

    def _loss_of(self, rows: Any) -> Any:
        return self.loss.for_rows(Lengths.of(rows) if isinstance(rows, np.ndarray) else rows)

    def _read(self, rows: FloatArray, loss: Any) -> ProbabilityIntervals:
        outputs = len(self.estimate.values) // rows.shape[1]
        predictors = rows @ self.estimate.values.reshape(outputs, -1).T
        blocks = self.estimate.covariance.reshape(outputs, rows.shape[1], outputs, rows.shape[1])
        spread = np.einsum("ni,aibj,nj->nab", rows, blocks, rows, optimize=True)
        if outputs == 1 and isinstance(self.loss, LogisticLoss):
            eta, margin = predictors[:, 0], self.quantile * np.sqrt(spread[:, 0, 0])
            low, high = (model_probabilities(end, loss) for end in (eta - margin, eta + margin))
            return ProbabilityIntervals(
                model_probabilities(eta, loss),
                np.column_stack([high[:, 0], low[:, 1]]),
                np.column_stack([low[:, 0], high[:, 1]]),
            )
        scores = centring(outputs + 1).T
        probabilities = model_probabilities(predictors @ scores, loss)
        ends = [
            [logit(model_probabilities((predictors + step) @ scores, loss)) for step in (-one, one)]
            for one in _STEP * np.eye(outputs)
        ]
        slopes = np.stack([(high - low) / (2.0 * _STEP) for low, high in ends], axis=2)
        margin = self.quantile * np.sqrt(np.einsum("nka,nab,nkb->nk", slopes, spread, slopes))
        middle = logit(probabilities)
        return ProbabilityIntervals(probabilities, expit(middle - margin), expit(middle + margin))


def joined(parts: list[ProbabilityIntervals]) -> ProbabilityIntervals:
    """The intervals of several runs of records, one after the other."""
    return ProbabilityIntervals(*map(np.concatenate, zip(*parts, strict=True)))


# Why the Hessian of a loss does not say how much its gradient varies.
_SCATTER = {
    "smoothed_pinball": ", whose Hessian says how many outcomes are near the quantile, but not how many "
    "there are in all",
    "bounded_poisson": ", and nothing says how much more counts scatter than a Poisson law's do",
    "bounded_gamma": ", and nothing says how far amounts scatter around their mean",
}
# From here on, in standard errors, what undoing the penalty leaves is worth a warning.
_BENT = 0.5

_UNSURE = "how far noise moved each coefficient is not known: even its sign may be the noise's."


@dataclass(frozen=True, eq=False)
class Inference:
    """The coefficients of a release without shrinkage, how sure they are, and what follows for records.

    A publication that cannot support inference is refused with PublicationError, in one sentence. ``classes``
    are the labels in the order of the loss's own.

    Privacy
    -------
    Public: a function of the publication.
    """

    release: Release
    domain: Domain | None = None
    feature_names: Sequence[str] | None = None
    classes: Sequence[Any] | None = None
    weighting: Weighting = UNWEIGHTED

    def __post_init__(self) -> None:
        plan = self.release.plan
        if self.release.recalibration is not None and isinstance(plan.loss, Likelihood):
            raise PublicationError(
                "the small cap of a recalibrated model makes coefficients up to twice as large as the "
                "population's: read their signs and ratios, and fit without `recalibrate` for error bars."
            )
        if self.release.corners is not None:
            raise PublicationError(
                f"no intervals are known for a model with an L1 penalty or bounds; {_UNSURE}"
            )
        if not isinstance(plan.loss, Likelihood):
            name = describe(plan.loss)["name"]
            raise PublicationError(
                "inference needs the logistic or the softmax loss, whose Hessian says how much the gradient "
                f"varies, but this publication has {name}{_SCATTER.get(name, '')}; {_UNSURE}"
            )
        if self.release.hessian is None:
            raise PublicationError(
                "inference needs a Hessian, but this publication has none. The next one can have it: "
                "plan=expost.calibrate(report='leverage', split=0.98, ...) in Python, `--report leverage "
                "--split 0.98 --cap 1` of `expost fit`. A new fit spends again; docs/inference.md says how "
                "many rows it takes."
            )
        if plan.reduced:
            raise PublicationError(
                "inference needs the whole Hessian, but this publication has the reduced one; publish with "
                "reduced=False of expost.calibrate."
            )
        if self.weighting.max_weight is not None or self.weighting.class_weight is not None:
            raise PublicationError(
                "inference needs records that count once each, but this publication has weights, which "
                "change how much the gradient varies; publish without them."
            )

    @property
    def loss(self) -> Likelihood:
        """The loss of the plan."""
        assert isinstance(self.release.plan.loss, Likelihood)
        return self.release.plan.loss

    @cached_property
    def coordinates(self) -> Coordinates:
        """The contrasts of one linear predictor."""
        size = len(self.release.coefficients) // self.loss.outputs - self.release.plan.fit_intercept
        return coordinates_of(self.release, self.domain, self.feature_names, size)

    @cached_property
    def estimate(self) -> Estimate:
        """The contrasts of all linear predictors, one predictor after the other."""
        return estimate(self.release, self.coordinates.repeated(self.loss.outputs))

    def table(self, confidence: float) -> CoefficientTable:
        """Every coefficient in the features' own units, with an interval that holds on its own."""
        quantile = two_sided("confidence", confidence)
        found, coordinates, loss = self.estimate, self.coordinates, self.loss
        units, shape, classes = _of_classes(coordinates, loss, self.classes)
        values = (units @ found.values).reshape(shape)
        errors = np.sqrt(np.einsum("ij,jk,ik->i", units, found.covariance, units)).reshape(shape)
        # A term is determined if everything that it is made of is.
        gone = (np.abs(units) @ ~found.determined > 0.0).reshape(shape)
        if np.all(gone):
            raise undetermined_error()
        values[gone], errors[gone] = np.nan, np.nan
        z = values / errors
        capped = loss.corner is not None
        return CoefficientTable(
            terms=coordinates.names,
            classes=classes,
            coefficients=values,
            standard_errors=errors,
            lower=values - quantile * errors,
            upper=values + quantile * errors,
            z=z,
            p_values=2.0 * ndtr(-np.abs(z)),
            confidence=confidence,
            spans=declared_spans(self.domain, coordinates),
            title=f"Coefficients{f' of the loss capped at {loss.cap:.3g}, not log-odds' * capped} (public)",
            predictor="linear predictor" if capped else "log-odds",
            notes=tuple(self._notes(confidence, int(np.count_nonzero(gone)))),
        )

    def probabilities(self, records: Encoded, interval: float) -> ProbabilityIntervals:
        """The probability of each class for every record, with an interval that holds on its own.

        Privacy
        -------
        As private as the records.
        """
        work = Intervals(self.estimate, self.coordinates.basis, self.loss, two_sided("interval", interval))
        width = len(self.estimate.values) * self.loss.outputs
        return joined(list(records.sweep(work, width=width, products=True)))

    def _notes(self, confidence: float, undetermined: int) -> list[str]:
        plan, domain = self.release.plan, self.domain
        counted = "count sampling and all privacy noise; each holds on its own."
        notes = [f"Intervals of {100 * confidence:.6g}% {counted}"]
        if plan.unit == "person":
            notes.append(
                "People are the sample: rows of one person may depend on each other in any way. Intervals "
                "are too wide where they hardly do."
            )
        if self.coordinates.references:
            notes.append("Compared with " + ", ".join(self.coordinates.references) + ".")
        if undetermined:
            notes.append(
                f"{UNDETERMINED}: not determined. {undetermined} cannot be told from the noise of the "
                "released Hessian."
            )
        if self.estimate.bend > _BENT:
            notes.append(
                "The penalty moved the coefficients far, and undoing it is approximate: intervals may be too "
                "narrow. Publish with more rows, a larger epsilon or a smaller l2."
            )
        notes += _about_rows(plan, domain)
        if self.loss.corner is not None:
            notes.append(
                "Under a cap coefficients are larger than log-odds, often by some 15%; publish with cap=1.0 "
                "for log-odds."
            )
        return notes


def coordinates_of(
    release: Release, domain: Domain | None, feature_names: Sequence[str] | None, columns: int
) -> Coordinates:
    """The contrasts of one linear predictor of a release with so many encoded columns."""
    plan = release.plan
    if domain is not None:
        apart = release.corners is not None  # whose zeros and bounds are those of columns
        return domain_coordinates(domain, plan.norm, intercept=plan.fit_intercept, apart=apart)
    return plain_coordinates(feature_names, columns, intercept=plan.fit_intercept)


def declared_spans(domain: Domain | None, coordinates: Coordinates) -> FloatArray:
    """The declared range of each term's feature, or of both of an interaction's; 1 where it has none."""
    features = () if domain is None else domain.features
    ranges = {part.name: float(np.ptp(part.limits)) for part in features if isinstance(part, Number | Date)}
    parts = {} if domain is None else dict(zip(domain.column_names, domain.factors, strict=True))
    return np.array(
        [math.prod(ranges.get(part, 1.0) for part in parts.get(term, (term,))) for term in coordinates.names]
    )


def _of_classes(
    coordinates: Coordinates, loss: AnyLoss, classes: Sequence[Any] | None
) -> tuple[FloatArray, tuple[int, ...], tuple[Any, ...] | None]:
    """Terms in original units from the contrasts of all predictors, their shape, and several classes."""
    units = coordinates.repeated(loss.outputs).units
    if not isinstance(loss, SoftmaxLoss):
        return units, (-1,), None
    units = np.kron(centring(loss.classes), np.eye(len(coordinates.names))) @ units
    shape = (loss.classes, len(coordinates.names))
    return units, shape, tuple(classes or range(loss.classes))


_NO_INTERVALS = (
    f"No intervals are known for a model with an L1 penalty or bounds; {_UNSURE} One that is not used is "
    "exactly zero; its column may still matter a little."
)


def published_coefficients(
    release: Release,
    domain: Domain | None = None,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    label: Label | None = None,
) -> CoefficientTable:
    """The coefficients as they were published, in the units of the table, and without error bars.

    Any publication has them. Unlike those of :meth:`Inference.table` they have the penalty's shrinkage.

    Privacy
    -------
    Public: a function of the publication.
    """
    theta, loss = release.coefficients, release.plan.loss
    in_rows = label if isinstance(label, RowsLabel) else None
    columns = len(theta) // loss.outputs - intercept_count(label, fit_intercept=release.plan.fit_intercept)
    coordinates = coordinates_of(release, domain, feature_names, columns)
    units, shape, several = _of_classes(coordinates, loss, classes)
    contrasts = coordinates.repeated(loss.outputs).contrasts
    terms, spans = coordinates.names, declared_spans(domain, coordinates)
    if in_rows is None:
        values = (units @ contrasts @ theta).reshape(shape)
    else:  # the same terms with each intercept, of which the features' are alike
        by_place = units @ contrasts @ in_rows.by_place(theta)
        values = np.append(by_place[:-1, 0], by_place[-1])
        terms = (*terms[:-1], *in_rows.place_names)
        spans = np.append(spans[:-1], np.ones(in_rows.places))
    predictor = "log-odds" if isinstance(loss, Likelihood) and loss.corner is None else "linear predictor"
    if domain is not None and isinstance(label, NumericLabel):
        values, predictor = label.in_units(values), label.predictor
        if isinstance(loss, SmoothedPinball):
            predictor = f"{loss.level:g}-quantile of {predictor}"
    nothing = np.full_like(values, np.nan)
    references = ", ".join(coordinates.references)
    states = () if release.corners is None else release.corners.states(release.coefficients)
    return CoefficientTable(
        terms=terms,
        classes=several,
        coefficients=values,
        standard_errors=nothing,
        lower=nothing,
        upper=nothing,
        z=nothing,
        p_values=nothing,
        confidence=0.0,
        spans=spans,
        title=f"Coefficients as published: change of the {predictor} for one unit (public)",
        predictor=predictor,
        notes=(
            *([f"Compared with {references}."] * bool(references)),
            *_directions(label),
            "With the penalty's shrinkage.",
            *_about_rows(release.plan, domain),
            *([_NO_INTERVALS] * bool(states)),
        ),
        states=(*states, *[""] * (len(terms) - len(states))) if states else (),
    )


def _directions(label: Label | None) -> list[str]:
    """What a coefficient means where a record is several rows."""
    return [label.direction] if isinstance(label, RowsLabel) else []


def _about_rows(plan: Plan, domain: Domain | None) -> list[str]:
    """That coefficients are of rows as they were fitted, where those were not the rows of the table."""
    if domain is not None and plan.norm >= domain.longest_row:
        return []
    said = f"About rows as they were fitted: longer ones were scaled down to {plan.norm:.4g}."
    return [
        said if domain is None else f"{said} With `norm = {domain.longest_row:.4g}` none would have been."
    ]


def two_sided(name: str, confidence: float) -> float:
    """The normal quantile of a two-sided interval."""
    return float(ndtri(0.5 + 0.5 * check_positive(name, confidence, below=1.0)))
