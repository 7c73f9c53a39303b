"""What the third round of attacks and new users found, item by item; each test is one line of the list.

Doors:    6 a quote that is not closed   10 bombs
Experts:  15 domains that are checked and saved in Python
"""

import csv
import datetime
import io
import json
import os
import random
import subprocess
import sys
import time

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import csv as arrow_csv, parquet
from ward import DOMAIN, refused, run

import expost
from expost import (
    Category,
    ClassLabel,
    Contact,
    Date,
    Dialect,
    Domain,
    Number,
    NumberLabel,
    PublicationTexts,
    YesNo,
)
from expost.data.check import find_problems
from expost.data.encoding import encode_records
from expost.data.file_blocks import read_csv
from expost.data.refusals import PLACEHOLDER
from expost.data.weights import Declared
from expost.exceptions import DomainError, ExpostError, FileError, ParameterError

WARD = """
[[features]]
name = "age"
kind = "number"
low = 0
high = 120

[[features]]
name = "ward"
kind = "category"
categories = ["north", "south"]

[label]
name = "ill"
kind = "classes"
classes = ["no", "yes"]
"""


def unclosed(path, size, line, column, *, delimiter=",", quoted=False):
    """A table of about so many bytes with one quote that is not closed, in a line and a column."""
    around = '"{}"'.format if quoted else "{}".format
    rows = [
        [around(cell) for cell in (k % 100, "north", "yes" if k % 2 else "no")] for k in range(size // 14)
    ]
    rows[line - 2][column] = f'"{rows[line - 2][column].strip(chr(34))}'
    lines = [delimiter.join(row) for row in [["age", "ward", "ill"], *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-16" if "16" in path.stem else "utf-8")
    return path


def domain_file(folder, text=WARD, **dialect):
    lines = [f"table.{name} = {json.dumps(value)}\n" for name, value in dialect.items()]
    (folder / "domain.toml").write_text("".join(lines) + text)
    return folder / "domain.toml"


# 6 A quote that is not closed


SLOW = """
import codecs, sys, time
class Decoder(codecs.getincrementaldecoder("latin-1")):
    calls = 0
    def decode(self, raw, final=False):
        Decoder.calls += 1
        time.sleep(0.3 * (Decoder.calls > 1))
        return super().decode(raw, final)
latin = codecs.lookup("latin-1")
codecs.register(lambda name: codecs.CodecInfo(latin.encode, latin.decode, incrementaldecoder=Decoder,
    incrementalencoder=latin.incrementalencoder, streamreader=latin.streamreader,
    streamwriter=latin.streamwriter, name=name) if name == "slow" else None)
from expost.__main__ import main
sys.argv = ["expost", *sys.argv[1:]]
main()
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["check"], id="check", marks=pytest.mark.slow),
        pytest.param(["fit", "-o", "p.json"], id="fit"),
    ],
)
def test_06a_no_thread_of_arrows_outlives_the_file_that_it_reads(command, tmp_path):
    """A disk that takes its time: the interpreter ended while Arrow's thread was in Python, and aborted."""
    unclosed(tmp_path / "t.csv", 3_000_000, 2, 0)
    name, *options = command
    done = subprocess.run(
        [sys.executable, "-c", SLOW, name, domain_file(tmp_path, encoding="slow"), "t.csv", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "'t.csv' is not valid CSV: in line 2 a quote is opened that is not closed." in done.stderr
    assert "Fatal" not in done.stderr


@pytest.mark.parametrize(
    ("size", "column", "share"), grid([160_000, 3_000_000], range(3), [0.0, 0.5, 1.0], together=1)
)
def test_06b_the_answer_has_the_line_of_the_quote(size, column, share, tmp_path):
    line = 2 + round(share * (size // 14 - 2))
    path = unclosed(tmp_path / "t.csv", size, line, column)
    words = f"'t.csv' is not valid CSV: in line {line} a quote is opened that is not closed. Close it"
    assert refused(run("fit", domain_file(tmp_path), path, "-o", tmp_path / "p.json"), words)
    checked = run("check", domain_file(tmp_path), path, "--problems", tmp_path / "private.csv")
    assert refused(checked, words)
    rows = list(csv.reader(io.StringIO((tmp_path / "private.csv").read_text())))
    assert rows[1][2:4] == ["(line)", "the file cannot be read to its end"]
    assert f"in line {line} " in rows[1][4]


@pytest.mark.parametrize(
    ("name", "delimiter", "encoding"), [("t16", ";", "utf-16"), ("t", "\t", "utf-8"), ("t", "|", "cp1252")]
)
def test_06c_in_every_dialect(name, delimiter, encoding, tmp_path):
    path = unclosed(tmp_path / f"{name}.csv", 160_000, 1234, 1, delimiter=delimiter)
    domain = domain_file(tmp_path, delimiter=delimiter, encoding=encoding)
    for command in (["check"], ["fit", "-o", tmp_path / "p.json"]):
        done = run(command[0], domain, path, *command[1:])
        assert refused(done, "in line 1234 a quote is opened that is not closed")


@pytest.mark.long
@pytest.mark.parametrize("size", [160_000, 3_000_000])
def test_06d_where_other_cells_are_quoted_it_is_the_first_that_is_wrong(size, tmp_path):
    """Its cell ends at the next quote, and from there on inside and outside are exchanged."""
    path = unclosed(tmp_path / "t.csv", size, 2000, 2, quoted=True)
    words = "in line 2000 a quote is opened that is not closed"
    assert refused(run("check", domain_file(tmp_path), path), words)
    assert refused(run("fit", domain_file(tmp_path), path, "-o", tmp_path / "p.json"), words)


def test_06e_records_after_it_are_never_lost_without_a_word(tmp_path):
    """In a column that is not used, all that follows the quote was one cell, and nobody was told."""
    rows = [f"{k % 90},north,{'yes' if k % 2 else 'no'},fine" for k in range(300)]
    rows[100] = rows[100].replace("fine", '"fine')
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["age,ward,ill,note", *rows]) + "\n")
    words = "in line 102 a quote is opened that is not closed"
    assert refused(run("fit", domain_file(tmp_path), path, "-o", tmp_path / "p.json"), words)
    assert refused(run("check", domain_file(tmp_path), path), words)


def test_06f_every_command_that_reads_a_table_tells_the_line(tmp_path):
    good = tmp_path / "good.csv"
    rows = [f"{k % 90},north,{'yes' if k % 2 else 'no'}" for k in range(300)]
    good.write_text("\n".join(["age,ward,ill", *rows]) + "\n")
    publication = tmp_path / "p.json"
    assert run("fit", domain_file(tmp_path), good, "-o", publication).exit_code == 0
    bad = unclosed(tmp_path / "bad.csv", 160_000, 77, 1)
    for name in ("losses", "bounds", "predict"):
        done = run(name, publication, bad, "-o", tmp_path / f"private-{name}.csv")
        assert refused(done, "in line 77 a quote is opened that is not closed")
    bad.write_text('age,"ward,ill\n1,north,no\n' * 9)
    assert refused(run("init", bad), "in line 1 a quote is opened that is not closed")


def test_06g_a_line_that_has_no_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("expost.data.file_blocks.LONGEST_RECORD", 1 << 20)
    path = tmp_path / "t.csv"
    path.write_text("age,ward,ill\n1,north,no\n" + "1" * (3 << 20))
    assert refused(run("check", domain_file(tmp_path), path), "it has a line of more than 1 MiB")


@pytest.mark.parametrize("examples", [60, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("delimiter", [",", ";", "^", "-", " "])
def test_06h_blocks_end_where_arrow_ends_records(delimiter, examples, tmp_path, monkeypatch):
    """Whatever quotes a file has, and wherever blocks end: the same cells as Arrow reads from all of it."""
    monkeypatch.setattr("expost.data.file_blocks.CSV_BYTES", 5)
    dialect = Dialect(delimiter=delimiter)
    path = tmp_path / "t.csv"

    @settings(
        max_examples=examples, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
    )
    @given(st.text(alphabet=["a", '"', '"', delimiter, "\n", "\r", "é"], max_size=40))
    def agree(text):
        content = f"x{delimiter}y\n{text}\n".encode()
        path.write_bytes(content)
        left_out = []
        whole = arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                invalid_row_handler=lambda row: left_out.append(row.number - 1) or "skip",
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types={"x": pa.string(), "y": pa.string()}, strings_can_be_null=False
            ),
        )
        records, places, before, refusal = [], [], 0, None
        try:
            for batch, uneven, _ in read_csv(path, dialect, ["x", "y"], lenient=True):
                records += batch.to_pylist()
                places += [before + place for place, _ in uneven]
                before += len(batch) + len(uneven)
        except FileError as error:
            refusal = str(error)
        if refusal is None:
            assert records == whole.to_pylist()
            assert places == left_out
        else:
            assert "a quote is opened that is not closed" in refusal
            assert records == whole.to_pylist()[: len(records)]

    agree()


@pytest.mark.slow
@pytest.mark.parametrize("size", [160_000, 3_000_000])
def test_06i_no_run_of_fifty_aborts_or_hangs(size, tmp_path):
    path = unclosed(tmp_path / "t.csv", size, 2, 0)
    domain = domain_file(tmp_path)
    for _ in range(50):
        done = subprocess.run(
            [sys.executable, "-m", "expost", "check", domain, path],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert "in line 2 a quote is opened that is not closed" in done.stderr


# 10 Bombs


MEASURED = """
import sys
from expost.__main__ import main
sys.argv = ["expost", *sys.argv[1:]]
try:
    main()
finally:
    lines = open("/proc/self/status").read().splitlines()
    print(next(line for line in lines if line.startswith("VmHWM")), file=sys.stderr)
"""


def peak(folder, *arguments):
    """What a command said, and the most memory that it had."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    *said, last = done.stderr.strip().splitlines()
    assert "Traceback" not in done.stderr
    return done.returncode, " ".join(said), int(last.split()[1]) * 1024


def write(path, ward, rows, **options):
    table = pa.table({"age": np.zeros(rows), "ward": ward, "ill": pa.array(["no"] * rows)})
    parquet.write_table(table, path, row_group_size=rows, compression="zstd", **options)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux counts it")
@pytest.mark.parametrize(
    "bomb",
    ["repeated", *(pytest.param(bomb, marks=pytest.mark.slow) for bomb in ("prefixes", "page", "nested"))],
)
def test_10a_a_small_parquet_file_takes_little_memory(bomb, tmp_path):
    """Each stands for a gigabyte or more."""
    path = tmp_path / "t.parquet"
    if bomb == "repeated":
        places = pa.array(np.zeros(300_000, dtype=np.int32))
        write(
            path, pa.DictionaryArray.from_arrays(places, pa.array(["x" * 4000])), 300_000, store_schema=False
        )
    elif bomb == "prefixes":  # each text is the one before it and a letter more
        growing = pa.array(["z" * k for k in range(48_000)], pa.large_string())
        encodings = {"ward": "DELTA_BYTE_ARRAY", "age": "PLAIN", "ill": "PLAIN"}
        write(path, growing, 48_000, use_dictionary=False, column_encoding=encodings, store_schema=False)
        assert path.stat().st_size < 1500
    elif bomb == "page":
        long = pa.array(["y" * (1 << 20)] * 1000, pa.large_string())
        write(path, long, 1000, use_dictionary=False, data_page_size=1 << 30, store_schema=False)
    else:
        offsets = pa.array(np.arange(20_001, dtype=np.int64) * 10_000)
        inner = pa.array(np.zeros(200_000_000, dtype=np.int8))
        write(path, pa.LargeListArray.from_arrays(offsets, inner), 20_000)
    assert path.stat().st_size < 500_000
    for command in (["check"], ["fit", "-o", "p.json"]):
        name, *options = command
        code, said, memory = peak(tmp_path, name, domain_file(tmp_path), path, *options)
        assert code == 1
        assert "expost: " in said
        assert memory < 7e8


@pytest.mark.long
def test_10b_a_damaged_parquet_file_is_one_sentence(tmp_path):
    """Bytes are changed at random, with a seed: what is not noticed is read, and all else is refused."""
    domain = Domain.from_toml(WARD)
    plan = expost.calibrate(loss="logistic", norm=domain.row_norm, fit_intercept=True)
    parts = (*domain.features, domain.label)
    table = {"age": np.arange(200) % 90 * 1.0, "ward": ["north", "söuth"] * 100, "ill": ["no", "yes"] * 100}
    files = []
    for packing, shared in (("none", True), ("none", False), ("zstd", False)):
        buffer = io.BytesIO()
        parquet.write_table(
            pa.table(table), buffer, compression=packing, use_dictionary=shared, row_group_size=100
        )
        files.append(buffer.getvalue())
    rng = random.Random(27)
    path = tmp_path / "t.parquet"
    told = set()

    def fit():
        encode_records(path, None, Declared.of(plan, classes=domain.classes, domain=domain)).checked_for(
            plan.loss, 1.0
        )

    def check():
        list(find_problems(expost.scan(path), parts))

    for _ in range(300):
        content = bytearray(rng.choice(files))
        for _ in range(rng.choice([1, 2, 4])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content[: rng.choice([len(content)] * 9 + [rng.randrange(len(content))])])
        for use in (fit, check):
            try:
                use()
            except (ExpostError, MemoryError) as error:
                told.add(type(error))
    assert FileError in told


def test_10b_bytes_that_are_no_text_are_one_sentence(tmp_path):
    wrong = pa.Array.from_buffers(pa.string(), 4, pa.array([b"\xff\xfe"] * 4, pa.binary()).buffers())
    write(tmp_path / "t.parquet", wrong, 4)
    words = "'t.parquet' is not valid Parquet; save it again as Parquet or CSV."
    assert refused(run("check", domain_file(tmp_path), tmp_path / "t.parquet"), words)
    done = run("fit", domain_file(tmp_path), tmp_path / "t.parquet", "-o", tmp_path / "p.json")
    assert refused(done, words)
    frame = pa.table({"age": [1.0] * 4, "ward": wrong, "ill": ["no", "yes"] * 2})
    with pytest.raises(DomainError):
        expost.LogisticRegression(domain=Domain.from_toml(WARD)).fit(frame)


@pytest.mark.parametrize("digits", [400, 4000, 5000, 100_000])
def test_10c_numbers_of_many_digits_are_one_sentence(digits, tmp_path):
    number = "9" * digits
    text = DOMAIN.replace("high = 100", f"high = {number}", 1)
    assert text != DOMAIN
    assert refused(run("plan", domain_file(tmp_path, text)), "the domain file ")
    assert refused(run("plan", domain_file(tmp_path, DOMAIN), "--epsilon", number), "`epsilon` must be")
    sys.set_int_max_str_digits(0)
    try:
        long = int(number)
    finally:
        sys.set_int_max_str_digits(4300)
    with pytest.raises(DomainError, match="too many digits"):
        Number(name="age", low=0, high=long)
    with pytest.raises(ParameterError, match="too many digits"):
        expost.calibrate(loss="logistic", norm=long)
    with pytest.raises(expost.exceptions.PublicationError, match="more than 40"):
        expost.Publication.from_json('{"epsilon": ' + number + "}")


def wide(folder, columns, name="c"):
    names = [f"{name}{k}" for k in range(columns)]
    folder.joinpath("wide.csv").write_text(f"{','.join(names)}\n{','.join(['1'] * columns)}\n")
    return folder / "wide.csv", names


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


@pytest.mark.long
@pytest.mark.parametrize("what", ["names", "skeleton", "domain", "lacking"])
def test_10d_the_work_for_names_grows_with_their_number(what, tmp_path):
    """Eight times as many columns take about eight times as long; the square of eight is 64.

    The best of three: others work on the machine too.
    """

    def work(columns):
        path, names = wide(tmp_path, columns)
        numbers = tuple(Number(name=f"d{k}", low=0, high=1) for k in range(columns))
        label = ClassLabel(name="y", classes=("no", "yes"))
        domain = tmp_path / "wide.toml"
        if what == "lacking":
            Domain(features=numbers, label=label).save(domain, overwrite=True)
        return {
            "names": lambda: expost.scan(path),
            "skeleton": lambda: run("init", path),
            "domain": lambda: Domain(features=numbers, label=label, ignore=tuple(names)),
            "lacking": lambda: run("check", domain, path),
        }[what]

    small = 2500 if what != "lacking" else 500
    once = work(small)
    once()
    few = min(seconds(once) for _ in range(3))
    many = work(8 * small)
    assert any(seconds(many) < 24 * few + 0.2 for _ in range(3))


# 15 Domains in Python


BAD = pd.DataFrame(
    {"who": ["p1", "p2", "p3"], "age": ["40", "forty", "130"], "ward": ["north", "North", "south"],
     "ill": ["no", "yes", "maybe"], "w": [1, 9, 2]}
)  # fmt: skip


def rows_of(frame):
    return [tuple(row) for row in nw.from_native(frame, eager_only=True).rows()]


def written(path):
    with open(path, newline="") as file:
        names, *rows = csv.reader(file)
    place = names.index("record")
    return names, [tuple(int(c or 0) if k == place else c for k, c in enumerate(row)) for row in rows]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("of", ["frame", "mapping", "csv", "parquet", "dask"])
def test_15a_check_gives_the_list_that_the_command_writes(library, of, tmp_path):
    domain = Domain.from_toml(WARD)
    path = tmp_path / ("t.parquet" if of == "parquet" else "t.csv")
    BAD.to_parquet(path) if of == "parquet" else BAD.to_csv(path, index=False)
    if of == "frame":
        table = nw.from_native(BAD).to_polars() if library == "polars" else BAD
        table = pa.table(BAD) if library == "pyarrow" else table
    elif of == "mapping":
        table = BAD.to_dict("list")
    elif of == "dask":
        table = pytest.importorskip("dask.dataframe").from_pandas(BAD, npartitions=1)
    else:
        table = path
    given = {} if of == "frame" else {"library": library}
    found = domain.check(table, identifier="who", sample_weight="w", max_weight=3.0, **given)
    assert isinstance(found, {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[library])
    private = tmp_path / "private.csv"
    done = run("check", domain_file(tmp_path), path, "--problems", private, "--id", "who", "--weight", "w",
               "--max-weight", 3)  # fmt: skip
    assert done.exit_code == 1
    names, rows = written(private)
    assert nw.from_native(found, eager_only=True).columns == names
    plain = [("" if of not in ("csv", "parquet") else row[0], *row[1:]) for row in rows]
    assert sorted(rows_of(found)) == sorted(plain)
    assert len(rows) == 5


def test_15b_a_table_that_fits_has_no_rows_and_one_that_lacks_columns_says_which():
    domain = Domain.from_toml(WARD)
    good = pd.DataFrame({"age": [40.0], "ward": ["north"], "ill": ["no"]}, index=["a"])
    assert len(domain.check(good)) == 0
    assert rows_of(domain.check(good.drop(columns="age"))) == [
        ("", 0, "age", "the table has no such column", "")
    ]
    assert rows_of(domain.check(good.head(0))) == [("", 0, "(line)", "the table has no records", "")]
    gone = good.assign(age=[np.nan])
    assert rows_of(domain.check(gone)) == [("", 1, "age", "missing, without a default", "")]
    with pytest.raises(DomainError, match="lacks the column 'who' that `identifier` names"):
        domain.check(good, identifier="who")
    with pytest.raises(DomainError, match="must be files, a data frame"):
        domain.check(np.zeros((2, 2)))
    with pytest.raises(DomainError, match="must have one length"):
        domain.check({"age": [1.0], "ward": ["north", "south"], "ill": ["no"]})


# A file that still says what is to be filled in is refused, whoever wrote it.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda text: text != PLACEHOLDER
)
LINE = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=12)
FINITE = st.floats(-1e300, 1e300)
DAYS = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))


def some(**optional):
    """Any of these, or none."""
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def parts(draw, kind, name):
    texts = draw(some(title=LINE, question=LINE, help=LINE, group=LINE))
    if kind in (Number, NumberLabel, Date):
        values = DAYS if kind is Date else FINITE
        low, high = sorted(draw(st.lists(values, min_size=2, max_size=2, unique=True)))
        ends = st.sampled_from([low, high])
        chosen = draw(some(missing=ends, scale=st.just("unit")) if kind is Number else some())
        chosen |= draw(some(missing=ends)) if kind is Date else {}
        chosen |= draw(some(unit=st.just("mg/dL"), example=st.sampled_from([low, high])))
        if kind is Date:
            chosen.pop("unit", None)
        elif "unit" in chosen:
            chosen["units"] = draw(st.dictionaries(LINE, st.floats(1e-9, 1e9), max_size=3))
            chosen["units"].pop("mg/dL", None)
        return kind(name=name, low=low, high=high, **chosen, **texts)
    if kind is YesNo:
        return kind(name=name, **draw(some(missing=st.booleans(), example=st.booleans())), **texts)
    values = tuple(draw(st.lists(TEXT, min_size=2, max_size=5, unique=True)))
    titles = tuple(f"t{k}" for k in range(len(values)))
    chosen = draw(some(titles=st.just(titles), example=st.sampled_from(values)))
    if kind is ClassLabel:
        return kind(name=name, classes=values, **chosen, **texts)
    return kind(
        name=name, categories=values, **draw(some(missing=st.sampled_from(values))), **chosen, **texts
    )


@st.composite
def domains(draw):
    names = draw(st.lists(TEXT, min_size=6, max_size=6, unique_by=lambda name: name.strip().casefold()))
    kinds = draw(st.lists(st.sampled_from([Number, Category, YesNo, Date]), min_size=1, max_size=4))
    dialect = some(delimiter=st.sampled_from(";\t|"), decimal=st.just(","), encoding=st.just("cp1252"),
                   missing_words=st.lists(TEXT, max_size=3), dates=st.just("DD.MM.YYYY"))  # fmt: skip
    contact = st.builds(Contact, phone=LINE, email=st.none() | st.just("a@b.example"))
    words = some(title=LINE, publisher=LINE, contact=contact, purpose=LINE, population=LINE, reply=LINE,
                 opt_out=st.booleans(), date=DAYS.map(str))  # fmt: skip
    return Domain(
        features=tuple(draw(parts(kind, name)) for kind, name in zip(kinds, names, strict=False)),
        label=draw(st.one_of(parts(ClassLabel, names[4]), parts(NumberLabel, names[4]))),
        table=Dialect(**draw(dialect)),
        **draw(some(norm=st.floats(1e-3, 1e3), ignore=st.just((names[5],)),
                    publication=words.map(lambda given: PublicationTexts(**given)))),
    )  # fmt: skip


@pytest.mark.long
@settings(max_examples=50, suppress_health_check=list(HealthCheck), deadline=None)
@given(domains())
def test_15c_a_domain_is_saved_and_read_back(tmp_path_factory, domain):
    path = tmp_path_factory.mktemp("saved") / "domain.toml"
    domain.save(path)
    assert Domain.load(path) == domain


def test_15d_a_file_that_exists_is_replaced_only_on_demand(tmp_path):
    path = tmp_path / "domain.toml"
    path.write_text("# mine\n")
    domain = Domain.from_toml(WARD)
    with pytest.raises(FileError, match=r"exists.*`--force` \(in Python `overwrite=True`\)"):
        domain.save(path)
    assert path.read_text() == "# mine\n"
    domain.save(path, overwrite=True)
    assert Domain.load(path) == domain
    assert os.listdir(tmp_path) == ["domain.toml"]


LABEL = ClassLabel(name="y", classes=("no", "yes"))
AGE = Number(name="age", low=0, high=120)
WRONG = {
    "`age` must have low < high.": lambda: Number(name="age", low=5, high=1),
    "`name` is missing.": lambda: Number(low=0, high=1),
    "`low` must be a number, such as 120.0; got '0'.": lambda: Number(name="age", low="0", high=1),
    "`high` must be a finite number; got nan.": lambda: NumberLabel(name="y", low=0, high=float("nan")),
    "`hepl` is no key of a domain file (perhaps `help` is meant).": lambda: YesNo(name="s", hepl="x"),
    "`categories` must have 2 entries or more.": lambda: Category(name="w", categories=("a",)),
    "`y` must have two or more different classes.": lambda: ClassLabel(name="y", classes=("a", "a")),
    "`low` must be a date, such as": lambda: Date(name="d", low="soon", high="2000-01-01"),
    "`d` must have low < high.": lambda: Date(name="d", low="2000-01-01", high="1999-01-01"),
    "`features` must have 1 entries or more.": lambda: Domain(features=(), label=LABEL),
    "features and label must have different names.": lambda: Domain(features=(AGE, AGE), label=LABEL),
    "feature number 2 must be a part with keys": lambda: Domain(features=(AGE, "x"), label=LABEL),
    "`norm` must be above 0; got -1.0.": lambda: Domain(features=(AGE,), label=LABEL, norm=-1.0),
    "`delimiter` must be one ASCII character": lambda: Dialect(delimiter="ab"),
    "`contact` must have `email`, `phone` or `address`.": lambda: Contact(),
    "`title` must be one line of plain text": lambda: PublicationTexts(title=" x"),
}


@pytest.mark.parametrize("words", WRONG)
def test_15e_constructors_raise_one_sentence_of_ours(words):
    with pytest.raises(DomainError) as refusal:
        WRONG[words]()
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert "pydantic" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None


def test_15f_frames_that_cannot_be_checked_get_a_sentence():
    domain = Domain(features=(AGE,), label=LABEL)
    wrong = {
        "must have different names": pd.DataFrame([[1, 2, "no"]], columns=["age", "age", "y"]),
        "must be named by texts": pd.DataFrame(np.zeros((2, 2))),
        r"Call collect\(\) first": pl.DataFrame({"age": [1.0], "y": ["no"]}).lazy(),
    }
    for sentence, frame in wrong.items():
        with pytest.raises(DomainError, match=sentence):
            domain.check(frame)
    nested = pl.DataFrame({"age": [[1.0]], "y": ["no"]})
    assert rows_of(domain.check(nested))[0][2:4] == ("age", "a type that cannot be read")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_15g_a_list_without_problems_has_columns_of_texts(library):
    domain = Domain(features=(AGE,), label=LABEL)
    good, bad = ({"age": [40.0], "y": [label]} for label in ("no", "maybe"))
    empty, full = (domain.check(table, library=library) for table in (good, bad))
    assert len(empty) == 0
    if library == "pandas":  # whose older versions know texts by their cells alone
        assert list(empty.dtypes) == list(full.dtypes)
    else:
        assert empty.schema == full.schema
