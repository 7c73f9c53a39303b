"""The parts of a published file: what each field may hold, and the sentence that refuses anything else."""

import re
from dataclasses import fields
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from expost._common.models import FrozenModel
from expost._common.strict_json import INTACT, publication_error, shown
from expost.data.weights import Weighting
from expost.exceptions import PublicationError
from expost.privacy.calibration import CALIBRATIONS, LARGEST_WEIGHT
from expost.privacy.precision import Precision
from expost.privacy.scales import NoiseScales
from expost.privacy.statistics import REPORT_KINDS
from expost.publication.values import Positive, choice, numbers

FORMAT = "expost-publication/2"


class PublishedPlan(FrozenModel):
    """The scales of the noise and what they guarantee; see :class:`expost.Plan`."""

    epsilon: Annotated[float, Field(ge=0.0)] | None
    """The guarantee for the whole publication; null where the loss has no worst case."""
    delta: Annotated[float, Field(gt=0.0, lt=1.0)]
    """The other half of the guarantee."""
    sigma: Positive
    """The noise of the coefficients' objective."""
    l2: Positive
    """The weight of the quadratic regulariser, of the sum over rows."""
    sigma_gradient: Positive | None
    """The noise of the gradient, or null."""
    sigma_hessian: Positive | None
    """The noise of the Hessian off its diagonal, or null."""
    sigma_eigenvalue: Positive | None
    """The noise of the Hessian's smallest eigenvalue, or null."""
    report: Annotated[str, choice("plan.report", REPORT_KINDS)]
    """Which statistics are published with the coefficients."""
    calibration: Annotated[str, choice("plan.calibration", CALIBRATIONS)]
    """The theorem by which the scales were chosen."""
    reduced: Literal[True] | None = None
    """Whether the Hessian of several classes is the reduced one; left out where it is not."""

    @property
    def scales(self) -> NoiseScales:
        """The noise scales as one value."""
        return NoiseScales(**{scale.name: getattr(self, scale.name) for scale in fields(NoiseScales)})


class PublishedPrecision(FrozenModel):
    """How the numbers were computed and printed; see :class:`expost.privacy.precision.Precision`."""

    output_noise: Positive
    """The scale of the noise added to the computed minimiser."""
    solver_radius: Positive
    """How close that minimiser is to the exact one, certified before the release."""
    grid: Positive
    """Every coefficient is a whole multiple of it."""
    rows_at_most: Annotated[int, Field(ge=1)]
    """Up to how many rows intervals keep their stated accuracy."""
    noise: Annotated[str, choice("precision.noise", ("discrete Gaussian",))]
    """The law of all noise that is added to printed numbers, on the grid of each."""
    statistics_at: Annotated[str, choice("precision.statistics_at", ("exact minimiser",))]
    """Where the statistics were taken."""
    statistics_error: Positive
    """The largest error of a computed statistic in units of its noise, or 2**-44 of the largest Hessian
    that ``rows_at_most`` rows can have, if that is more."""
    gradient_grid: Positive | None
    """The grid of the noisy gradient, or null."""
    hessian_grid: Positive | None
    """The grid of the noisy Hessian, or null."""
    eigenvalue_grid: Positive | None
    """The grid of the noisy smallest eigenvalue, or null."""

    @property
    def value(self) -> Precision:
        """The precision of the coefficients as a plan has it."""
        return Precision(self.output_noise, self.solver_radius, self.grid, self.rows_at_most)


class PublishedWeights(FrozenModel):
    """How records were weighted; see :class:`expost.data.weights.Weighting`."""

    max_weight: Annotated[float, Field(ge=1.0, le=LARGEST_WEIGHT)] | None
    """The largest sample weight of a record, or null where records have none of their own."""
    class_weight: Annotated[tuple[float, ...] | None, numbers("weights.class_weight")]
    """The weight of each class, in the order of ``classes``, or null."""

    @property
    def value(self) -> Weighting:
        """The weights as a fit declares them."""
        return Weighting(self.max_weight, self.class_weight)


class Statistics(FrozenModel):
    """What is published with the coefficients, each with its own noise."""

    gradient: Annotated[tuple[float, ...] | None, numbers("statistics.gradient")]
    """The noisy gradient of the objective, or null."""
    hessian: Annotated[tuple[float, ...] | None, numbers("statistics.hessian")]
    """The noisy Hessian's upper triangle, row by row, or null."""
    eigenvalue: float | None
    """The noisy smallest eigenvalue of the Hessian, or null."""


def check_format(found: object) -> None:
    """Refuse what is not this format, and say so where it is a newer one."""
    newer = re.fullmatch(r"expost-publication/([0-9]{1,9})", found) if isinstance(found, str) else None
    if newer and int(newer[1]) > 2:
        raise PublicationError(
            f"cannot use this publication: {found} needs a newer expost: "
            "upgrade with pip install --upgrade expost."
        )
    if found != FORMAT:
        raise publication_error(f"`format` must be {FORMAT!r} but is {shown(found)}")


def error_of_validation(error: ValidationError) -> PublicationError:
    """The error for the first thing that validation found, in one sentence."""
    first = error.errors(include_url=False)[0]
    inside = first.get("ctx", {}).get("error")
    if isinstance(inside, PublicationError):
        return inside
    where, context = _place(first["loc"]), first.get("ctx", {})
    if first["type"] == "missing":
        return publication_error(f"the field `{where}` is missing")
    if first["type"] == "extra_forbidden":
        return publication_error(
            f"`{where}` is no field of this format",
            "upgrade expost if it is newer than this one, or " + INTACT,
        )
    if first["type"] == "value_error":
        return publication_error(f"`{where}` is refused: {context['error']}")
    if first["type"] == "union_tag_not_found":
        return publication_error(f"the field `{where}.kind` is missing")
    if first["type"] == "union_tag_invalid":
        return publication_error(
            f"`{where}.kind` must be one of {context['expected_tags']} but is {shown(context['tag'])}"
        )
    if first["type"] == "too_short":
        return publication_error(
            f"`{where}` must have {context['min_length']} entries or more but has {context['actual_length']}"
        )
    if first["type"] in ("model_type", "model_attributes_type"):
        return publication_error(f"`{where}` must be an object but is {shown(first['input'])}")
    if first["type"] == "string_pattern_mismatch":
        return publication_error(f"`{where}` must match {context['pattern']} but is {shown(first['input'])}")
    constraint = first["msg"].removeprefix("Input should be ").removeprefix("String should ")
    return publication_error(f"`{where}` must be {constraint} but is {shown(first['input'])}")


def _place(path: tuple[int | str, ...]) -> str:
    """A path in the file, such as ``domain.features[0].low``."""
    # pydantic inserts the kind of a feature or of a label.
    tag = 3 if path[:2] == ("domain", "features") else 2 if path[:2] == ("domain", "label") else len(path)
    text = ""
    for part in path[:tag] + path[tag + 1 :]:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += "." * bool(text) + (part if part.isidentifier() and len(part) <= 40 else shown(part))
    return text
