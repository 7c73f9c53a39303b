"""Three tables as stewards bring them: a hospital's export, a weighted survey, and house prices.

``python tests/journeys/stewards.py`` writes all of them, with their domain files. Everybody is invented.
"""

from pathlib import Path

import numpy as np

ROWS = 600
HOSPITAL = """
ignore = ["Fallnummer"]

[table]
delimiter = ";"
decimal = ","
encoding = "utf-8-sig"
missing_words = ["k.A.", "-1", "999"]
dates = "DD.MM.YYYY"

[[features]]
name = "Alter"
kind = "number"
low = 18
high = 110
missing = 60
title = "Alter"
unit = "Jahre"
question = "Wie alt waren Sie?"
example = 64

[[features]]
name = "Hämoglobin"
kind = "number"
low = 3.0
high = 22.0
missing = 13.5
unit = "g/dl"
question = "Wie hoch war Ihr Hämoglobin?"
example = 13.5

[[features]]
name = "Aufnahme"
kind = "date"
low = 2020-01-01
high = 2025-12-31
question = "Wann wurden Sie aufgenommen?"

[[features]]
name = "Raucher"
kind = "category"
categories = ["nein", "ja"]

[label]
name = "Wiederaufnahme"
kind = "classes"
classes = ["nein", "ja"]
question = "Kamen Sie innerhalb eines Jahres wieder?"

[publication]
language = "de"
title = "Wiederaufnahmen"
publisher = "Klinikum Nordstadt"
contact = { email = "datenschutz@klinikum-nordstadt.example" }
purpose = "früh erkennt, wer wiederkommt"
population = "Erwachsene, die von 2020 bis 2025 bei uns waren"
"""
ANSWERS = ["never", "rarely", "sometimes", "often", "always"]
SURVEY = """
[[features]]
name = "age"
kind = "number"
low = 16
high = 100
unit = "years"

[[features]]
name = "hours_online"
kind = "number"
low = 0
high = 24
title = "Hours online"

[[features]]
name = "region"
kind = "category"
categories = ["north", "east", "south", "west"]

[[features]]
name = "employed"
kind = "yes_no"

[label]
name = "lonely"
kind = "classes"
classes = ["never", "rarely", "sometimes", "often", "always"]
question = "How often did you feel lonely?"

[publication]
title = "Loneliness"
publisher = "City survey"
purpose = "tells who feels lonely"
date = 2026-03-01
"""
HOUSES = """
[[features]]
name = "area"
kind = "number"
low = 20
high = 400
unit = "m²"

[[features]]
name = "rooms"
kind = "number"
low = 1
high = 20

[[features]]
name = "garden"
kind = "yes_no"

[label]
name = "price"
kind = "number"
low = 0
high = 2000000
unit = "€"
question = "What did the house cost?"

[publication]
title = "House prices"
publisher = "Land office"
purpose = "tells what houses cost"
"""


def _written(path, names, rows, delimiter=",", encoding="utf-8"):
    lines = (delimiter.join(map(str, row)) for row in [names, *rows])
    Path(path).write_text("\n".join(lines) + "\n", encoding=encoding)


def hospital(folder, rows=ROWS):
    """As Excel in Germany saves it: semicolons, decimal commas, a byte order mark, codes for no value."""
    rng = np.random.default_rng(31)
    age, blood = rng.integers(18, 100, rows), rng.normal(13.5, 1.8, rows).round(1)
    days = np.datetime64("2020-01-01") + rng.integers(0, 2000, rows)
    smoker = rng.choice(["nein", "ja"], rows, p=[0.7, 0.3])
    again = np.where(rng.logistic(size=rows) < 0.05 * (age - 65) - 0.4 * (blood - 13.5), "ja", "nein")
    listed = []
    for k in range(rows):
        told = "999" if k % 97 == 5 else "-1" if k % 97 == 50 else str(age[k])
        level = "k.A." if k % 41 == 7 else str(blood[k]).replace(".", ",")
        day = "{2}.{1}.{0}".format(*str(days[k]).split("-"))
        listed.append([f"F{k:05d}", told, level, day, smoker[k], again[k]])
    _written(
        f"{folder}/patienten.csv",
        ["Fallnummer", "Alter", "Hämoglobin", "Aufnahme", "Raucher", "Wiederaufnahme"],
        listed,
        ";",
        "utf-8-sig",
    )
    Path(folder, "domain.toml").write_text(HOSPITAL, encoding="utf-8")


def survey(folder, rows=ROWS):
    """Five answers, and how much each person stands for."""
    rng = np.random.default_rng(32)
    age, hours = rng.integers(16, 95, rows), rng.uniform(0, 16, rows).round(1)
    region, employed = rng.choice(["north", "east", "south", "west"], rows), rng.choice(["yes", "no"], rows)
    felt = np.clip(np.round(0.15 * hours + rng.normal(1.2, 1.0, rows)), 0, 4).astype(int)
    weights = np.minimum(rng.gamma(4.0, 0.2, rows), 2.0).round(3)
    columns = (age, hours, region, employed, weights, np.array(ANSWERS)[felt])
    names = ["age", "hours_online", "region", "employed", "survey_weight", "lonely"]
    _written(f"{folder}/survey.csv", names, zip(*columns, strict=True))
    Path(folder, "domain.toml").write_text(SURVEY, encoding="utf-8")


def houses(folder, rows=ROWS):
    """Prices in euros, most of them in the lower half of what is declared."""
    rng = np.random.default_rng(33)
    area = rng.gamma(6.0, 22.0, rows).clip(20, 400).round()
    rooms, garden = np.maximum(1, (area / 28).round()).astype(int), rng.choice(["yes", "no"], rows)
    price = (3200 * area + 40_000 * (garden == "yes") + rng.normal(0, 60_000, rows) - 150_000).clip(0).round()
    columns = (area.astype(int), rooms, garden, price.astype(int))
    _written(f"{folder}/houses.csv", ["area", "rooms", "garden", "price"], zip(*columns, strict=True))
    Path(folder, "domain.toml").write_text(HOUSES, encoding="utf-8")


if __name__ == "__main__":
    for make in (hospital, survey, houses):
        Path(make.__name__).mkdir(exist_ok=True)
        make(make.__name__)
