"""The page's numbers: everything about publications that does not depend on the record."""

import base64
import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost.data.design import ROUNDINGS, SMALLEST_SCALE
from expost.data.features import NO, YES
from expost.data.labels import RowsLabel
from expost.fitting.contributions import Contributions
from expost.fitting.release import Release
from expost.losses import describe
from expost.losses.persons import CANCELLED, STRETCH
from expost.page.fields import Form, column_names, finite, intercept_names
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
            "scales": [finite(first_scale(release.plan)) for release in releases],
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
