"""A table over raw records, encoded by their domain one block at a time."""

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from expost._common.typing import FloatArray
from expost.data.domain import Domain
from expost.data.tables.base import Table
from expost.exceptions import DomainError


class EncodedTable(Table):
    """A frame with a column for every feature of a domain, in any order and among any others.

    A mapping from names to columns of one length counts as a frame.
    """

    def __init__(self, frame: Any, domain: Domain) -> None:
        columns: Mapping[str, Any]
        if isinstance(frame, Mapping):
            columns = {name: np.asarray(column) for name, column in frame.items()}
        elif nw.dependencies.is_into_dataframe(frame):
            opened = nw.from_native(frame, eager_only=True)
            columns = {name: opened[name] for name in opened.columns}
        else:
            raise DomainError("with a domain, `X` must be a data frame with named columns.")
        missing = [feature.name for feature in domain.features if feature.name not in columns]
        if missing:
            raise DomainError(
                f"`X` lacks the column {missing[0]!r} that the domain declares. Add or rename it."
            )
        self._columns = {feature.name: columns[feature.name] for feature in domain.features}
        for name, column in self._columns.items():
            if np.ndim(column) != 1:
                raise DomainError(f"`{name}` must be one column with one value per record.")
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise DomainError("the columns of `X` must have one length.")
        self._domain = domain
        self.n_rows = lengths.pop()
        self.n_features = len(domain.column_names)

    def rows(self, start: int, stop: int) -> FloatArray:
        """The encoded rows of the block."""
        return self._domain.encode({name: column[start:stop] for name, column in self._columns.items()})
