"""Texts of a CSV file that no spreadsheet takes for a formula."""

import re
from collections.abc import Iterable

# What starts a formula, also in letters of full width and after blanks and quotes; a number's sign is none.
_FORMULA = re.compile(r"[\s\"\ufeff\0]*(?:[=@＝＠]|[+\-＋－](?![\d.,]+(?:[eE][+-]?\d+)?\s*\Z))")
# Where a spreadsheet may start another cell, whatever the quotes say.
_BORDER = re.compile(r"([;\t\r\n])")


def inert(text: str) -> str:
    """A cell that stays a text: an apostrophe stands before whatever a spreadsheet would compute.

    For every text in every CSV file: identifiers and other cells, names of columns and of files. Whoever can
    write a cell of a table could otherwise have everyone's losses sent to her when the file is opened.
    """
    if _BORDER.search(text) is None:
        return f"'{text}" if _FORMULA.match(text) else text
    safe = "".join(part if _BORDER.match(part) else inert(part) for part in _BORDER.split(text))
    return f"'{safe}" if _BORDER.match(safe) and not safe.startswith(";") else safe


def inert_row(cells: Iterable[object]) -> list[object]:
    """The cells of a row; numbers stay as they are."""
    return [inert(cell) if isinstance(cell, str) else cell for cell in cells]
