"""The commands for people with several rows: one promise, and one line of figures for each person."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from expost.cli import app

DOMAIN = """
person = "patient_id"
rows_per_person = 4

[[features]]
name = "age"
kind = "number"
low = 20.0
high = 80.0

[[features]]
name = "ward"
kind = "category"
categories = ["north", "south"]

[label]
name = "ill"
kind = "classes"
classes = ["no", "yes"]
"""


def rows(people=60, seed=0):
    """Rows of people in no order, with ids in texts."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(people), rng.integers(1, 7, people)))
    return pd.DataFrame(
        {
            "patient_id": [f"SECRET{one:03d}" for one in ids],
            "age": rng.integers(20, 80, len(ids)),
            "ward": rng.choice(["north", "south"], len(ids)),
            "ill": rng.choice(["no", "yes"], len(ids)),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A domain file, the table in one file and in several, and one person's rows without her id."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "domain.toml").write_text(DOMAIN)
    table = rows()
    table.to_csv("table.csv", index=False)
    (tmp_path / "parts").mkdir()
    for part in range(3):
        table[part::3].to_csv(f"parts/{part}.csv", index=False)
    mine = table[table["patient_id"] == table["patient_id"][0]]
    mine.drop(columns=["patient_id"]).to_csv("mine.csv", index=False)
    return tmp_path


def run(*arguments, status=0):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == status, result.output
    return " ".join(result.output.split())


def lines(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def people_of(table):
    return list(dict.fromkeys(table["patient_id"].tolist()))


@pytest.mark.long
def test_from_the_plan_to_everyones_loss(folder):
    assert "for all rows of a record or person together" in " ".join(run("plan", "domain.toml").split())
    out = run("fit", "domain.toml", "table.csv", "--losses", "private-losses.csv")
    assert "once, for each person with all of her rows" in out
    assert "SECRET" not in out + (folder / "publication.json").read_text()
    assert "patient_id" not in (folder / "publication.json").read_text()
    found = lines("private-losses.csv")
    assert list(found[0]) == ["PRIVATE_person", "patient_id", "ex_post_loss"]
    assert [one["patient_id"] for one in found] == people_of(rows())
    # The same from the publication and the table, by a column or by the domain file.
    run("losses", "publication.json", "table.csv", "--person", "patient_id", "-o", "private-again.csv")
    run("losses", "publication.json", "table.csv", "--domain", "domain.toml", "-o", "private-third.csv")
    for name in ("private-again.csv", "private-third.csv"):
        assert (folder / name).read_bytes() == (folder / "private-losses.csv").read_bytes()
    listed = json.loads(
        CliRunner()
        .invoke(app, ["losses", "publication.json", "table.csv", "--person", "patient_id", "--json"])
        .stdout
    )
    assert listed["unit"] == "person"
    assert listed["people"] == people_of(rows())
    np.testing.assert_array_equal(listed["losses"], [float(one["ex_post_loss"]) for one in found])


@pytest.mark.parametrize("kept", [True, False])
def test_a_person_who_is_split_over_files_is_one_person(folder, kept, monkeypatch):
    if not kept:
        monkeypatch.setattr("expost.data.lazy_source.MOST_KEPT", 0)
    out = run("fit", "domain.toml", "parts", "--losses", "private-losses.parquet")
    assert "expost page publication.json" in out
    found = pd.read_parquet("private-losses.parquet")
    split = pd.concat([rows()[part::3] for part in range(3)])
    assert found["patient_id"].tolist() == people_of(split)
    whole = run(
        "losses", "publication.json", "table.csv", "--person", "patient_id", "-o", "private-whole.csv"
    )
    assert "Private: private-whole.csv" in whole
    known = {one["patient_id"]: float(one["ex_post_loss"]) for one in lines("private-whole.csv")}
    np.testing.assert_allclose(found["ex_post_loss"], [known[one] for one in found["patient_id"]], rtol=1e-9)


def test_the_next_command_names_the_column_of_people(folder):
    out = run("fit", "domain.toml", "table.csv")
    assert "expost losses publication.json table.csv -o private-losses.csv --person patient_id" in out


@pytest.mark.long
def test_bounds_of_one_person_of_several_and_of_families(folder):
    run("fit", "domain.toml", "table.csv")
    out = run("bounds", "publication.json", "mine.csv", "--member", "yes")
    assert "All rows were read as those of one person." in out
    one = json.loads(run("bounds", "publication.json", "mine.csv", "--json"))
    assert one["unit"] == "person"
    assert len(one["publications"][0]["total"]) == 1
    out = run("bounds", "publication.json", "table.csv", "--person", "patient_id", "-o", "bounds.csv")
    assert "Rows with the same patient_id were read as one person's." in out
    found = lines("bounds.csv")
    assert [line["patient_id"] for line in found] == people_of(rows())
    assert float(found[0]["total"]) == one["publications"][0]["total"][0]
    # A publication that promises to rows answers for families, and row by row without the column.
    (folder / "rows.toml").write_text(DOMAIN.split("\n", 3)[3])
    run("fit", "rows.toml", "table.csv", "-o", "rows.json")
    out = run("bounds", "rows.json", "mine.csv")
    assert "person" not in out.replace("every person", "")
    out = run("bounds", "rows.json", "table.csv", "--person", "patient_id")
    assert "were read as one family" in out
    assert "promised to every single record" in out
    both = json.loads(run("bounds", "rows.json", "publication.json", "mine.csv", "--json"))
    assert len(both["total"]) == 1


@pytest.mark.long
def test_what_is_refused_in_one_sentence(folder):
    run("fit", "domain.toml", "table.csv")
    out = run("losses", "publication.json", "table.csv", status=1)
    assert "nobody said whose each row is" in out
    out = run("bounds", "publication.json", "mine.csv", "--id", "age", status=1)
    assert "`--id` must be left out where figures are people's" in out
    out = run("fit", "domain.toml", "table.csv", "-o", "b.json", "--id", "age", status=1)
    assert "`--id` must be left out where figures are people's" in out
    out = run("bounds", "publication.json", "mine.csv", "--person", "patient_id", status=1)
    assert "lacks the column 'patient_id', a declared person" in out
    out = run("fit", "domain.toml", "mine.csv", "-o", "b.json", status=1)
    assert "lacks the column 'patient_id', a declared person" in out


@pytest.mark.long
def test_people_are_not_sent_to_a_wallet_that_they_do_not_have(folder):
    rows().to_csv(folder / "table.csv", index=False)
    for name in ("one.json", "two.json"):
        fit = [
            "fit",
            str(folder / "domain.toml"),
            str(folder / "table.csv"),
            "--yes",
            "-o",
            str(folder / name),
        ]
        assert CliRunner().invoke(app, fit).exit_code == 0
    both = [str(folder / "one.json"), str(folder / "two.json"), str(folder / "table.csv")]
    told = " ".join(CliRunner().invoke(app, ["bounds", *both, "--person", "patient_id"]).output.split())
    assert "holds if the plans and their number were fixed in advance." in told
    assert "--wallet" not in told


def test_who_names_two_publications_is_told_that_there_is_one():
    told = CliRunner().invoke(app, ["losses", "one.json", "two.json", "table.csv"])
    assert told.exit_code == 2
    assert "takes one publication" in " ".join(told.output.replace("│", " ").split())


def test_who_names_two_tables_is_told_of_folders(folder):
    told = CliRunner().invoke(app, ["check", "domain.toml", "one.csv", "two.csv"])
    assert told.exit_code == 2
    assert "name their folder or a pattern" in " ".join(told.output.replace("│", " ").split())


def test_a_missing_id_is_a_problem_and_counts_are_private(folder):
    out = run("check", "domain.toml", "table.csv", "--problems", "private-problems.csv")
    assert "The table fits the domain." in out
    assert "says how many people and rows there are" in out
    assert str(len(rows())) not in out
    (counted,) = lines("private-problems.csv")
    assert counted["problem"] == "how many people and rows"
    assert counted["value"] == f"60 people, {len(rows())} rows"
    table = rows()
    table.loc[[3, 8], "patient_id"] = ["", "  "]
    table.to_csv("holes.csv", index=False)
    out = run("check", "domain.toml", "holes.csv", "--problems", "private-problems.csv", status=1)
    assert "no id that says whose the row is" in out
    assert "SECRET" not in out
    found = lines("private-problems.csv")
    assert [one["record"] for one in found[:-1]] == ["4", "9"]
    out = run("fit", "domain.toml", "holes.csv", "-o", "b.json", status=1)
    assert "`patient_id` must say in every row whose it is" in out
    assert "SECRET" not in out
    told = json.loads(CliRunner().invoke(app, ["check", "domain.toml", "table.csv", "--json"]).stdout)
    assert told["problems"] == []


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("patient_id", True),
        ("PatientID", True),
        ("person", True),
        ("subject", True),
        ("id", True),
        ("Kundennr", True),
        ("kunden_nummer", True),
        ("patient_age", False),
        ("visit_id", False),
        ("number", False),
        ("code", False),
    ],
)
def test_init_proposes_a_person_by_the_name_of_a_column(folder, name, proposed):
    rows().rename(columns={"patient_id": name}).to_csv("named.csv", index=False)
    result = CliRunner().invoke(app, ["init", "named.csv"])
    assert (f'# person = "{name}"' in result.stdout) is proposed
    assert "SECRET" not in result.stdout
    if proposed:
        filled = result.stdout.replace("# person", "person").replace(f'    "{name}",', "    #")
        assert f'\nperson = "{name}"' in filled


def test_a_held_out_table_needs_no_ids(folder):
    rows(seed=1).drop(columns=["patient_id"]).to_csv("aside.csv", index=False)
    out = run("fit", "domain.toml", "table.csv", "--test", "aside.csv")
    assert "How well it predicts the held-out table" in out


@pytest.mark.arrays
def test_rows_of_people_are_sent_to_a_device(folder):
    pytest.importorskip("torch")
    run("fit", "domain.toml", "parts", "--losses", "private-first.csv", "--device", "cpu")
    again = ("losses", "publication.json", "parts", "--person", "patient_id", "-o")
    run(*again, "private-there.csv", "--device", "cpu")
    run(*again, "private-here.csv")
    first, there, here = (
        [float(one["ex_post_loss"]) for one in lines(f"private-{name}.csv")]
        for name in ("first", "there", "here")
    )
    np.testing.assert_allclose(there, here, rtol=1e-9)
    np.testing.assert_allclose(first, here, rtol=1e-6)
    told = [
        run("bounds", "publication.json", "parts", "--person", "patient_id", "--json", *more)
        for more in ((), ("--device", "cpu"))
    ]
    assert told[0] == told[1]
