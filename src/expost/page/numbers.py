"""The page's numbers and its form: everything about publications that does not depend on the record."""

import base64
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost.data.design import ROUNDINGS, SMALLEST_SCALE
from expost.data.features import NO, YES, Date, Feature
from expost.data.texts import FieldTexts
from expost.data.values import class_text
from expost.exceptions import PublicationError
from expost.fitting.release import Release
from expost.losses import AnyLoss, describe
from expost.page.introduction import Published, about
from expost.reports.base import CONFIDENCE, Scope
from expost.reports.evaluate import SLACK, TightReader
from expost.reports.intervals import Factors, gradient_factors, reach_factors
from expost.reports.laws import Drift
from expost.reports.records import Pencil
from expost.reports.several import sum_noise
from expost.reports.total import WholeNoise, cost_quantile, whole_noise

# A unit is no mere word: an answer in one unit does not serve a question in another.
_WORDS = frozenset(FieldTexts.text_names()) - {"unit"}


@dataclass(frozen=True)
class Form:
    """The fields of all publications on a page, and which of them each publication uses."""

    fields: tuple[dict[str, Any], ...]
    features: tuple[tuple[int, ...], ...]
    """For each publication, the fields of its features in the order of its encoding."""
    outcomes: tuple[int, ...]
    """For each publication, the field of its outcome."""
    weights: tuple[int | None, ...]
    """For each publication, the field of the sample weight; None where records have none of their own."""

    @classmethod
    def of(cls, publications: Sequence[Published]) -> "Form":
        """Join the publications' questions; fields with the same name are asked once.

        The first publication that has a text for a field decides it.

        Raises
        ------
        PublicationError
            If two of them declare a field of the same name differently: one answer cannot serve both.
        """
        places: dict[tuple[str, str, int], int] = {}
        fields: list[dict[str, Any]] = []
        features, outcomes, weights = [], [], []
        for publication in publications:
            own: dict[str, list[int]] = {"feature": [], "weight": [], "outcome": []}
            for key, field in _asked(publication):
                place = places.setdefault(key, len(fields))
                if place == len(fields):
                    fields.append(field)
                elif _encoding(fields[place]) == _encoding(field):
                    fields[place] = field | fields[place]
                else:
                    raise PublicationError(
                        f"the publications declare {field['name']!r} differently, and one answer cannot "
                        "serve both; make a page for each."
                    )
                own[key[0]].append(place)
            features.append(own["feature"])
            weights.append(own["weight"])
            outcomes.append(own["outcome"][0])
        # Outcomes come last, as in a table.
        order = sorted(range(len(fields)), key=lambda place: list(own).index(fields[place]["role"]))
        moved = {place: rank for rank, place in enumerate(order)}
        return cls(
            fields=tuple(fields[place] for place in order),
            features=tuple(tuple(moved[place] for place in own) for own in features),
            outcomes=tuple(moved[place] for place in outcomes),
            weights=tuple(moved[places[0]] if places else None for places in weights),
        )


def _encoding(field: dict[str, Any]) -> dict[str, Any]:
    """What must be the same for one answer to serve two publications: everything but the words."""
    return {key: value for key, value in field.items() if key not in _WORDS}


def _asked(publication: Published) -> Iterator[tuple[tuple[str, str, int], dict[str, Any]]]:
    """The fields of one publication, the outcome last, each with the key that identifies it on the page."""
    seen: Counter[tuple[str, str]] = Counter()
    for role, fields in (
        ("feature", _features(publication)),
        ("weight", _weights(publication)),
        ("outcome", [_outcome(publication)]),
    ):
        for field in fields:
            name = field["name"]
            # Without a domain, several features may have the same name.
            yield (role, name, seen[role, name]), {"role": role} | field
            seen[role, name] += 1


def _features(publication: Published) -> list[dict[str, Any]]:
    if publication.domain is not None:
        return [_declared(feature) for feature in publication.domain.features]
    names = column_names(publication)
    if publication.feature_names is not None:
        return [_unbounded(name) for name in names]
    # The page has words of its own for what has no name.
    return [_unbounded(name) | {"unnamed": number} for number, name in enumerate(names, start=1)]


def _declared(feature: Feature) -> dict[str, Any]:
    """What the page asks for a feature; a date is a number of days that is asked for as a date."""
    field = feature.model_dump(mode="json")
    if isinstance(feature, Date):
        low, high = feature.limits
        field |= {"kind": "number", "date": True, "low": low, "high": high, "scale": feature.scale}
    return field


def column_names(publication: Published) -> list[str]:
    """The names of the encoded columns, numbered where they have none."""
    release = publication.release
    count = len(release.coefficients) // release.plan.loss.outputs - release.plan.fit_intercept
    return list(publication.feature_names or (f"feature {number}" for number in range(1, count + 1)))


def _outcome(publication: Published) -> dict[str, Any]:
    label, labels = publication.label, publication.release.plan.loss.labels
    # The page has words of its own for what has no name.
    field: dict[str, Any] = {"unnamed": 0} if publication.domain is None else {}
    field |= {"name": "outcome"} if label is None else label.model_dump(mode="json")
    if publication.classes is None:
        bounds = {"least": _finite(labels.low), "most": _finite(labels.high)}
        return _unbounded(field["name"]) | field | bounds
    field |= {"kind": "classes", "classes": [class_text(one) for one in publication.classes]}
    return field | ({"example": class_text(field["example"])} if "example" in field else {})


def _weights(publication: Published) -> list[dict[str, Any]]:
    """A number from 0 to the largest sample weight, or unknown; class weights are not asked."""
    most = publication.weighting.max_weight
    if most is None:
        return []
    return [_unbounded("sample weight") | {"least": 0.0, "most": most}]


def _unbounded(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "number", "low": None, "high": None, "missing": None}


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


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
        """The quantiles that :class:`expost.reports.evaluate.TightReader` uses."""
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
