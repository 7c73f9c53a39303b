"""One pass finds every problem that a fit refuses, each with its record, and no others."""

import csv
import io

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import expost
from expost import (
    AmountLabel,
    Category,
    ClassLabel,
    CountLabel,
    Date,
    Dialect,
    Domain,
    Month,
    Number,
    NumberLabel,
    TimeLabel,
    YesNo,
)
from expost.data.check import LINE, find_problems
from expost.data.encoding import encode_records
from expost.data.problems import Problem
from expost.data.weights import Declared, Weighting
from expost.exceptions import ExpostError

FEATURES = (
    Number(name="age", low=0.0, high=120.0),
    Number(name="weight", low=0.0, high=300.0, missing=70.0),
    Category(name="ward", categories=("north", "south")),
    Category(name="floor", categories=("0", "1"), missing="0"),
    YesNo(name="smoker"),
    Date(name="born", low="1900-01-01", high="2030-12-31", missing="1970-01-01"),
    Month(name="seen"),
)
CLASSES = Domain(features=FEATURES, label=ClassLabel(name="ill", classes=("no", "yes")))
NUMBERS = Domain(features=FEATURES, label=NumberLabel(name="ill", low=0.0, high=9.0))
NAMES = [*(feature.name for feature in FEATURES), "ill"]
GOOD = ["40", "70", "north", "0", "yes", "1980-01-31", "2024-03-01", "no"]
# For each column: a cell, and what is wrong with it.
BAD = {
    "age": {
        "": Problem.MISSING, "nan": Problem.MISSING, "NA": Problem.WORD, "1,5": Problem.COMMA,
        "1,234.5": Problem.GROUPED, "forty": Problem.NUMBER, "inf": Problem.INFINITE, "4_0": Problem.NUMBER,
        "130": Problem.BEYOND, "-1": Problem.BEYOND, "\ufffd": Problem.ENCODING,
    },
    "weight": {"-": Problem.WORD, "heavy": Problem.NUMBER},
    "ward": {
        "": Problem.MISSING, "North": Problem.SPELLING, "south ": Problem.SPELLING,
        "west": Problem.UNDECLARED,
    },
    "floor": {"2": Problem.UNDECLARED, "unknown": Problem.WORD},
    "smoker": {"": Problem.MISSING, "perhaps": Problem.YES_NO, "?": Problem.WORD},
    "born": {
        "31.01.1980": Problem.DATE_ORDER, "1980-02-30": Problem.DATE, "soon": Problem.DATE,
        "1899-12-31": Problem.BEYOND,
    },
    "seen": {
        "3": Problem.CYCLE, "2024-03": Problem.CYCLE, "": Problem.MISSING, "1.3.2024": Problem.DATE_ORDER,
    },
    "ill": {
        "": Problem.NO_OUTCOME, "NO": Problem.SPELLING, "maybe": Problem.UNDECLARED,
        "N/A": Problem.UNDECLARED,
    },
}  # fmt: skip
FINE = {"weight": ["", " 70 "], "smoker": ["TRUE", " 0"], "floor": ["", "1"], "born": ["", "1980-1-3"]}


def write(path, rows, names=NAMES):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def found(path, domain=CLASSES, **options):
    """Every problem with its record and value."""
    table = expost.scan(path, dialect=domain.table)
    return [
        (record, one.column, value, one.problem)
        for one in find_problems(table, (*domain.features, domain.label), **options)
        for record, value in zip(one.records or [0], one.values or [""], strict=True)
    ]


def test_every_kind_of_problem_is_told_from_the_others(tmp_path):
    rows, truth = [GOOD], []
    for name, cells in BAD.items():
        for cell, problem in cells.items():
            rows.append([cell if name == one else good for one, good in zip(NAMES, GOOD, strict=True)])
            truth.append((len(rows), name, cell, problem))
    for name, cells in FINE.items():
        for cell in cells:
            rows.append([cell if name == one else good for one, good in zip(NAMES, GOOD, strict=True)])
    assert sorted(found(write(tmp_path / "t.csv", rows)), key=str) == sorted(truth, key=str)


TIMES = {
    ("-1", "no"): ("days", Problem.NEGATIVE),
    ("", "no"): ("days", Problem.NO_TIME),
    ("soon", "no"): ("days", Problem.NUMBER),
    ("5", "perhaps"): ("died", Problem.EVENT),
    ("5", ""): ("died", Problem.NO_TIME),
    ("400", "yes"): ("days", Problem.LATE),
    ("360", "yes"): None,
    ("0", "no"): None,
}


def test_a_declared_word_is_misspelt_and_not_missing(tmp_path):
    """Pain may be "none": to declare that as a word for a missing value would lose a class."""
    domain = Domain(features=FEATURES[:1], label=ClassLabel(name="pain", classes=("None", "Some")))
    path = write(tmp_path / "t.csv", [["40", "none"], ["50", "n/a"]], ["age", "pain"])
    kinds = {value: problem for *_, value, problem in found(path, domain)}
    assert kinds == {"none": Problem.SPELLING, "n/a": Problem.UNDECLARED}
    path = write(tmp_path / "t.csv", [["40", "none"], ["50", "Some"]], ["age", "pain"])
    with pytest.raises(ExpostError, match="spelling and case count") as refusal:
        expost.LogisticRegression(domain=domain, random_state=0).fit(path)
    assert "missing_words" not in str(refusal.value)


@pytest.mark.parametrize("together", [False, True], ids=["one", "with a text"])
@pytest.mark.parametrize("cells", TIMES, ids=str)
def test_what_is_wrong_with_a_time_is_told_and_refused(cells, together, tmp_path):
    """Of a column of numbers alone, and of one that has to be read cell by cell."""
    label = TimeLabel(name="days", event="died", periods=12, length=30.0)
    domain = Domain(features=(Number(name="age", low=0.0, high=120.0),), label=label)
    rows = [["40", "3", "no"], ["50", "30", "yes"], ["60", *cells]] + [["70", "late", "no"]] * together
    path = write(tmp_path / "t.csv", rows, ["age", "days", "died"])
    problems = [(one.column, one.problem) for one in find_problems(expost.scan(path), domain.checked)]
    assert problems.count(("days", Problem.NUMBER)) == together + (cells[0] == "soon" and not together)
    if TIMES[cells] is None:
        assert together or not problems
    else:
        assert TIMES[cells] in problems
    if together:
        return
    try:
        expost.SurvivalRegression(domain=domain, random_state=0).fit(path)
        refused = ""
    except ExpostError as error:
        refused = str(error)
    assert bool(refused) == any(problem.refused for _, problem in problems)
    assert "category" not in refused  # an event has no words of its own


@pytest.mark.parametrize("together", [False, True], ids=["alone", "with a text"])
@pytest.mark.parametrize(
    ("label", "cells"),
    [
        (
            AmountLabel(name="cost", low=1.0, high=99.0),
            {"0": Problem.AMOUNT, "-2,5": Problem.AMOUNT, "7,5": None, "0,5": Problem.BEYOND},
        ),
        (
            CountLabel(name="visits", high=99.0),
            {"2,5": Problem.COUNT, "-1": Problem.COUNT, "3": None, "0": None, "100": Problem.BEYOND},
        ),
    ],
    ids=["amount", "count"],
)
def test_what_is_no_amount_or_no_count_is_told_and_not_refused(label, cells, together, tmp_path):
    """Of a column of numbers alone, and of one that has to be read cell by cell, with decimal commas."""
    dialect = Dialect(delimiter=";", decimal=",")
    domain = Domain(features=FEATURES[:1], label=label, table=dialect)
    rows = [f"40;{cell}" for cell in [*cells, *["few"] * together]]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([f"age;{label.name}", *rows]))
    kinds = {value: problem for *_, value, problem in found(path, domain)}
    odd = {cell: problem for cell, problem in cells.items() if problem is not None}
    assert kinds == odd | ({"few": Problem.NUMBER} if together else {})
    assert not any(problem.refused for problem in odd.values())


@pytest.mark.long
@pytest.mark.parametrize("domain", [CLASSES, NUMBERS], ids=["classes", "number"])
def test_check_and_fit_refuse_the_same_tables(domain, tmp_path):
    """Over random tables: a problem is found exactly where the first pass of a fit refuses the table."""
    plan = expost.calibrate(
        loss="logistic" if domain is CLASSES else "pseudo_huber", norm=domain.row_norm, fit_intercept=True
    )
    cells = [
        st.sampled_from([good, *BAD[name], *FINE.get(name, [])])
        for name, good in zip(NAMES, GOOD, strict=True)
    ]
    mostly = [st.one_of(*[st.just(good)] * 7, cell) for good, cell in zip(GOOD, cells, strict=True)]
    if domain is NUMBERS:
        mostly[-1] = st.sampled_from(["3", "4.5", "12", "3", "4", "5", "6", "", "x", "inf"])

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.tuples(*mostly), min_size=1, max_size=3))
    def agree(rows):
        path = write(tmp_path / "t.csv", rows)
        try:
            encode_records(path, None, Declared.of(plan, classes=domain.classes, domain=domain)).checked_for(
                plan.loss, 1.0
            )
            refused = False
        except ExpostError:
            refused = True
        kinds = {problem for *_, problem in found(path, domain)}
        # The mark for bytes that are no text is itself a text; a fit refuses it as a number all the same.
        assert any(kind.refused for kind in kinds) == refused

    agree()


def test_lines_that_cannot_be_read_keep_the_numbers_of_the_others(tmp_path, monkeypatch):
    """Records are counted through lines with too many cells, wherever blocks of the file end."""
    monkeypatch.setattr("expost.data.file_blocks.CSV_BYTES", 256)
    rows = [[str(20 + k % 50), *GOOD[1:]] for k in range(400)]
    for k in range(0, 400, 37):
        rows[k] = [*GOOD, "too much"]
    for k in range(5, 400, 41):
        rows[k][0] = f"bad {k + 1}"
    rows[77] = ["", *GOOD[1:2], '"north\nsouth"', *GOOD[3:]]
    told = found(write(tmp_path / "t.csv", rows))
    uneven = [record for record, column, _, problem in told if problem is Problem.UNEVEN and column == LINE]
    assert uneven == [k + 1 for k in range(0, 400, 37)]
    numbers = {(record, value) for record, _, value, problem in told if problem is Problem.NUMBER}
    assert numbers == {(k + 1, f"bad {k + 1}") for k in range(5, 400, 41) if k % 37}
    assert (78, "age", "", Problem.MISSING) in told


def test_several_files_of_both_kinds_and_columns_that_lack(tmp_path):
    for name, cell in (("a", "40"), ("b", "old")):
        columns = {one: [cell if one == "age" else good] for one, good in zip(NAMES, GOOD, strict=True)}
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    assert found(str(tmp_path / "*.parquet")) == [(1, "age", "old", Problem.NUMBER)]
    short = write(tmp_path / "t.csv", [row[1:-1] for row in [GOOD]], NAMES[1:-1])
    assert found(short) == [(0, "age", "", Problem.LACKING), (0, "ill", "", Problem.LACKING)]
    assert found(write(tmp_path / "e.csv", [])) == [(0, LINE, "", Problem.EMPTY)]


def test_files_with_other_types_or_without_identifiers_are_told(tmp_path):
    """A fit refuses files of different types, even where every text spells a number."""
    for name, age in (("a", [40]), ("b", ["41"]), ("c", ["old"])):
        columns = {one: [good] for one, good in zip(NAMES, GOOD, strict=True)} | {"age": age}
        if name == "a":
            columns["who"] = ["p1"]
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    told = found(str(tmp_path / "[ab].parquet"))
    assert told == [(0, "age", "", Problem.MIXED)]
    table = expost.scan(str(tmp_path / "*.parquet"))
    last = [
        one
        for one in find_problems(table, (*FEATURES, CLASSES.label), identifier="who")
        if one.problem is Problem.NUMBER
    ]
    assert [(one.file, list(one.ids)) for one in last] == [("c.parquet", [""])]


def test_bytes_of_another_encoding_are_found_cell_by_cell(tmp_path):
    buffer = io.StringIO()
    csv.writer(buffer).writerows([NAMES, GOOD, ["40", "70", "nörth", *GOOD[3:]], ["x", *GOOD[1:]]])
    (tmp_path / "t.csv").write_bytes(buffer.getvalue().encode("cp1252"))
    assert found(tmp_path / "t.csv") == [
        (3, "age", "x", Problem.NUMBER),
        (2, "ward", "n\ufffdrth", Problem.ENCODING),
    ]
    declared = CLASSES.model_copy(update={"table": Dialect(encoding="cp1252")})
    assert (2, "ward", "nörth", Problem.UNDECLARED) in found(tmp_path / "t.csv", declared)


def test_weights_are_checked_as_a_fit_does(tmp_path):
    rows = [[*GOOD, weight] for weight in ("1", "0", "2.5", "", "-1", "heavy")]
    path = write(tmp_path / "t.csv", rows, [*NAMES, "w"])
    told = found(path, weight="w", max_weight=2.0)
    assert [(record, value) for record, _, value, problem in told if problem is Problem.WEIGHT] == [
        (3, "2.5"), (4, ""), (5, "-1"), (6, "heavy"),
    ]  # fmt: skip
    assert Weighting.declared(2.0, None, of_records=True).largest == 2.0


def test_a_quote_that_is_never_closed_is_told(tmp_path):
    (tmp_path / "t.csv").write_text(",".join(NAMES) + "\n" + ",".join(GOOD) + '\n"40,' + "x\n" * 900_000)
    assert Problem.BROKEN in {problem for *_, problem in found(tmp_path / "t.csv")}


def test_a_table_that_ends_with_its_names_has_no_records(tmp_path):
    (tmp_path / "t.csv").write_text(",".join(NAMES) + "\n")
    assert [problem for *_, problem in found(tmp_path / "t.csv")] == [Problem.EMPTY]
    (tmp_path / "t.csv").write_text(",".join(NAMES))  # without the end of a line
    assert [problem for *_, problem in found(tmp_path / "t.csv")] == [Problem.EMPTY]
    empty = pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in NAMES})
    pyarrow.parquet.write_table(empty, tmp_path / "t.parquet")
    assert [problem for *_, problem in found(tmp_path / "t.parquet")] == [Problem.EMPTY]


def test_what_follows_a_broken_piece_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("expost.data.files._PART_ROWS", 10)
    whole = pyarrow.table({name: [*[cell] * 29, "?"] for name, cell in zip(NAMES, GOOD, strict=True)})
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(whole, path, row_group_size=10, use_dictionary=False, compression="none")
    told = {(record, problem) for record, _, _, problem in found(path)}
    assert (30, Problem.WORD) in told
    second = pyarrow.parquet.read_metadata(path).row_group(1).column(0)
    content = bytearray(path.read_bytes())
    start, length = second.data_page_offset, second.total_compressed_size
    content[start : start + length] = b"\xff" * length
    path.write_bytes(content)
    assert [(record, problem) for record, _, _, problem in found(path)] == [(0, Problem.BROKEN)]


def test_memory_that_runs_out_is_no_broken_file(tmp_path, monkeypatch):
    def runs(*arguments, **options):
        raise MemoryError
        yield

    path = write(tmp_path / "t.csv", [GOOD])
    monkeypatch.setattr("expost.data.files.read_csv", runs)
    with pytest.raises(MemoryError):
        found(path)


def test_a_whole_block_of_lines_that_cannot_be_read_is_counted_too(tmp_path, monkeypatch):
    monkeypatch.setattr("expost.data.file_blocks.CSV_BYTES", 256)
    rows = [[*GOOD, "too much"] for _ in range(60)]
    told = found(write(tmp_path / "t.csv", [GOOD, *rows, ["old", *GOOD[1:]]]))
    assert [record for record, column, *_ in told if column == LINE] == list(range(2, 62))
    assert (62, "age", "old", Problem.NUMBER) in told


def test_a_file_without_any_declared_column_lacks_them_all(tmp_path):
    write(tmp_path / "a.csv", [GOOD])
    write(tmp_path / "b.csv", [["1"]], ["other"])
    told = found(tmp_path / "*.csv")
    assert told == [(0, name, "", Problem.LACKING) for name in NAMES]


def test_weights_that_are_fine_are_no_problem(tmp_path):
    path = write(tmp_path / "t.csv", [[*GOOD, "2"]], [*NAMES, "w"])
    assert found(path, weight="w", max_weight=2.0) == []
