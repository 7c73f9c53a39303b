"""Texts of a CSV file that no spreadsheet takes for a formula."""

import re
from collections.abc import Iterable

# What starts a formula, also in wide and small letters, and after blanks, quotes and what cannot be seen. The
# sign of a number starts none.
_UNSEEN = r"\s\"\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_FORMULA = re.compile(rf"[{_UNSEEN}]*(?:[=@＝＠﹦﹫]|[+\-＋－﹢﹣](?![\d.,]+(?:[eE][+-]?\d+)?\s*\Z))")
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
