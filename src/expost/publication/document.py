"""A release as the document that is published, and back: its fields, and what must hold among them."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from expost._common.strict_json import FrozenModel, digest, publication_error
from expost._common.typing import FloatArray
from expost.data.domain import Domain
from expost.data.features import Label, NumberLabel
from expost.data.values import plain_class
from expost.data.weights import UNWEIGHTED, Weighting
from expost.fitting.release import Release, pack, unpack
from expost.losses import AnyLoss, describe
from expost.losses.regularizers import Regularizer
from expost.privacy.plan import Plan
from expost.privacy.precision import statistic_grid
from expost.privacy.scales import STATISTICS
from expost.publication.checks import (
    check_classes,
    check_domain,
    check_guarantee,
    check_outcome,
    check_precision,
    check_shapes,
    check_statistics,
    check_weights,
)
from expost.publication.schema import (
    FORMAT,
    Classes,
    FeatureNames,
    Positive,
    PublishedLoss,
    PublishedPlan,
    PublishedPrecision,
    PublishedRegularizer,
    PublishedWeights,
    Statistics,
    choice,
    numbers,
)

INSECURE = (
    "INSECURE: the noise came from a seed, and whoever has the seed can remove it; nothing is guaranteed"
)


def content(
    release: Release,
    *,
    classes: Sequence[Any] | None,
    feature_names: Sequence[str] | None,
    domain: Domain | None,
    weighting: Weighting = UNWEIGHTED,
    outcome: NumberLabel | None = None,
) -> dict[str, Any]:
    """Everything that a release holds, as JSON's types; labels default to the loss's own.

    Privacy
    -------
    Public in, public out.
    """
    plan = release.plan
    if classes is None:
        classes = plan.loss.labels.values
    document = {
        "format": FORMAT,
        "loss": describe(plan.loss),
        "regularizer": None if release.regularizer is None else describe(release.regularizer),
        "norm": float(plan.norm),
        "fit_intercept": bool(plan.fit_intercept),
        "classes": None if classes is None else [plain_class(label) for label in classes],
        "feature_names": None if feature_names is None else [str(name) for name in feature_names],
        "coefficients": release.coefficients.tolist(),
        # With its norm: a default may change, what was published may not.
        "domain": None if domain is None else domain.model_dump(mode="json") | {"norm": domain.row_norm},
        "plan": {
            "epsilon": float(plan.epsilon) if math.isfinite(plan.epsilon) else None,
            "delta": float(plan.delta),
            "l2": float(plan.l2),
            **{name: _number(scale) for name, scale in asdict(plan.scales).items()},
            "report": plan.report,
            "calibration": plan.calibration,
            # Added to the format: left out where it says nothing.
            **({"reduced": True} if plan.reduced else {}),
        },
        "precision": _precision(plan),
        "statistics": {
            "gradient": None if release.gradient is None else release.gradient.tolist(),
            "hessian": None if release.hessian is None else pack(release.hessian),
            "eigenvalue": _number(release.eigenvalue),
        },
        "insecure": INSECURE if release.insecure else None,
    }
    if weighting.used:
        classes_weights = weighting.class_weight
        document["weights"] = {
            "max_weight": weighting.max_weight,
            "class_weight": None if classes_weights is None else list(classes_weights),
        }
    if outcome is not None:
        document["outcome"] = outcome.model_dump(mode="json")
    return document


def _precision(plan: Plan) -> dict[str, Any] | None:
    if plan.precision is None:
        return None
    grids: dict[str, float | None] = {f"{name}_grid": None for name in STATISTICS}
    grids |= {f"{statistic.name}_grid": statistic_grid(scale) for statistic, scale in plan.scales.released}
    return {
        **asdict(plan.precision),
        "noise": "discrete Gaussian",
        "statistics_at": "exact minimiser",
        "statistics_error": plan.rounding.statistics,
        **grids,
    }


def restored(
    *,
    loss: AnyLoss,
    regularizer: Regularizer | None,
    norm: float,
    fit_intercept: bool,
    coefficients: Sequence[float],
    plan: PublishedPlan,
    precision: PublishedPrecision | None,
    statistics: Statistics,
    insecure: bool,
    max_weight: float,
) -> Release:
    """The release that such fields describe, its arrays read-only."""
    gradient, hessian = statistics.gradient, statistics.hessian
    return Release(
        plan=Plan(
            loss=loss,
            norm=norm,
            fit_intercept=fit_intercept,
            report=plan.report,
            calibration=plan.calibration,
            epsilon=math.inf if plan.epsilon is None else plan.epsilon,
            delta=plan.delta,
            l2=plan.l2,
            scales=plan.scales,
            precision=None if precision is None else precision.value,
            max_weight=max_weight,
            reduced=bool(plan.reduced),
        ),
        coefficients=_frozen(coefficients),
        regularizer=regularizer,
        gradient=None if gradient is None else _frozen(gradient),
        hessian=None if hessian is None else _frozen(unpack(hessian)),
        eigenvalue=statistics.eigenvalue,
        insecure=insecure,
    )


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _frozen(values: Sequence[float] | FloatArray) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


class PublishedDocument(FrozenModel):
    """What the file says, verified: nobody has one whose guarantee its own noise scales do not certify.

    Privacy
    -------
    Public in, public out.
    """

    format: Literal["expost-publication/2"]
    software: Annotated[str, Field(pattern=r"\Aexpost [0-9A-Za-z.+!-]{1,60}\z")]
    loss: PublishedLoss
    regularizer: PublishedRegularizer | None
    norm: Positive
    fit_intercept: bool
    classes: Classes
    feature_names: FeatureNames
    coefficients: Annotated[tuple[float, ...], numbers("coefficients")]
    domain: Domain | None
    plan: PublishedPlan
    precision: PublishedPrecision | None
    weights: PublishedWeights | None = None
    outcome: NumberLabel | None = None
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
        return len(self.coefficients) // self.loss.outputs - self.fit_intercept

    def _document(self) -> dict[str, Any]:
        """The fields as JSON's types; a field that was added to the format is left out where it is null."""
        absent: dict[str, Any] = {} if self.plan.reduced else {"plan": {"reduced"}}
        absent |= {name: True for name in ("weights", "outcome") if getattr(self, name) is None}
        return self.model_dump(exclude=absent)

    @model_validator(mode="after")
    def _verified(self) -> Self:
        """Refuse fields that do not belong together, the cheap checks first."""
        others = {name: field for name, field in self._document().items() if name != "sha256"}
        if digest(others) != self.sha256:
            raise publication_error(
                "`sha256` must be that of the other fields but is not: something was changed"
            )
        check_shapes(
            self.coefficients,
            self.statistics,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            feature_names=self.feature_names,
            reduced=bool(self.plan.reduced),
        )
        check_classes(self.loss, self.classes)
        check_weights(self.weights, self.loss, self.classes)
        check_domain(self.domain, self.feature_names, norm=self.norm, classes=self.classes)
        check_outcome(self.outcome, self.domain, loss=self.loss)
        check_statistics(self.plan, self.statistics, self.loss)
        check_precision(self.precision, self.plan, self.coefficients, self.statistics, loss=self.loss)
        check_guarantee(
            self.loss,
            self.plan,
            self.precision,
            norm=self.norm,
            fit_intercept=self.fit_intercept,
            max_weight=self.weighting.largest,
        )
        return self
