"""The words that parameters choose from, so that a type checker refuses any other."""

from typing import Literal, TypeAlias

ReportName: TypeAlias = Literal["independent", "leverage", "dependent", "adaptive"]
"""What is published beside the model; see :data:`expost.privacy.statistics.REPORT_KINDS`."""
CalibrationName: TypeAlias = Literal["tight", "kifer2012"]
"""The theorem that noise scales rely on."""
RegressionLossName: TypeAlias = Literal["pseudo_huber", "squared"]
LossName: TypeAlias = Literal["logistic", "smoothed_hinge", "pseudo_huber", "squared"]
"""The losses that can be named; see :data:`expost.losses.registry.LOSSES`."""
Simultaneous: TypeAlias = int | Literal["all"] | None
"""For how many records at once a bound is to hold."""
LibraryName: TypeAlias = Literal["pandas", "polars", "pyarrow", "modin", "cudf"]
"""The libraries that frames can be made in."""
LanguageName: TypeAlias = Literal["en", "de"]
"""The languages that the page speaks."""
