"""The column by which the curator knows the records, beside figures that are written as they come."""

from collections.abc import Iterable, Iterator
from itertools import chain

from expost.cli.private_files import Columns
from expost.data.lazy import LazyTable
from expost.data.values import as_texts, plain_cells
from expost.exceptions import DomainError

# Rows of the column that are read at a time.
_LENGTH = 1 << 14


def with_identifiers(parts: Iterable[Columns], table: LazyTable, name: str | None) -> Iterator[Columns]:
    """The same columns after one of identifiers, in parts as long as they were.

    The column is read again, a few rows at a time.

    Privacy
    -------
    Private: identifiers are.
    """
    if name is None:
        yield from parts
        return
    found = _identifiers(table, name)
    for part in parts:
        length = len(next(iter(part.values())))
        yield {name: [next(found) for _ in range(length)], **part}


def check_identifier(table: LazyTable, name: str | None, taken: Iterable[str] = ()) -> None:
    """Refuse a name that is no column of the table, or one that the figures have."""
    if name is None:
        return
    if name not in table.kinds:
        raise DomainError(f"the table lacks the column {name!r} that `--id` names. Check the name.")
    if name in taken:
        raise DomainError(f"`--id` must not be {name!r}, which is a name of a figure. Rename the column.")


def _identifiers(table: LazyTable, name: str) -> Iterator[str]:
    batches = chain.from_iterable(piece.batches([name], _LENGTH) for piece in table.pieces())
    return chain.from_iterable(as_texts(plain_cells(batch.column(name)), name) for batch in batches)
