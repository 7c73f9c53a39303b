"""The page's numbers and its form: everything about publications that does not depend on the record."""

import base64
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost.data.design import ROUNDINGS, SMALLEST_SCALE
from expost.data.features import NO, YES, Date, Feature, Month, Weekday
from expost.data.labels import CountLabel, NumericLabel, RowsLabel, TimeLabel
from expost.data.texts import FieldTexts
from expost.data.values import class_text
from expost.exceptions import PublicationError
from expost.fitting.contributions import Contributions
from expost.fitting.release import Release
from expost.losses import describe
from expost.losses.persons import CANCELLED, STRETCH
from expost.page.introduction import PublishedFile, about
from expost.page.people import (
    SOME,
    family_promises,
    forgotten_quantiles,
    largest_row,
    most_rows,
    person_quantiles,
)
from expost.page.promises import choice_plans, promised_together, promises
from expost.privacy.recalibration import MOMENT_WEIGHTS, cell_ends
from expost.reports.base import CONFIDENCE, Scope
from expost.reports.evaluate import SLACK, TightReader, spent_on_choices
from expost.reports.forgotten import Forgotten
from expost.reports.intervals import Determinant, gradient_factors, noise_factors
from expost.reports.laws import Drift
from expost.reports.records import DEFINITE, FEW_WEIGHTS, Pencil
from expost.reports.several import sum_noise
from expost.reports.total import cost_quantile, whole_noise
from expost.reports.wallet import first_scale

# A unit is no mere word: an answer in one unit does not serve a question in another.
_WORDS = frozenset(FieldTexts.text_names) - {"unit"}
# A field's role, its name, and how many of the same role and name come before it.
_Key = tuple[str, str, int]

# In the order of the form: outcomes come last, as in a table.
_ROLES = ("feature", "weight", "outcome")


@dataclass(frozen=True)
class Form:
    """The fields of all publications on a page, and which of them each publication uses."""

    fields: tuple[dict[str, Any], ...]
    used: tuple[dict[str, Any], ...]
    """For each publication the places of its features in the order of its encoding, of its outcome and of the
    sample weight; None where records have none of their own."""

    @classmethod
    def of(cls, publications: Sequence[PublishedFile]) -> "Form":
        """Join the publications' questions; fields with the same name are asked once.

        The first publication that has a text for a field decides it. PublicationError if two declare a field
        of the same name differently: one answer cannot serve both.
        """
        asked = [list(_asked(publication)) for publication in publications]
        fields: dict[_Key, dict[str, Any]] = {}
        for key, field in chain.from_iterable(asked):
            if _encoding(fields.setdefault(key, field)) != _encoding(field):
                raise PublicationError(
                    f"the publications declare {field['name']!r} differently, and one answer cannot serve "
                    "both; make a page for each."
                )
            fields[key] = field | fields[key]
        order = sorted(fields, key=lambda key: _ROLES.index(key[0]))
        places = {key: place for place, key in enumerate(order)}
        used = []
        for own in asked:
            of_role = {role: [places[key] for key, _ in own if key[0] == role] for role in _ROLES}
            (outcome,), weight = of_role["outcome"], next(iter(of_role["weight"]), None)
            used.append({"features": of_role["feature"], "outcome": outcome, "weight": weight})
        return cls(tuple(fields[key] for key in order), tuple(used))


def _encoding(field: dict[str, Any]) -> dict[str, Any]:
    """What must be the same for one answer to serve two publications: everything but the words."""
    plain = {key: value for key, value in field.items() if key not in _WORDS | {"effect", "asked"}}
    effect = field.get("effect")
    return plain | {"in_steps": effect == "monotone" or ("knots" in field and isinstance(effect, str))}


def _asked(publication: PublishedFile) -> Iterator[tuple[_Key, dict[str, Any]]]:
    """The fields of one publication, the outcome last, each with the key that identifies it on the page."""
    seen: Counter[tuple[str, str]] = Counter()
    found = (_features(publication), _weights(publication), [_outcome(publication)])
    for role, fields in zip(_ROLES, found, strict=True):
        for field in fields:
            name = field["name"]
            # Without a domain, several features may have the same name.
            yield (role, name, seen[role, name]), {"role": role} | field
            seen[role, name] += 1


def _features(publication: PublishedFile) -> list[dict[str, Any]]:
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
        field |= {"kind": "number", "date": True, "low": low, "high": high, "scale": "symmetric"}
        field |= {"knots": feature.nodes[1:-1]} if feature.knots else {}
    if isinstance(feature, Month | Weekday):
        numbers = [str(place + 1) for place in range(feature.length)]
        field |= {"kind": "cycle", "cycle": feature.kind, "categories": numbers, "circle": feature.circle}
        given = {key: getattr(feature, key) for key in ("missing", "example") if field.get(key)}
        codes = feature.coded(np.array(list(given.values()), dtype=object)) if given else ()
        field |= {key: numbers[code] for key, code in zip(given, codes, strict=True)}
    return field


def column_names(publication: PublishedFile) -> list[str]:
    """The names of the encoded columns, numbered where they have none."""
    numbered = (f"feature {number}" for number in range(1, publication.n_features + 1))
    return list(publication.feature_names or numbered)


def _outcome(publication: PublishedFile) -> dict[str, Any]:
    label = publication.label
    # The page has words of its own for what has no name.
    field: dict[str, Any] = {"unnamed": 0} if publication.domain is None else {}
    field |= {"name": "outcome"} if label is None else label.model_dump(mode="json")
    field |= {"asked": label.kind} if isinstance(label, CountLabel | RowsLabel) else {}
    if isinstance(label, TimeLabel):
        codes = [f"{code:g}" for code in label.codes.values or ()]
        return field | {"kind": "classes", "classes": codes, "example": codes[-2]}
    if publication.classes is None:
        return _unbounded(field["name"]) | field | _numeric(publication)
    field |= {"kind": "classes", "classes": [class_text(one) for one in publication.classes]}
    return field | ({"example": class_text(field["example"])} if "example" in field else {})


def _numeric(publication: PublishedFile) -> dict[str, Any]:
    """The limits of an outcome that is a number, and its scale: none where it has declared bounds."""
    label, labels = publication.label, publication.release.plan.loss.labels
    if isinstance(label, NumericLabel):
        scale = {"kind": "number", "typical": label.typical} if label.log_link else {}
        return {"least": None, "most": None} | scale
    return {"least": _finite(labels.low), "most": _finite(labels.high)}


def _weights(publication: PublishedFile) -> list[dict[str, Any]]:
    """A number from 0 to the largest sample weight, or unknown; class weights are not asked."""
    most = publication.weighting.max_weight
    if most is None:
        return []
    return [_unbounded("sample weight") | {"least": 0.0, "most": most}]


def _finite(number: float) -> float | None:
    """The number, or None where JSON has none for it."""
    return number if math.isfinite(number) else None


def _unbounded(name: str) -> dict[str, Any]:
    return {"name": name, "kind": "number", "low": None, "high": None, "missing": None}


# The menu of confidence levels, as it is shown and as a number.
CONFIDENCES = {f"{100 * level:g}%": level for level in (0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999)}
# The constants and words of the scripts; they read them from the page's data, so that each is written once.
CONSTANTS = {
    "words": {"yes": YES, "no": NO},
    "roundings": ROUNDINGS,
    "smallest_scale": SMALLEST_SCALE,
    "slack": SLACK,
    "stretch": STRETCH,
    "cancelled": CANCELLED,
    "mixtures": FEW_WEIGHTS.tolist(),
    "definite": DEFINITE,
}


def payload(publications: Sequence[PublishedFile]) -> dict[str, Any]:
    """All data of the page, in JSON's types.

    Several publications share the failure probability: each gets an equal part of it, so that their figures
    hold together at the chosen confidence. The bound of their sum holds on its own: ``together`` has what it
    allows for the noise at each level, for people with one row, two and so on, and None where the totals are
    added up. So does what a member's
    ``wallet`` says: its scale is that of the publication that came first.

    Privacy
    -------
    Input and output are public.
    """
    form, releases = Form.of(publications), [publication.release for publication in publications]
    # A sum of one needs none.
    most = 0 if len(releases) == 1 else min(most_rows(one.release.plan, one.label) for one in publications)
    return {
        "fields": form.fields,
        "confidences": list(CONFIDENCES),
        "usual": list(CONFIDENCES.values()).index(CONFIDENCE),
        "constants": CONSTANTS,
        "together": [
            [sum_noise(releases, 1.0 - level, Scope(None), rows + 1) for rows in range(most)]
            for level in CONFIDENCES.values()
        ],
        "wallet": {
            "scales": [_finite(first_scale(release.plan)) for release in releases],
            "logarithms": [2.0 * math.log(1.0 / (1.0 - level)) for level in CONFIDENCES.values()],
        },
        **_promised(releases),
        "missing_words": sorted(set(chain.from_iterable(map(_missing_words, publications)))),
        "publications": [
            _numbers(publication, len(publications)) | used
            for publication, used in zip(publications, form.used, strict=True)
        ],
    }


def _chosen(*releases: Release) -> dict[str, float]:
    """What private choices cost that releases used, each once; nothing where there are none."""
    cost = spent_on_choices(releases)
    return {"chosen": cost} if cost else {}


def _promised(releases: Sequence[Release]) -> dict[str, Any]:
    """What was promised for all publications together, and what private choices cost that they used."""
    plans = [release.plan for release in releases]
    return {
        "promises": promises(plans, [family_promises(plan) for plan in plans], choice_plans(releases)),
        "promised_delta": sum(plan.delta for plan in plans),
        **_chosen(*releases),
    }


def _missing_words(publication: PublishedFile) -> tuple[str, ...]:
    return () if publication.domain is None else publication.domain.missing_words


def _numbers(publication: PublishedFile, sharing: int) -> dict[str, Any]:
    release, gradient = publication.release, publication.release.gradient
    plan, loss = release.plan, release.plan.loss
    drift, promised = Drift.of(release), promised_together((plan,), choice_plans([release]))
    bases: list[FloatArray] = []
    spectra: list[FloatArray] = []
    levels = [
        {
            name: _quantiles(publication, (1.0 - level) / sharing, scope, bases, spectra)
            for name, scope in (("fixed", Scope(None)), ("every", Scope("all")))
        }
        for level in CONFIDENCES.values()
    ]
    spectrum = np.empty(0)
    if release.hessian is not None:
        spectrum, _ = TightReader(release, 0.5, Scope(None)).determinant.spectrum
    return {
        "insecure": publication.insecure,
        "texts": about(publication).model_dump(mode="json"),
        "sha256": publication.sha256,
        "loss": describe(loss),
        "corners": _corners(publication),
        "labels": loss.labels.values,
        "class_weight": publication.weighting.class_weight,
        "max_weight": publication.weighting.max_weight,
        "norm": plan.norm,
        "intercept": plan.fit_intercept,
        "columns": [*column_names(publication), *intercept_names(publication)],
        "products": [] if publication.domain is None else publication.domain.multiplied,
        "coefficients": release.coefficients.reshape(loss.outputs, -1).tolist(),
        "gradient": None if gradient is None else gradient.reshape(loss.outputs, -1).tolist(),
        **_recalibration(release),
        "plan": {
            "epsilon": None if promised is None else promised[0],
            "delta": plan.delta,
            "l2": plan.l2,
            "report": plan.report,
            "reduced": plan.reduced,
            "grid": plan.grid,
            **plan.scales.stated,
            "unit": ("row", "person")[publication.of_people],
        },
        "rows_per_person": publication.weighting.rows_per_person,
        **_chosen(release),
        "most_rows": most_rows(plan, None),
        "largest_row": largest_row(plan),
        "spectrum": packed(spectrum),
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
        **_spread(publication),
    }


def _spread(publication: PublishedFile) -> dict[str, Any]:
    """How a record becomes rows, and the codes of its outcomes; nothing where it is one row.

    Such a record is asked alone.
    """
    label = publication.label
    if not isinstance(label, RowsLabel):
        return {}
    return {"spread": label.kind, "places": label.places, "labels": label.codes.values, "most_rows": 1}


def intercept_names(publication: PublishedFile) -> list[str]:
    """The names of the intercepts: of the classes that rows of a record ask about, where it has several."""
    if isinstance(publication.label, RowsLabel):
        return publication.label.place_names
    return ["intercept"] * publication.release.plan.fit_intercept


def _recalibration(release: Release) -> dict[str, Any]:
    """What rows add to the numbers that recalibrate the model is found from; nothing where there are none.

    Of a histogram where cells end, and the noisy counts of both classes; of moments their weights, and how
    far predictions can be from the intercept.
    """
    if release.recalibration is None:
        return {}
    contributions = Contributions(release.coefficients, release.plan)
    if contributions.counts:
        ends = cell_ends(contributions.noise)
        return {"cells": [ends, *release.recalibration.reshape(2, -1).tolist()]}
    return {"moments": {"weights": MOMENT_WEIGHTS, "reach": contributions.reach}}


def _corners(publication: PublishedFile) -> dict[str, Any] | None:
    corners = publication.release.corners
    return None if corners is None else corners.described(len(column_names(publication)))


def packed(numbers: FloatArray) -> str:
    """The bytes of doubles in base 64, as ``numbers.js`` reads them: half as long as digits, and exact."""
    return in_base64(np.ascontiguousarray(numbers, dtype="<f8").tobytes())


def in_base64(content: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(content).decode("ascii")


def _quantiles(
    publication: PublishedFile,
    failure: float,
    scope: Scope,
    bases: list[FloatArray],
    spectra: list[FloatArray],
) -> dict[str, Any]:
    """What a ``TightReader`` reads with, None for what is not released; adds new bases and eigenvalues."""
    release = publication.release
    reader, plan, dimension = TightReader(release, failure, scope), release.plan, len(release.coefficients)
    most = most_rows(plan, publication.label)
    shares, drift, determinant = reader.shares, reader.drift, reader.determinant
    measured, cost, whole, public = None, None, None, None
    if release.gradient is not None:
        measured = gradient_factors(scope, shares.gradient, dimension, drift, plan)
    if plan.scales.releases_statistics:
        cost, whole = cost_quantile(release, scope, failure), whole_noise(release, scope, shares.whole)
    if release.hessian is not None:
        public = _mixtures(determinant.public, bases, spectra, determinant.margin)
    return {
        "noise": noise_factors(release, scope, shares.tilt, drift),
        "gradient": measured,
        "cost": cost,
        "whole": whole,
        "public": public,
        "adaptive": determinant.adaptive
        and _mixtures(determinant.adaptive, bases, spectra, determinant.margin),
        "upper": determinant.upper and _mixtures(determinant.upper, bases, spectra, _raised(determinant)),
        "people": _of_people(release, failure, scope, most),
        # A family is asked for every answer: a record at its worst would say no more than the promise.
        **(_forgotten(release, failure, scope, most) if publication.of_people else {}),
    }


def _raised(determinant: Determinant) -> float | None:
    """By what the upper bound's eigenvalues are those of the Hessian; those of a block are its own."""
    return -determinant.upper_margin if determinant.release.corners is None else None


def _forgotten(release: Release, failure: float, scope: Scope, most: int) -> dict[str, Any]:
    return {
        "remembered": _of_people(release, failure, scope, most, forgotten=SOME),
        "forgotten": packed(forgotten_quantiles(release, failure, scope, most)),
    }


def _of_people(
    release: Release, failure: float, scope: Scope, most: int, *, forgotten: Forgotten | None = None
) -> dict[str, Any]:
    lines, floor = person_quantiles(release, failure, scope, most, forgotten=forgotten)
    return {"lines": packed(lines), "floor": floor}


def _mixtures(
    pencil: Pencil, bases: list[FloatArray], spectra: list[FloatArray], margin: float | None
) -> dict[str, Any]:
    """A pencil; with a margin its values are the Hessian's own, lowered by it, or raised if negative."""
    moved = {"values": _place(pencil.values, spectra)} if margin is None else {"margin": margin}
    return {
        "basis": _place(pencil.basis, bases),
        "weights": pencil.weights.tolist(),
        "floor": pencil.floor,
        **moved,
    }


def _place(numbers: FloatArray, found: list[FloatArray]) -> int:
    """The place of these numbers in a list, to which they are added where they are new."""
    place = next((i for i, one in enumerate(found) if np.array_equal(one, numbers)), len(found))
    if place == len(found):
        found.append(numbers)
    return place
