"""The parts of a published file: what each value may be, and the sentence that refuses anything else."""

import math
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo

from expost._common.strict_json import INTACT, UPGRADE, FrozenModel, publication_error, require, shown
from expost.data.domain import MOST_ROWS
from expost.data.values import of_one_kind
from expost.data.weights import Weighting
from expost.exceptions import LossError, ParameterError, PublicationError
from expost.losses import AnyLoss, as_loss, describe
from expost.losses.corners import Corners
from expost.losses.registry import PUBLISHED
from expost.losses.softmax_curve import MOST_CLASSES
from expost.privacy.calibration import CALIBRATIONS, LARGEST_WEIGHT
from expost.privacy.precision import Precision
from expost.privacy.recalibration import LARGEST_NOISE
from expost.privacy.scales import REPORT_KINDS, NoiseScales

# Labels beyond this are not exact everywhere that JSON is read.
_LARGEST_INTEGER = 2**53
_LONGEST_TEXT = 10_000

Label = str | bool | int | float


def _loss(value: Any, info: ValidationInfo) -> AnyLoss:
    """The loss that a file names; the reader may bring her own, which are checked."""
    known: Mapping[str, type[AnyLoss]] = info.context or PUBLISHED
    try:
        return as_loss(_named(value, known))
    except PublicationError:
        raise
    except LossError as error:
        reason = f"`loss` is refused: {str(error).rstrip('.')}"
        raise publication_error(reason, "mend the class that `losses` gives") from None
    except Exception as error:  # the reader's own class can raise anything
        reason = f"the class of `loss` raises {type(error).__name__} with the parameters of the file"
        raise publication_error(reason, "mend the class that `losses` gives, or " + INTACT) from None


def _named(value: Any, known: Mapping[str, type[AnyLoss]]) -> AnyLoss:
    """Build the loss that a file describes."""
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in known:
        got = shown(name) if isinstance(value, dict) else shown(value)
        own = "give its class with `losses` if it is a loss of the curator's own, "
        raise publication_error(f"`loss` must name one of {', '.join(known)} but is {got}", own + UPGRADE)
    must = f"`loss` of kind {name!r} must have"
    parameters = _parameters(value, known[name], must)
    try:
        built = known[name](**parameters)
    except ParameterError as error:
        raise publication_error(f"`loss` is refused: {str(error).rstrip('.')}") from None
    # What was added to the format later is written only where it has an effect.
    described = describe(built)
    wanted = ", ".join(key for key in described if key != "name") or "no parameters"
    require(set(described) == set(value), f"{must} exactly {wanted}")
    require(described == value, f"`loss` of kind {name!r} changes its parameters as it is made")
    return built


def _parameters(value: dict[str, Any], kind: Any, must: str) -> dict[str, Any]:
    """What a file gives of what a kind is made with; refused where one is missing or of another type."""
    declared = {one.name: one for one in fields(kind)}
    given = {name: content for name, content in value.items() if name in declared}
    positive = value["name"] in PUBLISHED
    for name, content in given.items():
        _check_parameter(f"loss.{name}", content, declared[name].type, positive=positive)
    needed = {name for name, one in declared.items() if one.default is MISSING or "needed" in one.metadata}
    require(needed <= set(given), f"{must} {', '.join(sorted(needed))}")
    return given


def _check_parameter(field: str, given: Any, declared: Any, *, positive: bool) -> None:
    """Refuse a parameter of another type than the loss declares."""
    kinds, wanted = [int, float], "a finite number above 0"
    if declared in (bool, "bool"):
        kinds, wanted, positive = [bool], "true or false", False
    elif declared in (int, "int"):
        kinds, wanted = [int], "a whole number above 0"
    fits = type(given) in kinds and not (positive and given <= 0)
    require(fits, f"`{field}` must be {wanted} but is {shown(given)}")


def numbers(field: str, *, or_null: bool = False) -> BeforeValidator:
    """Read a list of numbers as floats; the first wrong entry is named, and no others are collected."""

    def read(value: Any) -> Any:
        listed = isinstance(value, list | tuple)
        require(listed, f"`{field}` must be a list of numbers but is {shown(value)}")
        for place, entry in enumerate(value):
            if type(entry) is not float and type(entry) is not int and not (or_null and entry is None):
                raise publication_error(f"`{field}[{place}]` must be a number but is {shown(entry)}")
        return tuple(None if entry is None else float(entry) for entry in value)

    return BeforeValidator(read)


def choice(field: str, choices: Collection[str]) -> AfterValidator:
    """Accept one of a few texts."""

    def check(value: str) -> str:
        require(value in choices, f"`{field}` must be one of {', '.join(choices)} but is {shown(value)}")
        return value

    return AfterValidator(check)


def _labels(value: Any) -> Any:
    listed = isinstance(value, Sequence) and not isinstance(value, str) and 2 <= len(value) <= MOST_CLASSES
    require(listed, f"`classes` must be null or 2 to {MOST_CLASSES} labels but is {shown(value)}")
    require(of_one_kind(value), "`classes` must be labels of one kind: texts, numbers, or false and true")
    for label in value:
        if isinstance(label, str):
            _check_text("classes", label)
        else:
            exact = abs(label) <= (_LARGEST_INTEGER if isinstance(label, int) else sys.float_info.max)
            require(exact, f"`classes` must be exact, finite numbers but one is {shown(label)}")
    for place, label in enumerate(value) if len(set(value)) < len(value) else ():
        require(label not in value[:place], f"`classes` must be different labels but two are {shown(label)}")
    return tuple(value)


def _check_text(field: str, text: str) -> None:
    """Refuse half of a surrogate pair, which cannot be written as UTF-8, and texts that are no names."""
    try:
        short = len(text.encode("utf-8")) <= _LONGEST_TEXT
    except UnicodeEncodeError:
        half = f"`{field}` must be text but {shown(text)} holds half of a surrogate pair"
        raise publication_error(half) from None
    require(short, f"`{field}` must be texts of at most {_LONGEST_TEXT} bytes but one is {shown(text)}")


def _names(value: Any) -> Any:
    listed = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    require(listed, f"`feature_names` must be null or a list of texts but is {shown(value)}")
    for name in value:
        _check_text("feature_names", name)
    require(len(set(value)) == len(value), "`feature_names` must be different from each other")
    return tuple(value)


def _no_regularizer(value: Any) -> None:
    got = f"`regularizer` must be null but is {shown(value)}: further regularisers are no longer read"
    require(value is None, got, "read it with expost 0.2")


Positive = Annotated[float, Field(gt=0.0)]
PublishedLoss = Annotated[AnyLoss, BeforeValidator(_loss), PlainSerializer(describe)]
NoRegularizer = Annotated[None, BeforeValidator(_no_regularizer)]
Classes = Annotated[tuple[Label, ...], BeforeValidator(_labels)] | None
FeatureNames = Annotated[tuple[str, ...], BeforeValidator(_names)] | None


FORMAT = "expost-publication/2"


class PublishedPlan(FrozenModel):
    """The scales of the noise and what they guarantee; see :class:`expost.Plan`."""

    epsilon: Annotated[float, Field(ge=0.0)] | None
    delta: Annotated[float, Field(gt=0.0, lt=1.0)]
    sigma: Positive
    l2: Positive
    sigma_gradient: Positive | None
    sigma_hessian: Positive | None
    sigma_eigenvalue: Positive | None
    report: Annotated[str, choice("plan.report", REPORT_KINDS)]
    calibration: Annotated[str, choice("plan.calibration", CALIBRATIONS)]
    reduced: Literal[True] | None = None
    """Whether the Hessian of several classes is the reduced one; left out where it is not."""
    unit: Literal["person"] | None = None
    """What neighbouring tables differ by; left out where it is a row."""
    sigma_recalibration: Annotated[float, Field(gt=0.0, lt=LARGEST_NOISE)] | None = None
    """The noise of each number that recalibrates the model; left out where there is none."""

    @property
    def scales(self) -> NoiseScales:
        """The noise scales as one value."""
        return NoiseScales(**{scale.name: getattr(self, scale.name) for scale in fields(NoiseScales)})


class PublishedPrecision(FrozenModel):
    """How the numbers were computed and printed; see :class:`expost.privacy.precision.Precision`."""

    output_noise: Positive
    solver_radius: Positive
    grid: Positive
    rows_at_most: Annotated[int, Field(ge=1)]
    noise: Annotated[str, choice("precision.noise", ("discrete Gaussian",))]
    """The law of all noise that is added to printed numbers, on the grid of each."""
    statistics_at: Annotated[str, choice("precision.statistics_at", ("exact minimiser",))]
    """Where the statistics were taken."""
    statistics_error: Positive
    """The largest error of a computed statistic in units of its noise, or 2**-44 of the largest Hessian
    that ``rows_at_most`` rows can have, if that is more."""
    gradient_grid: Positive | None
    hessian_grid: Positive | None
    eigenvalue_grid: Positive | None
    """The grids of the noisy statistics; null for what is not released."""
    recalibration_grid: Positive | None = None
    """That of what recalibrates the model; left out where there is nothing."""

    @property
    def value(self) -> Precision:
        """The precision of the coefficients as a plan has it."""
        return Precision(self.output_noise, self.solver_radius, self.grid, self.rows_at_most)


class PublishedCorners(FrozenModel):
    """The L1 penalty and bounds of the features' coefficients; see :class:`expost.losses.corners.Corners`.

    A bound is null where there is none, and a list of them where no feature has one.
    """

    l1: Annotated[float, Field(ge=0.0)]
    low: Annotated[tuple[float | None, ...], numbers("corners.low", or_null=True)] | None
    high: Annotated[tuple[float | None, ...], numbers("corners.high", or_null=True)] | None

    def value(self, columns: int, *, intercept: int) -> Corners | None:
        """The corners of a model of so many features; None where there is no kink."""
        low, high = (
            [missing if end is None else end for end in ends or [None] * columns]
            for ends, missing in ((self.low, -math.inf), (self.high, math.inf))
        )
        return Corners.of(self.l1, low, high, intercept=intercept)


class PublishedWeights(FrozenModel):
    """How records were weighted; see :class:`expost.data.weights.Weighting`."""

    max_weight: Annotated[float, Field(ge=1.0, le=LARGEST_WEIGHT)] | None
    class_weight: Annotated[tuple[float, ...], numbers("weights.class_weight")] | None
    rows_per_person: Annotated[int, Field(ge=1, le=MOST_ROWS)] | None = None
    """How many rows of a person weigh 1 together; left out where any number does."""

    @property
    def value(self) -> Weighting:
        """The weights as a fit declares them."""
        return Weighting(self.max_weight, self.class_weight, rows_per_person=self.rows_per_person)


class Statistics(FrozenModel):
    """What is published with the coefficients, each with its own noise."""

    gradient: Annotated[tuple[float, ...], numbers("statistics.gradient")] | None
    """The noisy gradient of the objective, or null."""
    hessian: Annotated[tuple[float, ...], numbers("statistics.hessian")] | None
    """The noisy Hessian's upper triangle, row by row, or null."""
    eigenvalue: float | None
    """The noisy smallest eigenvalue of the Hessian, or null."""
    recalibration: Annotated[tuple[float, ...], numbers("statistics.recalibration")] | None = None
    """The noisy sums that recalibrate the model; left out where there are none. Of two classes: the counts of
    scores and labels, the first class by rising scores and then the second. Of a number: the weighted sums of
    1, q, q², r and qr, with predictions q and residuals r."""


def check_format(found: object) -> None:
    """Refuse what is not this format, and say so where it is a newer one."""
    newer = re.fullmatch(r"expost-publication/([0-9]{1,9})", found) if isinstance(found, str) else None
    if newer and int(newer[1]) > 2:
        raise PublicationError(
            f"cannot use this publication: {found} needs a newer expost: "
            "upgrade with pip install --upgrade expost."
        )
    require(found == FORMAT, f"`format` must be {FORMAT!r} but is {shown(found)}")
