"""The page's numbers: everything about a publication that does not depend on the record."""

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost.data.design import ROUNDINGS, SMALLEST_SCALE
from expost.data.features import NO, YES
from expost.fitting.release import Release
from expost.losses import AnyLoss, describe
from expost.page.base import Published
from expost.page.fields import Form, column_names
from expost.page.introduction import about
from expost.reports.base import CONFIDENCE, Scope
from expost.reports.drift import Drift
from expost.reports.gradient import Factors, gradient_factors, reach_factors
from expost.reports.pencil import Pencil
from expost.reports.several import sum_noise
from expost.reports.tight import SLACK, TightReader
from expost.reports.total import WholeNoise, cost_quantile, whole_noise

# The menu of confidence levels, as it is shown and as a number.
CONFIDENCES = {
    "90%": 0.9,
    "95%": 0.95,
    "99%": 0.99,
    "99.9%": 0.999,
    "99.99%": 0.9999,
    "99.999%": 0.99999,
    "99.9999%": 0.999999,
}
# The constants and words of the scripts; they read them from the page's data, so that each is written once.
CONSTANTS = {
    "words": {"yes": YES, "no": NO},
    "roundings": ROUNDINGS,
    "smallest_scale": SMALLEST_SCALE,
    "slack": SLACK,
}


@dataclass(frozen=True)
class Quantiles:
    """The quantiles of the noise, at one confidence and in one scope; None for what is not released."""

    noise: Factors
    """From the law of the noise, per unit of a row's Euclidean norm and of its entries' sum."""
    gradient: Factors | None
    """From the noisy gradient."""
    cost: float | None
    """For the cost of the statistics."""
    whole: WholeNoise | None
    """For the publication as one Gaussian experiment."""

    @classmethod
    def of(cls, release: Release, failure: float, scope: Scope) -> "Quantiles":
        """The quantiles that :class:`expost.reports.tight.TightReader` uses."""
        report, dimension = TightReader(release, failure, scope), len(release.coefficients)
        statistics = release.plan.scales.releases_statistics
        measured = None
        if release.gradient is not None:
            measured = gradient_factors(scope, report.shares.gradient, dimension, report.drift, release.plan)
        return cls(
            noise=reach_factors(scope, report.shares.tilt, dimension, report.drift, release.plan.loss),
            gradient=measured,
            cost=cost_quantile(release, scope, failure) if statistics else None,
            whole=whole_noise(release, scope, report.shares.whole) if statistics else None,
        )


def payload(publications: Sequence[Published]) -> dict[str, Any]:
    """All data of the page, in JSON's types.

    Several publications share the failure probability: each gets an equal part of it, so that their figures
    hold together at the chosen confidence. The bound of their sum holds on its own: ``together`` has what it
    allows for the noise at each level, and None where the totals are added up.

    Privacy
    -------
    Input and output are public.
    """
    form = Form.of(publications)
    return {
        "fields": form.fields,
        "confidences": list(CONFIDENCES),
        "usual": list(CONFIDENCES.values()).index(CONFIDENCE),
        "constants": CONSTANTS,
        "together": [
            sum_noise([publication.release for publication in publications], 1.0 - level, Scope(None))
            for level in CONFIDENCES.values()
        ],
        "publications": [
            _numbers(publication, len(publications))
            | {
                "features": form.features[place],
                "outcome": form.outcomes[place],
                "weight": form.weights[place],
            }
            for place, publication in enumerate(publications)
        ],
    }


def _numbers(publication: Published, sharing: int) -> dict[str, Any]:
    release = publication.release
    plan, loss = release.plan, release.plan.loss
    drift = Drift.of(release)
    bases: list[FloatArray] = []
    spectra: list[FloatArray] = []
    levels = [_level(release, (1.0 - level) / sharing, bases, spectra) for level in CONFIDENCES.values()]
    return {
        "insecure": publication.insecure,
        "texts": about(publication).model_dump(mode="json"),
        "sha256": publication.sha256,
        "loss": describe(loss),
        "regularizer": None if release.regularizer is None else describe(release.regularizer),
        "labels": loss.labels.values,
        "class_weight": publication.weighting.class_weight,
        "max_weight": publication.weighting.max_weight,
        "norm": plan.norm,
        "intercept": plan.fit_intercept,
        "columns": [*column_names(publication), *["intercept"] * plan.fit_intercept],
        "coefficients": _by_predictor(release.coefficients, loss),
        "gradient": None if release.gradient is None else _by_predictor(release.gradient, loss),
        "plan": {
            "epsilon": plan.epsilon if plan.profile is not None else None,
            "delta": plan.delta,
            "l2": plan.l2,
            "report": plan.report,
            "reduced": plan.reduced,
            "grid": plan.grid,
            **asdict(plan.scales),
        },
        "rounding": {
            "solver": plan.rounding.solver,
            "errors": {
                statistic.name: plan.rounding.error(statistic.name, scale)
                for statistic, scale in plan.scales.released
            },
            "curvature": drift.curvature,
            "slope": drift.slope,
        },
        "bases": [{"width": len(basis), "doubles": packed(basis.T)} for basis in bases],
        "spectra": [packed(values) for values in spectra],
        "levels": levels,
    }


def _by_predictor(numbers: FloatArray, loss: AnyLoss) -> list[list[float]]:
    rows: list[list[float]] = numbers.reshape(loss.outputs, -1).tolist()
    return rows


def packed(numbers: FloatArray) -> str:
    """The bytes of doubles in base 64, as ``numbers.js`` reads them: half as long as digits, and exact."""
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode("ascii")


def _level(
    release: Release, failure: float, bases: list[FloatArray], spectra: list[FloatArray]
) -> dict[str, Any]:
    """The numbers of one confidence level, by scope; new bases and eigenvalues are added to the lists."""
    simple = release.hessian is None and release.regularizer is None

    def scoped(scope: Scope) -> dict[str, Any]:
        determinant = TightReader(release, failure, scope).determinant
        return asdict(Quantiles.of(release, failure, scope)) | {
            "public": None if simple else _mixtures(determinant.public, bases, spectra),
            "adaptive": _mixtures(determinant.adaptive, bases, spectra),
            "upper": _mixtures(determinant.upper, bases, spectra),
        }

    return {"fixed": scoped(Scope(None)), "every": scoped(Scope("all"))}


def _mixtures(
    pencil: Pencil | None, bases: list[FloatArray], spectra: list[FloatArray]
) -> dict[str, Any] | None:
    if pencil is None:
        return None
    return {
        "basis": _place(pencil.basis, bases),
        "weights": pencil.weights.tolist(),
        "values": _place(pencil.values, spectra),
        "floor": pencil.floor,
    }


def _place(numbers: FloatArray, found: list[FloatArray]) -> int:
    """The place of these numbers in a list, to which they are added where they are new."""
    place = next((i for i, one in enumerate(found) if np.array_equal(one, numbers)), len(found))
    if place == len(found):
        found.append(numbers)
    return place
