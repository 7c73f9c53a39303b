"""A release as the fields of a file, and back."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost.data.classes import plain_class
from expost.data.domain import Domain
from expost.data.features import NumberLabel
from expost.data.weights import UNWEIGHTED, Weighting
from expost.fitting.release import Release, pack, unpack
from expost.losses import AnyLoss, describe
from expost.losses.regularizers import Regularizer
from expost.privacy.plan import Plan
from expost.privacy.precision import statistic_grid
from expost.privacy.statistics import STATISTICS
from expost.publication.schema import FORMAT, PublishedPlan, PublishedPrecision, Statistics

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
