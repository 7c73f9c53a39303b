"""Read files of the UCI repository as columns of texts, and compute digests of their content."""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence

Texts = Mapping[str, list[str]]
"""The cells of every column, without the space around them; a missing one is empty."""

CREDIT = (
    *("ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE"),
    *(f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6)),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
    "default payment next month",
)
# The same columns as UCI's own CSV names them.
CREDIT_CODES = ("ID", *(f"X{number}" for number in range(1, 24)), "Y")
KIDNEY = (
    *("age", "bp", "sg", "al", "su", "rbc", "pc", "pcc", "ba", "bgr", "bu", "sc", "sod", "pot", "hemo"),
    *("pcv", "wbcc", "rbcc", "htn", "dm", "cad", "appet", "pe", "ane", "class"),
)
ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
    "income",
)


def parse_credit(raw: bytes) -> Texts:
    """Default of credit card clients, under the names of the original sheet."""
    names, *rows = _lines(raw)
    return _columns(CREDIT if tuple(names) == CREDIT_CODES else names, rows, CREDIT)


def parse_kidney(raw: bytes) -> Texts:
    """Chronic kidney disease."""
    names, *rows = _lines(raw)
    return _columns(names, rows, KIDNEY)


def parse_wine(raw: bytes) -> Texts:
    """Wine quality, red or white."""
    names, *rows = _lines(raw, delimiter=";")
    return _columns(names, rows, names)


def parse_adult(raw: bytes) -> Texts:
    """Either part of Adult, without names; the test part has a remark on top and full stops after labels."""
    rows = [line for line in _lines(raw) if len(line) == len(ADULT)]
    columns = dict(_columns(ADULT, rows, ADULT))
    columns["income"] = [label.removesuffix(".") for label in columns["income"]]
    return columns


def digest_of_bytes(raw: bytes) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(raw).hexdigest()


def digest_of_content(columns: Texts) -> str:
    """The SHA-256 of a table in any format: names, then rows, with numbers in one spelling."""
    rows = zip(*([_canonical(cell) for cell in cells] for cells in columns.values()), strict=True)
    return hashlib.sha256(json.dumps([list(columns), *rows]).encode()).hexdigest()


def _canonical(cell: str) -> str:
    try:
        return repr(float(cell))
    except ValueError:
        return cell


def _lines(raw: bytes, delimiter: str = ",") -> list[list[str]]:
    """Every line that is not empty, as stripped cells; raises ValueError if it is not text or not a table."""
    try:
        lines = list(csv.reader(io.StringIO(raw.decode("utf-8-sig")), delimiter=delimiter, strict=True))
    except csv.Error:
        raise ValueError("not a table") from None
    if not lines:
        raise ValueError("no lines")
    return [[_cell(text) for text in line] for line in lines if line]


def _cell(text: str) -> str:
    text = text.strip()
    return "" if text == "?" or text.lower() == "nan" else text


def _columns(names: Sequence[str], rows: Iterable[Sequence[str]], order: Iterable[str]) -> Texts:
    """Columns in a fixed order; raises ValueError if one is missing or a line is too short or too long."""
    cells = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    if not set(order) <= set(cells):
        raise ValueError("a column is missing")
    return {name: cells[name] for name in order}
