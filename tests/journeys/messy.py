"""A hospital's table as Excel in Germany saves it: semicolons, decimal commas, cp1252, everyday mistakes.

``python tests/journeys/messy.py`` writes ``patienten.csv`` with mistakes, ``korrigiert.csv`` without them,
and ``neu.csv``, patients of the next quarter. Everybody in it is invented.
"""

import datetime
from pathlib import Path

import numpy as np

NAMES = (
    "Patienten_ID", "Name", "Geburtsdatum", "Aufnahme", "Alter", "Größe", "Kreatinin", "Station", "Raucher",
    "Bemerkung", "Diabetes",
)  # fmt: skip
ROWS = 20_000
STATIONS = ("Innere", "Chirurgie", "Gynäkologie")
# The mistakes: a record (from 1), its column, what the cell says, and how `expost check` calls it.
MISTAKES = (
    (7, "Alter", "zweiundsechzig", "not a number"),
    (19_001, "Alter", "", "missing, without a default"),
    (15, "Größe", "178", "beyond the declared bounds"),
    (4_000, "Größe", "1.78", "a number with a decimal point"),
    (16_384, "Kreatinin", "k.A.", "a word for a missing value"),
    (16_385, "Kreatinin", "unbekannt", "a word for a missing value"),
    (3, "Kreatinin", "<0,3", "not a number"),
    (99, "Aufnahme", "31.02.2024", "not a date"),
    (100, "Aufnahme", "gestern", "not a date"),
    (42, "Station", "innere", "differs from a declared value only in case or blanks"),
    (12_345, "Station", "Gynäkologie ", "differs from a declared value only in case or blanks"),
    (20_000, "Station", "Inere", "a value that is not declared"),
    (64, "Raucher", "vielleicht", "a value that is not declared"),
    (11_000, "Diabetes", "", "the outcome is missing"),
    (11_001, "Diabetes", "JA", "differs from a declared value only in case or blanks"),
)
# Records with a remark that has a semicolon in it, without quotes.
UNEVEN = (500, 18_000)


def people(rows=ROWS, seed=2026):
    """Rows of texts without any mistake."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 96, rows)
    height = np.clip(rng.normal(1.72, 0.09, rows), 1.3, 2.1)
    creatinine = np.clip(rng.gamma(6.0, 0.17, rows), 0.3, 12.0)
    station = rng.choice(STATIONS, rows)
    smoker = rng.choice(["nein", "ja"], rows, p=[0.7, 0.3])
    odds = -5.0 + 0.05 * age + 0.9 * creatinine + 0.5 * (smoker == "ja")
    ill = np.where(rng.logistic(size=rows) < odds, "ja", "nein")
    admitted = rng.integers(0, 365 * 2, rows)
    day = datetime.date(2023, 1, 1)
    for k in range(rows):
        arrived = day + datetime.timedelta(days=int(admitted[k]))
        born = arrived - datetime.timedelta(days=int(age[k]) * 365 + int(admitted[k]) % 365)
        yield [
            f"P{k + 1:06d}",
            f"Müller{k}",
            f"{born:%d.%m.%Y}",
            f"{arrived:%d.%m.%Y}",
            str(age[k]),
            f"{height[k]:.2f}".replace(".", ","),
            f"{creatinine[k]:.2f}".replace(".", ","),
            str(station[k]),
            str(smoker[k]),
            '"kommt wieder; nüchtern"' if k % 7 == 0 else "",
            str(ill[k]),
        ]


def write(path, *, mistakes=(), uneven=(), rows=ROWS, seed=2026):
    """Write a table; ``mistakes`` are put into their cells, and ``uneven`` lines get a cell too many."""
    table = list(people(rows, seed))
    for record, name, cell, _ in mistakes:
        table[record - 1][NAMES.index(name)] = cell
    for record in uneven:
        table[record - 1][NAMES.index("Bemerkung")] = "müde; blass"
    lines = [";".join(line) + "\r\n" for line in (NAMES, *table)]
    Path(path).write_bytes("".join(lines).encode("cp1252"))


def write_all(folder):
    """Write the three files of the journey."""
    write(Path(folder, "patienten.csv"), mistakes=MISTAKES, uneven=UNEVEN)
    write(Path(folder, "korrigiert.csv"))
    write(Path(folder, "neu.csv"), rows=500, seed=2027)


def write_tidy(folder):
    """Write ``patients.csv``, a table without any mistake, as README has it."""
    rng = np.random.default_rng(1)
    rows = 5_000
    age, smoker = rng.integers(18, 96, rows), rng.choice(["no", "yes"], rows)
    ill = np.where(rng.logistic(size=rows) < 0.08 * (age - 60) + (smoker == "yes"), "yes", "no")
    columns = (range(1, rows + 1), age, rng.choice(["north", "south"], rows), smoker, ill)
    lines = [",".join(map(str, line)) + "\n" for line in zip(*columns, strict=True)]
    Path(folder, "patients.csv").write_text("patient_id,age,ward,smoker,ill\n" + "".join(lines))


if __name__ == "__main__":
    write_all(".")
