"""Every error is one sentence that says nothing about the table, and leaves no partial file."""

import json

import pandas as pd
import pytest
from ward import DOMAIN, NAMES, fail_to_write, patients, refused, run, ward, write_csv

SECRET = "hush17"


def changed(column, value):
    rows = patients(5)
    rows[3][NAMES.index(column)] = value
    return rows


BAD_TABLES = {
    "no rows": (NAMES, [], "at least one row"),
    "a column is missing": (NAMES[1:], [row[1:] for row in patients(5)], "lacks the column 'age'"),
    "the outcome is missing": (NAMES[:-1], [row[:-1] for row in patients(5)], "lacks the column 'ill'"),
    "text for a number": (NAMES, changed("age", SECRET), "`age` must be a number in every record"),
    "NaN": (NAMES, changed("age", "nan"), "`age` is missing in a record"),
    "an empty cell": (NAMES, changed("age", ""), "`age` is missing in a record"),
    "infinity": (NAMES, changed("age", "-inf"), "`age` must be finite"),
    "an unknown category": (NAMES, changed("ward", SECRET), "`ward` has a category that was never declared"),
    "neither yes nor no": (NAMES, changed("smoker", SECRET), "`smoker` must be yes or no"),
    "an unknown class": (NAMES, changed("ill", SECRET), "outside the declared classes {'no', 'yes'}"),
    "an empty label": (NAMES, changed("ill", ""), "`ill`: the outcome is missing in a record"),
    "a short line": (NAMES, [*patients(5), [SECRET]], "as many cells"),
    "a long line": (NAMES, [*patients(5), [SECRET] * 5], "as many cells"),
    "only long lines": (NAMES, [[SECRET] * 5] * 3, "as many cells"),
    "a name twice": (["age", "age", "smoker", "ill"], patients(5), "different names"),
    "a nameless column": (["age", "", "smoker", "ill"], patients(5), "none of them empty"),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
@pytest.mark.parametrize("command", ["fit", "losses", "bounds"])
def test_a_bad_table_is_refused_without_quoting_it(kind, command, tmp_path):
    domain, table = ward(tmp_path)
    publication = tmp_path / "p.json"
    if command != "fit":
        assert run("fit", domain, table, "-o", publication).exit_code == 0
    before = sorted(tmp_path.iterdir())
    names, rows, words = BAD_TABLES[kind]
    write_csv(table, rows, names)
    arguments = {
        "fit": ("fit", domain, table, "-o", publication, "--losses", tmp_path / "private.csv"),
        "losses": ("losses", publication, table, "-o", tmp_path / "private.csv"),
        "bounds": ("bounds", publication, table),
    }
    result = run(*arguments[command])
    assert refused(result, words)
    assert SECRET not in result.output
    said = result.stderr.replace(str(tmp_path), "")
    assert not any(figure in said for figure in ("3", "4", "5", "6"))  # no row, no count
    if command == "fit" and "names" not in words and "empty" not in words:
        assert f"expost check {domain} {table} --problems private-problems.csv" in result.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must name the columns; it is empty"),
        (b"age,ward,smoker,ill\n\xff\xfe,north,yes,no\n", "not valid CSV in UTF-8"),
        (b'age,ward,smoker,ill\n"' + SECRET.encode() + b",north,yes,no\n", "not valid CSV"),
        (b'age,ward,smoker,ill\n"' + SECRET.encode() + b'" x,north,yes,no\n', "must be a number"),
    ],
)
def test_files_that_are_not_tables_are_refused(content, words, tmp_path):
    domain, table = ward(tmp_path)
    table.write_bytes(content)
    result = run("fit", domain, table, "-o", tmp_path / "p.json")
    assert refused(result, words)
    assert SECRET not in result.output
    (tmp_path / "table.parquet").write_bytes(content)
    assert refused(run("init", tmp_path / "table.parquet"), "not valid Parquet")
    assert refused(run("init", domain), "must be a .csv or .parquet file")


@pytest.mark.parametrize("kind", ["one row", "reordered and among others"])
def test_unusual_tables_are_fitted(kind, tmp_path):
    domain, table = ward(tmp_path, patients(1) if kind == "one row" else None)
    if kind != "one row":
        pd.read_csv(table)[NAMES[::-1]].assign(extra=SECRET).to_csv(table, index=False)
    result = run("fit", domain, table, "-o", tmp_path / "p.json")
    assert result.exit_code == 0, result.output
    assert SECRET not in (tmp_path / "p.json").read_text()
    assert run("losses", tmp_path / "p.json", table).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon", "0"], "`epsilon` must be"),
        (["--epsilon", "-1"], "`epsilon` must be"),
        (["--epsilon", "inf"], "`epsilon` must be"),
        (["--delta", "1"], "`delta` must be"),
        (["--delta", "0"], "`delta` must be"),
        (["--l2", "0"], "`l2` must be"),
        (["--l2", "-3"], "`l2` must be"),
        (["--l2", "1e-9"], "this certificate has no noise scale"),
        (["--split", "0.5"], "`split` must be"),
        (["--split", "2", "--report", "leverage"], "`split` must be"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "fit"])
def test_a_budget_that_cannot_be_met_is_refused(command, arguments, words, tmp_path):
    domain, table = ward(tmp_path)
    places = [] if command == "plan" else [table, "-o", tmp_path / "p.json"]
    assert refused(run(command, domain, *places, *arguments), words)
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DOMAIN[:40], "not valid TOML"),
        (DOMAIN.replace("high = 100.0", "high = -1.0"), "low < high"),
        (DOMAIN.replace("high = 100.0\n", ""), "high"),
        ("\ufffd", "not valid TOML"),
    ],
)
def test_a_bad_domain_file_is_refused(text, words, tmp_path):
    domain, table = ward(tmp_path)
    domain.write_text(text, encoding="utf-8")
    assert refused(run("plan", domain), words)
    assert refused(run("fit", domain, table, "-o", tmp_path / "p.json"), words)


@pytest.mark.parametrize("kind", ["truncated", "tampered", "newer", "not JSON"])
@pytest.mark.parametrize("command", ["bounds", "losses", "page"])
def test_a_publication_that_cannot_be_trusted_is_refused(kind, command, tmp_path):
    domain, table = ward(tmp_path)
    publication = tmp_path / "p.json"
    assert run("fit", domain, table, "-o", publication).exit_code == 0
    text = publication.read_text()
    fields = json.loads(text)
    spoilt, words = {
        "truncated": (text[: len(text) // 2], "not valid JSON at line"),
        "tampered": (
            json.dumps(fields | {"coefficients": [0.0] * len(fields["coefficients"])}),
            "something was changed",
        ),
        "newer": (json.dumps(fields | {"format": "expost-publication/3"}), "needs a newer expost"),
        "not JSON": ("hello", "not valid JSON at line 1"),
    }[kind]
    publication.write_text(spoilt)
    more = ["-o", tmp_path / "report.html"] if command == "page" else [table]
    assert refused(run(command, publication, *more), words)
    assert not (tmp_path / "report.html").exists()


def test_missing_files_and_folders_are_refused(tmp_path):
    domain, table = ward(tmp_path)
    nowhere, folder = tmp_path / "nowhere.csv", tmp_path / "folder.csv"
    folder.mkdir()
    assert refused(run("init", folder), "has no file of a table in it")
    assert refused(run("init", nowhere), "there is no file")
    for place, words in ((nowhere, "there is no file"), (folder, "it is a folder")):
        assert refused(run("plan", place), words)
        assert "expost: " in run("fit", domain, place, "-o", tmp_path / "p.json").stderr
    assert refused(run("bounds", tmp_path / "nowhere.json", table), "there is no file")
    assert refused(run("bounds", folder, table), "must be a regular file")
    assert refused(run("fit", domain, table, "-o", folder), "it is a folder")
    assert refused(run("page", nowhere), "there is no file")


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_spent(tmp_path, monkeypatch):
    domain, table = ward(tmp_path)

    def spent(*_, **__):
        raise AssertionError("the budget was spent")

    monkeypatch.setattr("expost.cli.fit.perturb", spent)
    (tmp_path / "file").write_text("in the way")
    assert refused(run("fit", domain, table, "-o", tmp_path / "file" / "p.json"), "Choose another place")
    both = tmp_path / "private.csv"
    assert refused(run("fit", domain, table, "-o", both, "--losses", both), "another file")


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("command", ["fit", "losses"])
def test_a_full_disk_or_ctrl_c_leaves_no_partial_file(command, trouble, tmp_path, monkeypatch):
    domain, table = ward(tmp_path)
    publication = tmp_path / "p.json"
    if command == "losses":
        assert run("fit", domain, table, "-o", publication).exit_code == 0
    before = sorted(tmp_path.iterdir())
    fail_to_write(monkeypatch, trouble)
    places = [domain, table, "-o", publication] if command == "fit" else [publication, table]
    more = [] if command == "fit" else ["-o", tmp_path / "private.parquet"]
    words = "No space left" if isinstance(trouble, OSError) else "stopped before the end"
    assert refused(run(command, *places, *more), words)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["bounds", "losses", "predict"])
def test_no_command_writes_over_the_domain_file_that_says_how_its_table_is_written(command, tmp_path):
    domain, table = ward(tmp_path)
    publication, link = tmp_path / "p.json", tmp_path / "private.csv"
    assert run("fit", domain, table, "-o", publication).exit_code == 0
    link.symlink_to(domain)
    done = run(command, publication, table, "--domain", domain, "-o", link, "--force")
    assert refused(done, "is an input of this command")
    assert domain.read_text() == DOMAIN


@pytest.mark.parametrize("command", ["init", "page", "predict"])
def test_no_command_replaces_a_ledger_even_by_force(command, tmp_path):
    domain, table = ward(tmp_path)
    publication, book, link = tmp_path / "p.json", tmp_path / "book.csv", tmp_path / "link.csv"
    assert run("fit", domain, table, "-o", publication).exit_code == 0
    assert run("ledger", book, "--open", "t", "--epsilon", "3", "--delta", "1e-6").exit_code == 0
    link.symlink_to(book)
    before = book.read_bytes()
    named = {"init": [table], "page": [publication], "predict": [publication, table]}[command]
    for output in (book, link):
        assert refused(run(command, *named, "-o", output, "--force"), "is a ledger, which nothing replaces")
    assert book.read_bytes() == before


def test_wrong_usage_exits_with_status_two(tmp_path):
    domain, _ = ward(tmp_path)
    for arguments in (["fit", "--nope"], ["unknown"], ["plan"], ["plan", domain, "--epsilon", "one"]):
        assert run(*arguments).exit_code == 2
    assert run("plan", domain, "--report", "everything").exit_code == 2
    assert run("bounds", "only-one.json").exit_code == 2
    result = run("plan", domain, "--rows-at-most", "1.5")
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--epsilon", "abc", "not a number"),
        ("--models", "2.5", "not a whole number"),
        ("--rows", "3k", "not a number"),
        ("--report", "levrage", "not one of 'independent', 'leverage', 'dependent', 'adaptive'"),
    ],
)
def test_an_option_that_cannot_be_is_quoted(tmp_path, option, text, words):
    result = run("rehearse", ward(tmp_path)[0], option, text, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert f"'{option}': '{text}' is {words}." in result.output


def test_a_number_of_periods_that_is_too_small_is_named(tmp_path):
    domain, _ = ward(tmp_path)
    label = 'kind = "time"\nevent = "seen"\nperiods = 1'
    domain.write_text(domain.read_text().replace('kind = "classes"\nclasses = ["no", "yes"]', label))
    result = run("plan", domain)
    assert result.exit_code == 1
    assert "`periods` of the label must be greater than or equal to 2; got 1." in result.output
