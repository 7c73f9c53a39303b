"""A table reads the same in every dialect that is declared, and no dialect is guessed."""

import datetime

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import expost
from expost import Category, ClassLabel, Date, Dialect, Domain, Number, YesNo
from expost.data.encoding import encode_records
from expost.data.weights import Declared
from expost.exceptions import DomainError, ExpostError, FileError

DOMAIN = Domain(
    features=(
        Number(name="größe", low=0.0, high=3.0, missing=1.7),
        Category(name="ward", categories=("nörd", "1,5"), missing="nörd"),
        YesNo(name="smoker", missing=False),
        Date(name="born", low="1900-01-01", high="2030-12-31", missing="1970-01-01"),
    ),
    label=ClassLabel(name="ill", classes=("nein", "ja")),
)
# The same records, plainly.
NAMES = [*(feature.name for feature in DOMAIN.features), "ill"]
ROWS = [
    ["1.75", "nörd", "yes", "1980-12-31", "ja"],
    ["", "1,5", "", "", "nein"],
    ["-0.5", "", "no", "2031-01-01", "ja"],
]
# The parts that every domain file needs.
REST = '[[features]]\nname="x"\nkind="yes_no"\n[label]\nname="y"\nkind="number"\nlow=0\nhigh=1\n'
PLAN = expost.calibrate(norm=DOMAIN.row_norm)


def written(rows, dialect):
    """The rows as a file in a dialect."""
    lines = [NAMES]
    for size, ward, smoker, born, ill in rows:
        size = size.replace(".", dialect.decimal)
        if born:
            day = datetime.date.fromisoformat(born)
            parts = {"YYYY": f"{day.year:04}", "MM": f"{day.month:02}", "DD": f"{day.day:02}"}
            born = dialect.dates
            for part, text in parts.items():
                born = born.replace(part, text)
        gone = dialect.missing_words[0] if dialect.missing_words else ""
        lines.append([cell or gone for cell in (size, ward, smoker, born, ill)])
    quoted = [[f'"{cell}"' if dialect.delimiter in cell else cell for cell in line] for line in lines]
    text = "\n".join(dialect.delimiter.join(line) for line in quoted) + "\n"
    return text.encode(dialect.encoding)


def encoded(path, domain):
    """The rows and labels of a table as the mechanism sees them."""
    records = encode_records(path, None, Declared.of(PLAN, classes=domain.classes, domain=domain))
    parts = list(
        records.checked_for(PLAN.loss, 1.0).sweep(lambda blocks: [(b.X.copy(), b.y.copy()) for b in blocks])
    )
    return [np.concatenate([block[place] for part in parts for block in part]) for place in (0, 1)]


@pytest.mark.parametrize(
    "dialect",
    [
        Dialect(),
        Dialect(delimiter=";", decimal=",", encoding="cp1252", dates="DD.MM.YYYY"),
        Dialect(delimiter="\t", decimal=",", missing_words=("k.A.", "-"), dates="MM/DD/YYYY"),
        Dialect(delimiter="|", encoding="utf-16", dates="DD-MM-YYYY", missing_words=("NA",)),
        Dialect(decimal=",", encoding="latin-1", dates="YYYY.DD.MM"),
    ],
    ids=lambda dialect: f"{dialect.delimiter!r} {dialect.encoding}",
)
def test_every_dialect_reads_the_same(dialect, tmp_path):
    (tmp_path / "plain.csv").write_bytes(written(ROWS, Dialect()))
    (tmp_path / "table.csv").write_bytes(written(ROWS, dialect))
    expected = encoded(tmp_path / "plain.csv", DOMAIN)
    found = encoded(tmp_path / "table.csv", DOMAIN.model_copy(update={"table": dialect}))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_words_for_missing_and_decimal_marks_hold_for_texts_in_parquet_too(tmp_path):
    dialect = Dialect(decimal=",", missing_words=("k.A.",), dates="DD.MM.YYYY")
    texts = {name: [row[place] or "k.A." for row in ROWS] for place, name in enumerate(NAMES)}
    texts["größe"] = [" 1,75", " k.A. ", "-0,5"]
    texts["born"] = pyarrow.array([datetime.date(1980, 12, 31), None, datetime.date(2031, 1, 1)])
    pyarrow.parquet.write_table(pyarrow.table(texts), tmp_path / "table.parquet")
    (tmp_path / "plain.csv").write_bytes(written(ROWS, Dialect()))
    expected = encoded(tmp_path / "plain.csv", DOMAIN)
    found = encoded(tmp_path / "table.parquet", DOMAIN.model_copy(update={"table": dialect}))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"decimal": ","}, 'decimal = ","'),
        ({"missing_words": ("N/A",)}, "missing_words = "),
        ({"dates": "DD.MM.YYYY"}, 'dates = "DD.MM.YYYY"'),
        ({"delimiter": ";"}, 'delimiter = ";"'),
        ({"delimiter": "\t"}, 'delimiter = "\\t"'),
        ({"encoding": "cp1252"}, 'encoding = "cp1252"'),
    ],
)
def test_a_refusal_that_looks_like_a_dialect_says_which_line_to_add(change, line, tmp_path):
    """Nothing is guessed: the table is refused, and the sentence names no cell of it."""
    (tmp_path / "table.csv").write_bytes(written(ROWS, Dialect(**change)))
    with pytest.raises(ExpostError) as refusal:
        encoded(tmp_path / "table.csv", DOMAIN)
    assert line in str(refusal.value)
    assert "[table]" in str(refusal.value)
    assert not any(cell in str(refusal.value) for cell in ("1,75", "N/A", "31.12.1980"))


def test_a_point_is_refused_where_the_comma_is_declared(tmp_path):
    """1.234 may be a thousand or one: neither is guessed."""
    domain = DOMAIN.model_copy(update={"table": Dialect(decimal=",")})
    rows = [["1.234", *ROWS[0][1:]]]
    (tmp_path / "table.csv").write_bytes(written(rows, Dialect()))
    with pytest.raises(DomainError, match="must be a number in every record"):
        encoded(tmp_path / "table.csv", domain)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delimiter", ";;"),
        ("delimiter", '"'),
        ("delimiter", "a"),
        ("decimal", ";"),
        ("encoding", "klingon"),
        ("encoding", "base64"),
        ("dates", "DD.MM"),
        ("dates", "DD.MM.YYYY hh"),
        ("missing_words", [""]),
        ("quote", "'"),
    ],
)
def test_what_is_no_dialect_is_refused(key, value):
    with pytest.raises(DomainError, match=rf"`{key}` of \[table\]"):
        Domain.from_toml(f"[table]\n{key} = {value!r}\n{REST}")


def test_a_file_that_is_not_in_its_encoding_is_refused_with_another(tmp_path):
    (tmp_path / "table.csv").write_bytes(b"gr\xf6\xdfe,ill\n1,ja\n")
    with pytest.raises(FileError, match='encoding = "cp1252"'):
        expost.scan(tmp_path / "table.csv")
    assert list(expost.scan(tmp_path / "table.csv", dialect=Dialect(encoding="cp1252")).kinds) == [
        "größe",
        "ill",
    ]


def test_the_dialect_and_ignored_columns_are_not_published():
    domain = Domain.from_toml(
        'ignore = ["secret"]\n[table]\ndelimiter = ";"\n[[features]]\nname = "x"\nkind = "yes_no"\n'
        '[label]\nname = "y"\nkind = "classes"\nclasses = ["a", "b"]\n'
    )
    assert domain.table.delimiter == ";"
    model = expost.LogisticRegression(domain=domain).fit({"x": [1, 0, 1], "y": ["a", "b", "a"]})
    text = model.publication_.to_json()
    assert "secret" not in text
    assert "delimiter" not in text
    with pytest.raises(DomainError, match="`x` is in `ignore` and declared too"):
        Domain.from_toml(f'ignore = ["x"]\n{REST}')
