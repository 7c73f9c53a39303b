"""A steward's way from her table to a page, exactly as the documents tell it."""

import csv
import os
import re
import stat

import messy
import pytest
import transcripts

from expost import Publication

# The commands of a document, the mistakes of its table, and records with a cell too many.
JOURNEYS = {
    "README.md": ("init check fit page losses", (), ()),
    "docs/journey.md": ("init check check fit page predict", messy.MISTAKES, messy.UNEVEN),
    "docs/tutorial.md": (
        "--version init check check fit page bounds predict losses",
        ((1234, "ward", "nroth", "a value that is not declared"),),
        (),
    ),
}


@pytest.fixture(scope="module", params=list(transcripts.TRANSCRIPTS))
def walked(request, tmp_path_factory):
    """A document whose transcript was run, the folder, and every command with what it printed."""
    folder = tmp_path_factory.mktemp("journey")
    return request.param, folder, list(transcripts.run(request.param, folder))


def test_the_documents_print_what_the_commands_print(walked):
    document, _, steps = walked
    for command, written, printed in steps:
        assert transcripts.masked(written) == transcripts.masked(printed), command
    assert " ".join(command.split()[1] for command, _, _ in steps) == JOURNEYS[document][0]


def test_the_examples_in_python_hold_where_the_commands_were_run(walked):
    document, folder, _ = walked
    assert transcripts.run_python(document, folder) == (14 if document == "docs/tutorial.md" else 0, 0)


def test_the_page_and_the_publication_are_there_and_nothing_private_is_public(walked):
    _, folder, _ = walked
    publication = Publication.load(folder / "publication.json")
    public = (folder / "publication.json").read_text() + (folder / "report.html").read_text()
    assert publication.domain is not None
    for secret in ("Müller", "P000001", "zweiundsechzig", "patient_id", "Patienten_ID", "delimiter"):
        assert secret not in public


def test_one_check_finds_every_mistake_and_nothing_else(walked):
    """The private file has the mistakes that were made, with their records and values, and no others."""
    document, folder, _ = walked
    path = folder / "private-problems.csv"
    # The list is written as the table is.
    encoding, delimiter = ("cp1252", ";") if document == "docs/journey.md" else ("utf-8", ",")
    with open(path, encoding=encoding, newline="") as file:
        lines = csv.DictReader(file, delimiter=delimiter)
        found = [(int(r["record"]), r["column"], r["value"], r["problem"]) for r in lines]
    _, mistakes, uneven = JOURNEYS[document]
    assert sorted(row for row in found if row[1] != "(line)") == sorted(mistakes)
    assert sorted(row[0] for row in found if row[1] == "(line)") == sorted(uneven)
    assert path.read_text(encoding=encoding).startswith("PRIVATE_")
    assert os.name != "posix" or stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_screen_shows_neither_values_nor_counts_nor_records(walked):
    document, _, steps = walked
    for command, _, printed in steps:
        if "check" not in command:
            continue
        assert not re.search(r"\d", re.sub(r"1/0", "", printed))
        assert not any(cell and cell in printed for _, _, cell, _ in JOURNEYS[document][1])
