"""Checks of public arguments, the words that they choose from, and warnings that point to the user's line."""

import math
import sys
import warnings
from collections.abc import Collection
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

from expost.exceptions import MissingExtraError, ParameterError

ReportName: TypeAlias = Literal["independent", "leverage", "dependent", "adaptive"]
"""What is published with the model; see :data:`expost.privacy.scales.REPORT_KINDS`."""
CalibrationName: TypeAlias = Literal["tight", "kifer2012"]
"""The theorem that noise scales rely on."""
UnitName: TypeAlias = Literal["row", "person"]
"""What neighbouring tables differ by; see :data:`expost.privacy.excess.UNITS`."""
RegressionLossName: TypeAlias = Literal["pseudo_huber", "squared"]
LossName: TypeAlias = Literal[
    "logistic",
    "smoothed_hinge",
    "pseudo_huber",
    "squared",
    "smoothed_pinball",
    "bounded_poisson",
    "bounded_gamma",
]
"""The losses that can be named; see :data:`expost.losses.registry.LOSSES`."""
Simultaneous: TypeAlias = int | Literal["all"] | None
"""For how many records at once a bound is to hold."""
LibraryName: TypeAlias = Literal["pandas", "polars", "pyarrow", "modin", "cudf"]
LanguageName: TypeAlias = Literal["en", "de", "fr", "es"]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside of the library that led here, however deep the call is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "expost":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def parameter_error(name: str, constraint: str, value: object, way_out: str = "") -> ParameterError:
    """Build the error for a parameter outside its range; the caller raises it.

    Examples
    --------
    >>> str(parameter_error("delta", "a number with 0 < delta < 1", 1.0))
    '`delta` must be a number with 0 < delta < 1; got delta=1.0.'
    """
    sentence = f"`{name}` must be {constraint}; got {name}={as_written(value)}."
    return ParameterError(f"{sentence} {way_out}".rstrip())


def as_written(value: object) -> str:
    """A value as Python writes it, but for long whole numbers: Python itself refuses from 4,300 digits on."""
    return "a number with too many digits" if isinstance(value, int) and abs(value) >= 10**60 else repr(value)


def missing_extra_error(what: str, package: str, extra: str) -> MissingExtraError:
    """Build the error for something that needs an extra of this library's; the caller raises it."""
    return MissingExtraError(
        f"{what} needs {package}, which is not installed. Get it with: pip install 'expost[{extra}]'"
    )


def numeral(text: str) -> float:
    """The number that a text spells, by one rule for files, options and the page.

    ASCII digits with a sign, a decimal point and an exponent, and blanks around them. Python's ``float`` also
    takes ``4_0`` for 40, and digits of every script. ``nan`` and ``inf`` are spelt as Python spells them.
    Anything else is a ValueError, which does not quote the text.
    """
    bare = text.strip()
    with suppress(ValueError):
        if bare.isascii() and "_" not in bare:
            return float(bare)
    raise ValueError("not a number")


def check_positive(
    name: str, value: Any, *, below: float = math.inf, infinite: bool = False, way_out: str = ""
) -> float:
    """Return ``value`` as a float in the open interval (0, ``below``), or raise ParameterError."""
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        with suppress(OverflowError):
            number = float(value)
    if 0.0 < number < below or (infinite and number == math.inf):  # NaN is neither
        return number
    limited = below < math.inf
    kind = "a number" if limited or infinite else "a finite number"
    limits = f"0 < {name} < {below:g}" if limited else f"{name} > 0"
    raise parameter_error(name, f"{kind} with {limits}", value, way_out)


def check_count(name: str, value: Any, *, way_out: str = "") -> int:
    """Return ``value`` as a positive whole number, or raise ParameterError."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise parameter_error(name, "a whole number of at least 1", value, way_out)
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str], *, way_out: str = "") -> str:
    """Return ``value`` if it is one of ``choices``, or raise ParameterError."""
    if not isinstance(value, str) or value not in choices:
        raise parameter_error(name, "one of " + ", ".join(map(repr, choices)), value, way_out)
    return value
