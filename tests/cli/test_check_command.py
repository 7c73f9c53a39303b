"""`expost check`, and how the other commands lead to it and keep its file from being published."""

import json
import os
import stat

import pandas as pd
import pytest
from ward import NAMES, patients, refused, run, ward, write_csv

import expost

SECRET = "hush17"


def spoilt(tmp_path):
    """A ward with several problems, its domain file and table."""
    rows = patients(20)
    rows[3][0], rows[4][0], rows[5][1], rows[6][3] = SECRET, "1,5", "South", ""
    return ward(tmp_path, rows)


def test_the_screen_has_kinds_and_the_private_file_has_rows(tmp_path):
    domain, table = spoilt(tmp_path)
    problems = tmp_path / "private-problems.csv"
    result = run("check", domain, table, "--problems", problems)
    assert refused(result, "the table does not fit the domain")
    shown = result.stdout.replace(str(tmp_path), "")
    for words in ("not a number", "decimal comma", "case or", "the outcome is missing"):
        assert words in shown
    assert SECRET not in result.output
    assert not any(figure in shown.replace("1/0", "") for figure in "0123456789")
    frame = pd.read_csv(problems)  # every program can read it
    assert frame.columns[0] == "PRIVATE_file"
    found = zip(frame["record"], frame["column"], frame["value"].fillna(""), strict=True)
    assert sorted(found) == [
        (4, "age", SECRET),
        (5, "age", "1,5"),
        (6, "ward", "South"),
        (7, "ill", ""),
    ]
    assert os.name != "posix" or stat.S_IMODE(os.stat(problems).st_mode) == 0o600


def test_the_same_as_json_and_with_identifiers(tmp_path):
    domain, table = spoilt(tmp_path)
    frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    frame.insert(0, "who", [f"p{k}" for k in range(len(frame))])
    frame.to_csv(table, index=False)
    problems = tmp_path / "private-problems.csv"
    result = run("check", domain, table, "--problems", problems, "--id", "who", "--json")
    told = json.loads(result.stdout)
    assert not told["fits"]
    assert told["unused_columns"] == ["who"]
    assert {(one["column"], one["problem"]) for one in told["problems"]} == {
        ("age", "not a number"),
        ("age", "a number with a decimal comma"),
        ("ward", "differs from a declared value only in case or blanks"),
        ("ill", "the outcome is missing"),
    }
    assert sorted(pd.read_csv(problems)["who"]) == ["p3", "p4", "p5", "p6"]
    assert refused(run("check", domain, table, "--id", "nobody"), "lacks the column 'nobody'")


def test_a_table_that_fits_is_told_so(tmp_path):
    domain, table = ward(tmp_path)
    result = run("check", domain, table)
    assert result.exit_code == 0
    assert "The table fits the domain" in result.stdout
    assert result.stderr == ""
    assert json.loads(run("check", domain, table, "--json").stdout)["fits"]


def test_a_column_that_is_spelt_otherwise_is_pointed_to(tmp_path):
    domain, _ = ward(tmp_path)
    table = write_csv(tmp_path / "table.csv", patients(5), ["Age ", *NAMES[1:]])
    result = run("check", domain, table)
    assert refused(result, "does not fit")
    assert "the table has no such column" in result.stdout
    assert (
        "Is 'Age ' of the table what the domain file calls 'age'? Then rename one of them." in result.stdout
    )


def test_bounds_that_clip_are_told_but_not_refused(tmp_path):
    rows = patients(5)
    rows[0][0] = 250
    domain, table = ward(tmp_path, rows)
    result = run("check", domain, table)
    assert result.exit_code == 0
    assert "Beyond the declared bounds, so that they count as the bound: age." in result.stdout
    assert run("fit", domain, table, "--dry-run", "-o", tmp_path / "p.json").exit_code == 0


def test_a_time_that_is_missing_is_no_reason_to_leave_people_out(tmp_path):
    rows = [[*row[:3], 3] for row in patients(5)]
    domain, table = ward(tmp_path, [*rows, [40, "north", "no", ""]])
    time = 'kind = "time"\nevent = "smoker"\nperiods = 12'
    text = domain.read_text().replace('[[features]]\nname = "smoker"\nkind = "yes_no"\n', "")
    domain.write_text(text.replace('kind = "classes"\nclasses = ["no", "yes"]', time))
    result = run("check", domain, table)
    assert refused(result, "does not fit")
    said = " ".join(result.stdout.split())
    assert "write no, and how long they were followed; do not leave them out" in said


def test_an_amount_of_zero_is_told(tmp_path):
    domain, table = ward(tmp_path, [[*row[:3], 0] for row in patients(5)])
    amount = 'kind = "amount"\nlow = 1\nhigh = 9'
    domain.write_text(domain.read_text().replace('kind = "classes"\nclasses = ["no", "yes"]', amount))
    result = run("check", domain, table)
    assert result.exit_code == 0
    assert "ill: an amount of 0 or below." in result.stdout


@pytest.mark.parametrize("name", ["problems.csv", "private-problems.parquet"])
def test_a_file_of_problems_says_that_it_is_private(name, tmp_path):
    domain, table = spoilt(tmp_path)
    assert refused(run("check", domain, table, "--problems", tmp_path / name), "a file of problems must")
    assert not (tmp_path / name).exists()


def test_a_private_file_is_refused_as_the_place_of_anything_public(tmp_path):
    """By its name, and by its content where it was renamed."""
    domain, table = spoilt(tmp_path)
    problems = tmp_path / "private-problems.csv"
    run("check", domain, table, "--problems", problems)
    domain, table = ward(tmp_path)
    published = tmp_path / "p.json"
    assert run("fit", domain, table, "-o", published).exit_code == 0
    renamed = tmp_path / "problems.csv"
    renamed.write_bytes(problems.read_bytes())
    losses = tmp_path / "private-losses.parquet"
    assert run("losses", published, table, "-o", losses).exit_code == 0
    moved = tmp_path / "losses.parquet"
    moved.write_bytes(losses.read_bytes())
    for path in (problems, renamed, moved):
        before = path.read_bytes()
        for command in (("fit", domain, table), ("page", published)):
            assert refused(run(*command, "-o", path, "--force"), "is the name of a private file")
        assert refused(
            run("summary", published, "--figure", path, "--force"), "is the name of a private file"
        )
        assert path.read_bytes() == before


def test_fit_says_which_line_to_add_and_how_to_see_everything(tmp_path):
    rows = patients(5)
    rows[2][0] = "1,5"
    domain, table = ward(tmp_path, rows)
    result = run("fit", domain, table, "-o", tmp_path / "p.json")
    assert refused(result, 'add the line  decimal = ","  under [table]')
    assert f"expost check {domain} {table} --problems private-problems.csv" in result.stderr
    assert "1,5" not in result.stderr


def test_arguments_in_the_wrong_order_are_recognised(tmp_path):
    domain, table = ward(tmp_path)
    for command in ("check", "fit"):
        assert refused(
            run(command, table, domain), f"the domain file comes first, and then the table: {domain}"
        )
    assert refused(run("plan", table), "the domain file comes first")
    assert run("fit", domain, table, "-o", tmp_path / "p.json").exit_code == 0
    for command in ("losses", "bounds", "predict"):
        assert refused(run(command, table, tmp_path / "p.json"), "the publication comes first")


def test_a_german_table_goes_all_the_way_by_the_domain_file(tmp_path):
    domain, table = ward(tmp_path)
    rows = [[f"{age},5", *others] for age, *others in patients(60)]
    text = "\r\n".join(";".join(map(str, row)) for row in [["größe", *NAMES[1:]], *rows]) + "\r\n"
    table.write_bytes(text.encode("cp1252"))
    domain.write_text(domain.read_text().replace('"age"', '"größe"'))
    assert refused(run("check", domain, table), 'encoding = "cp1252"')
    domain.write_text('[table]\ndelimiter = ","\ndecimal = ","\nencoding = "cp1252"\n' + domain.read_text())
    assert refused(run("check", domain, table), 'delimiter = ";"')
    domain.write_text(domain.read_text().replace('delimiter = ","', 'delimiter = ";"'))
    published, losses = tmp_path / "p.json", tmp_path / "private.csv"
    assert run("check", domain, table).exit_code == 0
    assert run("fit", domain, table, "-o", published, "--losses", losses).exit_code == 0
    again = json.loads(run("losses", published, table, "--domain", domain, "--json").stdout)["losses"]
    assert again == pytest.approx(
        list(pd.read_csv(losses, sep=";", decimal=",")["ex_post_loss"]), rel=1e-6, abs=1e-12
    )
    assert run("bounds", published, table, "--domain", domain).exit_code == 0
    assert run("predict", published, table, "--domain", domain).exit_code == 0
    assert refused(run("predict", published, table), 'encoding = "cp1252"')


def test_init_is_told_how_a_table_is_written_and_writes_it_down(tmp_path):
    table = tmp_path / "table.csv"
    table.write_bytes("größe;ill\r\n1,5;no\r\n".encode("cp1252"))
    written = ("--delimiter", ";", "--decimal", ",", "--encoding", "cp1252")
    assert "größe" in run("init", table, *written).stdout
    assert 'delimiter = ";"  ' in run("init", table, *written).stdout
    assert refused(run("init", table, "--encoding", "cp1252"), '--delimiter ";"')
    assert refused(run("init", table, "--encoding", "klingon"), "`encoding` must be the name of an encoding")
    assert refused(run("init", table, "--decimal", "x"), "`decimal` must be '.' or ','; got decimal='x'")
    table.write_text("age\till\n1\tno\n")
    for name in ("tab", "\\t"):
        assert 'delimiter = "\\t"' in run("init", table, "--delimiter", name).stdout


@pytest.mark.parametrize("name", ["check", "fit", "predict", "bounds", "losses"])
def test_only_init_has_options_for_how_a_table_is_written(name, tmp_path):
    told = run(name, "one", "two", "--delimiter", ";")
    assert told.exit_code == 2
    assert "No such option" in told.stderr


def test_a_skeleton_takes_identifiers_and_remarks_out_by_their_names(tmp_path):
    names = ["PatientID", "note", "paid", "birth_date", "ill"]
    text = run("init", write_csv(tmp_path / "t.csv", [], names)).stdout
    assert '"PatientID",  # by its name an identifier' in text
    assert '"note",  # by its name free text' in text
    assert 'name = "birth_date"\nkind = "date"' in text
    for words in (
        "# [table]",
        "# delimiter",
        "# [publication]",
        "# title",
        "# question",
        "# help",
        "# group",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 90
    filled = text.replace('"FILL IN", "FILL IN"', '"no", "yes"')
    filled = filled.replace('low = "FILL IN"', "low = 0.0", 1).replace('high = "FILL IN"', "high = 90.0", 1)
    filled = filled.replace('low = "FILL IN"', "low = 1900-01-01", 1)
    filled = filled.replace('high = "FILL IN"', "high = 2030-12-31", 1)
    # Every line that is commented out may be used as it is.
    for words in ("# missing = 40.0", "# missing = 1970", "# unit", "# [table]", "# delimiter", "# dates"):
        filled = filled.replace(words, words.removeprefix("# "))
    read = expost.Domain.from_toml(filled)
    assert read.ignore == ("PatientID", "note")
    assert read.table.delimiter == ";"


def test_a_check_can_be_repeated_and_quotes_nothing_that_runs(tmp_path):
    folder = tmp_path / "my files"
    folder.mkdir()
    domain, table = ward(folder)
    rows = table.read_text().splitlines()
    rows[1:4] = ["=1+1,north,no,yes", "+x,north,no,yes", "-5x,north,no,yes"]
    table.write_text("\n".join(rows) + "\n")
    problems = tmp_path / "private-problems.csv"
    for _ in range(2):  # a list of problems may be replaced by the next
        assert run("check", domain, table, "--problems", problems).exit_code == 1
    values = [line.rpartition(",")[2] for line in problems.read_text().splitlines()[1:]]
    assert values == ["'=1+1", "'+x", "'-5x"]
    other = tmp_path / "private-notes.csv"
    other.write_text("PRIVATE_row,x\n")
    assert "private-notes.csv exists" in run("check", domain, table, "--problems", other).stderr
    refused = run("fit", domain, table, "-o", tmp_path / "p.json")
    assert f"expost check '{domain}' '{table}' --problems" in refused.stderr
    assert "Nothing was spent." in refused.stderr


def test_problems_of_a_whole_file_have_a_line_without_a_record(tmp_path):
    domain, table = ward(tmp_path, patients(5))
    frame = pd.read_csv(table)
    frame.insert(0, "who", "p1")
    frame.drop(columns="smoker").to_csv(table, index=False)
    problems = tmp_path / "private-problems.csv"
    assert refused(
        run("check", domain, table, "--problems", problems, "--id", "who"), "does not fit the domain"
    )
    (line,) = pd.read_csv(problems, keep_default_na=False).to_dict("records")
    assert (line["PRIVATE_file"], line["column"]) == ("table.csv", "smoker")
    assert line["record"] == line["who"] == line["value"] == ""
