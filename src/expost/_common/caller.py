"""Warnings that point to the line of the user's code."""

import sys
import warnings


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside of the library that led here, however deep the call is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "expost":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
