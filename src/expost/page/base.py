"""The parts of a publication that the page reads."""

from collections.abc import Sequence
from typing import Protocol

from expost.data.domain import Domain
from expost.data.features import Label
from expost.data.weights import Weighting
from expost.fitting.release import Release


class Published(Protocol):
    """The public side of a fit, as :class:`expost.Publication` has it."""

    @property
    def release(self) -> Release:
        """Coefficients, statistics, scales and guarantee."""

    @property
    def domain(self) -> Domain | None:
        """What is publicly known about a record, where it was declared."""

    @property
    def label(self) -> Label | None:
        """What was declared about the outcome."""

    @property
    def feature_names(self) -> Sequence[str] | None:
        """The names of the encoded columns."""

    @property
    def classes(self) -> Sequence[str | bool | int | float] | None:
        """The labels of a classifier."""

    @property
    def weighting(self) -> Weighting:
        """What was declared about weights."""

    @property
    def insecure(self) -> str | None:
        """The sentence that voids the guarantee; None for a secure publication."""

    @property
    def sha256(self) -> str:
        """The fingerprint of the file."""

    def to_json(self) -> str:
        """The text of the file."""
