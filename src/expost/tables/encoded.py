"""A table over raw records, encoded by their domain one block at a time."""

from typing import Any

import narwhals.stable.v1 as nw

from expost._typing import FloatArray
from expost.domain import Domain
from expost.exceptions import DomainError
from expost.tables.base import Table


class EncodedTable(Table):
    """A frame with a column for every feature of a domain, in any order and among any others."""

    def __init__(self, frame: Any, domain: Domain) -> None:
        if not nw.dependencies.is_into_dataframe(frame):
            raise DomainError("with a domain, `X` must be a data frame with named columns.")
        self._frame = nw.from_native(frame, eager_only=True)
        self._domain = domain
        missing = [feature.name for feature in domain.features if feature.name not in self._frame.columns]
        if missing:
            raise DomainError(
                f"`X` lacks the column {missing[0]!r} that the domain declares. Add or rename it."
            )
        self.n_rows = len(self._frame)
        self.n_features = len(domain.column_names)

    def rows(self, start: int, stop: int) -> FloatArray:
        """The encoded rows of the block."""
        block = self._frame[start:stop]
        columns = {feature.name: block[feature.name].to_numpy() for feature in self._domain.features}
        return self._domain.encode(columns)
