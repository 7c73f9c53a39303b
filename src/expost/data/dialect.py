"""How the files of a table are written: declared by a domain file or options, never guessed."""

import codecs
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from expost.data.dates import DATE_KINDS
from expost.data.texts import DeclaredModel, Text, must
from expost.data.values import is_text

if TYPE_CHECKING:
    import pyarrow

# Delimiters that files are written with, as TOML writes them and as sentences call them.
DELIMITERS = {
    ",": ('","', "commas"),
    ";": ('";"', "semicolons"),
    "\t": ('"\\t"', "tabs"),
    "|": ('"|"', "bars"),
}
# The pattern for each part of a date.
_PARTS = {"YYYY": r"([0-9]{4})", "MM": r"([0-9]{1,2})", "DD": r"([0-9]{1,2})"}
_ISO = "YYYY-MM-DD"


def _is_delimiter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text not in '"\r\n' and not text.isalnum()


def _is_date_order(dates: str) -> bool:
    others = re.sub("YYYY|MM|DD", "", dates)
    each_once = sorted(re.findall("YYYY|MM|DD", dates)) == ["DD", "MM", "YYYY"]
    return each_once and not re.search("[A-Za-z0-9]", others)


class Dialect(DeclaredModel):
    """How the files of a table are written: the part ``[table]`` of a domain file.

    Parameters
    ----------
    delimiter
        What separates the cells of a CSV file.
    decimal
        The decimal mark of numbers that are texts. With a comma, a point in a number is refused: in one
        country it groups digits, in another it does not.
    encoding
        The encoding of a CSV file, by the name that Python has for it.
    missing_words
        Texts that stand for a missing value, whatever the column; blanks around them do not count. An empty
        cell is always missing.
    dates
        How dates are written that are texts. ``YYYY-MM-DD`` is understood as well.

    Privacy
    -------
    Public, and not a part of a publication: it is about files, not about records.

    Examples
    --------
    >>> from expost import Dialect
    >>> Dialect(delimiter=";", decimal=",", encoding="cp1252", missing_words=("k.A.",)).decimal
    ','
    """

    delimiter: Annotated[
        str, must('one ASCII character that separates cells, such as ";" or "\\t"', _is_delimiter)
    ] = ","
    decimal: Literal[".", ","] = "."
    encoding: Annotated[
        str,
        # Python also has codecs that turn bytes into bytes, such as base64.
        must(
            'the name of an encoding, such as "utf-8" or "cp1252"',
            lambda name: codecs.lookup(name)._is_text_encoding,
        ),
    ] = "utf-8"
    missing_words: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    dates: Annotated[
        str, must('made of YYYY, MM and DD, each once, such as "DD.MM.YYYY"', _is_date_order)
    ] = _ISO

    @property
    def codec(self) -> str:
        """The encoding; a mark at the start of a file that says that it is UTF-8 is no part of its text."""
        return "utf-8-sig" if codecs.lookup(self.encoding).name == "utf-8" else self.encoding

    def plain(self, column: "pyarrow.Array", kind: str) -> "pyarrow.Array":
        """A column of texts as the library writes them: numbers with a point, dates as ISO 8601 has them.

        ``kind`` is that of the feature or label. Missing words become null. Texts that are not what they
        should be stay what they are, or become other such texts; columns of other types stay as they are.
        """
        from pyarrow import array, compute, scalar

        if self == PLAIN or not is_text(column):
            return column
        if self.missing_words:
            words = array(self.missing_words, column.type)
            gone = compute.is_in(compute.utf8_trim_whitespace(column), value_set=words)
            column = compute.if_else(gone, scalar(None, column.type), column)
        if kind == "number" and self.decimal == ",":
            no_point = compute.replace_substring(column, pattern=".", replacement="?")
            column = compute.replace_substring(no_point, pattern=",", replacement=".")
        elif kind in DATE_KINDS and self.dates != _ISO:
            column = compute.replace_substring_regex(column, *self._date_regex)
        return column

    @property
    def _date_regex(self) -> tuple[str, str]:
        """The pattern of a date, with or without a time of day after it, and what ISO 8601 makes of it."""
        pieces = re.split("(YYYY|MM|DD)", self.dates)
        pattern = "".join(_PARTS.get(piece, re.escape(piece)) for piece in pieces)
        order = [piece for piece in pieces if piece in _PARTS]
        places = [order.index(part) + 1 for part in ("YYYY", "MM", "DD")]
        return rf"^\s*{pattern}([ T][0-9:.]+)?\s*$", "-".join(rf"\{place}" for place in places)

    def changed(self, **options: Any) -> "Dialect":
        """A dialect with the options that are not None."""
        given = {name: value for name, value in options.items() if value is not None}
        return Dialect.model_validate({**self.model_dump(), **given})


PLAIN = Dialect()
"""CSV as RFC 4180 has it, in UTF-8, with a decimal point."""


def delimiter_advice(names: Iterable[str], dialect: Dialect) -> str:
    """What to declare where the line of names looks like one of another dialect; else nothing. Public."""
    found = list(names)
    for delimiter, (written, spoken) in DELIMITERS.items():
        if len(found) == 1 and delimiter != dialect.delimiter and delimiter in found[0]:
            advice = line_to_add(f"delimiter = {written}")
            return f"Its line of names has one name, with {spoken} in it: {advice}"
    return ""


def line_to_add(line: str) -> str:
    """Where to declare what a file is written with."""
    key, value = line.split(" = ", 1)
    option = f"--{key.replace('_', '-')} {value.strip('[]')}"
    return (
        f"add the line  {line}  under [table] in the domain file, and name that file with --domain. "
        f"Without one yet, add  {option}  to expost init; expost.scan in Python takes  dialect=domain.table"
    )
