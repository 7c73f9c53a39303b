"""The document that is published: its fields, made from a release and read as one."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from importlib.metadata import version
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from expost._common.strict_json import FrozenModel
from expost._common.typing import FloatArray
from expost.data.design import intercept_count
from expost.data.domain import Domain
from expost.data.labels import Label, Outcome, RowsLabel
from expost.data.values import plain_class
from expost.data.weights import UNWEIGHTED, Weighting
from expost.fitting.release import Release, pack, unpack
from expost.losses import describe
from expost.privacy.plan import Plan
from expost.privacy.precision import statistic_grid
from expost.privacy.scales import STATISTICS, NoiseScales
from expost.publication.schema import (
    FORMAT,
    Classes,
    FeatureNames,
    NoRegularizer,
    Positive,
    PublishedCorners,
    PublishedLoss,
    PublishedPlan,
    PublishedPrecision,
    PublishedWeights,
    Statistics,
    choice,
    numbers,
)

INSECURE = (
    "INSECURE: the noise came from a seed, and whoever has the seed can remove it; nothing is guaranteed"
)


class PublishedDocument(FrozenModel):
    """What a file says, field by field; :mod:`expost.publication.checks` says what must hold among them."""

    format: Literal["expost-publication/2"]
    software: Annotated[str, Field(pattern=r"\Aexpost [0-9A-Za-z.+!-]{1,60}\z")]
    loss: PublishedLoss
    regularizer: NoRegularizer
    norm: Positive
    fit_intercept: bool
    classes: Classes
    feature_names: FeatureNames
    coefficients: Annotated[tuple[float, ...], numbers("coefficients")]
    domain: Domain | None
    plan: PublishedPlan
    precision: PublishedPrecision | None
    weights: PublishedWeights | None = None
    outcome: Outcome | None = None
    corners: PublishedCorners | None = None
    statistics: Statistics
    insecure: Annotated[str, choice("insecure", (INSECURE,))] | None
    sha256: Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]

    @property
    def weighting(self) -> Weighting:
        """What was declared about weights; every record counts once where the file says nothing."""
        return UNWEIGHTED if self.weights is None else self.weights.value

    @property
    def label(self) -> Label | None:
        """What was declared about the outcome: by the domain, or bounds alone."""
        return self.outcome if self.domain is None else self.domain.label

    @property
    def n_features(self) -> int:
        """The number of features of a record, without the intercept."""
        return len(self.coefficients) // self.loss.outputs - self.intercepts

    @property
    def of_people(self) -> bool:
        """Whether the promise is to people with several records; a record can be all rows of a person."""
        return self.plan.unit == "person" and not isinstance(self.label, RowsLabel)

    @property
    def intercepts(self) -> int:
        """How many coefficients of each predictor are intercepts, which come last."""
        return intercept_count(self.label, fit_intercept=self.fit_intercept)

    @cached_property
    def release(self) -> Release:
        """What was published, as read-only arrays and library objects."""
        gradient, hessian = self.statistics.gradient, self.statistics.hessian
        added = self.statistics.recalibration
        return Release(
            plan=plan_of(self),
            coefficients=_frozen(self.coefficients),
            corners=None
            if self.corners is None
            else self.corners.value(self.n_features, intercept=self.intercepts),
            gradient=None if gradient is None else _frozen(gradient),
            hessian=None if hessian is None else _frozen(unpack(hessian)),
            eigenvalue=self.statistics.eigenvalue,
            recalibration=None if added is None else _frozen(added),
            insecure=self.insecure is not None,
            choices=() if self.domain is None else self.domain.choices,
        )


def plan_of(document: PublishedDocument) -> Plan:
    """The plan that a document describes."""
    stated = document.plan
    return Plan(
        loss=document.loss,
        norm=document.norm,
        fit_intercept=document.fit_intercept,
        report=stated.report,
        calibration=stated.calibration,
        epsilon=math.inf if stated.epsilon is None else stated.epsilon,
        delta=stated.delta,
        l2=stated.l2,
        scales=stated.scales,
        precision=None if document.precision is None else document.precision.value,
        max_weight=document.weighting.largest,
        reduced=bool(stated.reduced),
        unit=stated.unit or "row",
    )


def _frozen(values: Sequence[float] | FloatArray) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def as_json(document: PublishedDocument) -> dict[str, Any]:
    """The fields as JSON's types; a field that was added to the format is left out where it is null."""
    return _without_absent(document.model_dump())


# Fields that were added to the format: left out where they say nothing.
_ADDED = (
    *("reduced", "unit", "weights", "outcome", "corners", "rows_per_person", "choices"),
    *("sigma_recalibration", "recalibration_grid", "recalibration"),
)


def _without_absent(document: dict[str, Any]) -> dict[str, Any]:
    names = ("plan", "weights", "precision", "statistics", "domain")
    for part in (document, *(document[name] or {} for name in names if name in document)):
        for name in _ADDED:
            if part.get(name, ...) is None:
                del part[name]
    return document


def content(
    release: Release,
    classes: Sequence[Any] | None,
    feature_names: Sequence[str] | None,
    domain: Domain | None,
    weighting: Weighting,
    outcome: Label | None,
) -> dict[str, Any]:
    """Everything that a release holds, as JSON's types; labels default to the loss's own."""
    plan, label = release.plan, outcome if domain is None else domain.label
    document = {
        "software": f"expost {version('expost')}",
        "format": FORMAT,
        "loss": describe(plan.loss),
        "regularizer": None,
        "norm": float(plan.norm),
        "fit_intercept": bool(plan.fit_intercept),
        "classes": _each(plain_class, _own_labels(plan, label) if classes is None else classes),
        "feature_names": _each(str, feature_names),
        "coefficients": release.coefficients.tolist(),
        # With its norm: a default may change, what was published may not.
        "domain": None if domain is None else domain.model_dump(mode="json") | {"norm": domain.row_norm},
        "plan": {
            **{name: _number(getattr(plan, name)) for name in ("epsilon", "delta", "l2")},
            **{name: _number(scale) for name, scale in plan.scales.stated.items()},
            "report": plan.report,
            "calibration": plan.calibration,
            "reduced": plan.reduced or None,
            "unit": None if plan.unit == "row" else plan.unit,
        },
        "precision": _precision(plan),
        "statistics": _statistics(release),
        "insecure": _alarm(release, domain),
        "weights": _weights(weighting),
        "outcome": outcome.model_dump(mode="json") if outcome else None,
        "corners": _corners(release, label),
    }
    return _without_absent(document)


def _alarm(release: Release, domain: Domain | None) -> str | None:
    """What is said where a seed voids the guarantee: that of the noise, or of a choice made for it."""
    choices = () if domain is None else domain.choices
    return INSECURE if release.insecure or any(one.insecure for one in choices) else None


def _own_labels(plan: Plan, label: Label | None) -> tuple[Any, ...] | None:
    """The loss's own labels, where they are those of records."""
    return None if isinstance(label, RowsLabel) else plan.loss.labels.values


def _each(function: Callable[[Any], Any], values: Iterable[Any] | None) -> list[Any] | None:
    return None if values is None else [function(value) for value in values]


def _weights(weighting: Weighting) -> dict[str, Any] | None:
    if not weighting.used:
        return None
    by_class, rows = _each(float, weighting.class_weight), weighting.rows_per_person
    return {"max_weight": weighting.max_weight, "class_weight": by_class, "rows_per_person": rows}


def _corners(release: Release, label: Label | None) -> dict[str, Any] | None:
    intercepts = intercept_count(label, fit_intercept=release.plan.fit_intercept)
    columns = len(release.coefficients) - intercepts
    return None if release.corners is None else release.corners.described(columns)


def _statistics(release: Release) -> dict[str, Any]:
    hessian = None if release.hessian is None else pack(release.hessian)
    gradient, eigenvalue = _each(float, release.gradient), _number(release.eigenvalue)
    added = _each(float, release.recalibration)
    return {"gradient": gradient, "hessian": hessian, "eigenvalue": eigenvalue, "recalibration": added}


def _precision(plan: Plan) -> dict[str, Any] | None:
    if plan.precision is None:
        return None
    return {
        **asdict(plan.precision),
        "noise": "discrete Gaussian",
        "statistics_at": "exact minimiser",
        "statistics_error": plan.rounding.statistics,
        **{f"{name}_grid": grid_of(plan.scales, name) for name in STATISTICS},
    }


def grid_of(scales: NoiseScales, statistic: str) -> float | None:
    """The grid on which a statistic is printed; None where it is not released."""
    scale = scales.of(statistic)
    return None if scale is None else statistic_grid(scale)


def _number(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else float(value)
