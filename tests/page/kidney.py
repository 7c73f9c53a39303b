"""A publication whose domain says everything in words, made from numbers drawn by a seed."""

from functools import cache

import numpy as np
import pandas as pd

from expost import Domain, LogisticRegression

TEXTS = """
[publication]
title = "{title}"
publisher = "Norrdal University Clinic"
contact = {{ email = "privacy@norrdal.example", phone = "+46 31 00 00", address = "Parkgatan 4, Norrdal" }}
purpose = "helps doctors see early whose kidney disease will get worse"
date = {date}
population = "adults seen at its Kidney Centre from 2015 to 2024"
opt_out = {opt_out}
reply = "The Kidney Centre's privacy team answers within two weeks."
"""
FEATURES = """
[[features]]
name = "age"
kind = "number"
low = 18.0
high = 100.0
title = "Age"
unit = "years"
question = "How old were you?"
group = "About you"
example = 58.0

[[features]]
name = "sex"
kind = "category"
categories = ["f", "m"]
titles = ["Female", "Male"]
title = "Sex"
question = "Which sex is in your medical record?"
group = "About you"
example = "f"

[[features]]
name = "sbp"
kind = "number"
low = 80.0
high = 220.0
title = "Upper blood pressure"
unit = "mmHg"
question = "What was your upper blood pressure?"
help = "It is the larger of the two numbers that were written down at your visit."
group = "Blood pressure and illnesses"
example = 140.0

[[features]]
name = "dm"
kind = "yes_no"
title = "Diabetes"
question = "Did you have diabetes?"
group = "Blood pressure and illnesses"
example = true

[[features]]
name = "crea"
kind = "number"
low = 0.3
high = 15.0
missing = 1.0
title = "Creatinine"
unit = "mg/dL"
units = { "µmol/L" = 0.0113 }
question = "What was your creatinine?"
help = "It is on the sheet of your blood test, often as CREA or Krea."
group = "Blood test"
aliases = ["Krea"]
example = 1.4

[[features]]
name = "hb"
kind = "number"
low = 4.0
high = 20.0
title = "Haemoglobin"
unit = "g/dL"
question = "What was your haemoglobin?"
group = "Blood test"
example = 12.5
"""
LABEL = """
[label]
name = "worse"
kind = "classes"
classes = ["0", "1"]
titles = ["No", "Yes"]
title = "Kidney disease got worse"
question = "Did your kidney disease get worse within two years?"
group = "What happened next"
example = "0"
"""
ANSWERS = ["47", "f", "152", "no", "2.1", "11.2", "1"]
"""Answers of a person in the order of the form."""


def domain_of(*, title="Kidney model", date="2026-06-03", opt_out=True, features=FEATURES, label=LABEL):
    texts = TEXTS.format(title=title, date=date, opt_out=str(opt_out).lower())
    return Domain.from_toml(features + label + texts)


def drawn(domain, rng, rows):
    """Records of the domain, evenly spread, and labels."""
    columns = {}
    for feature in domain.features:
        if feature.kind == "number":
            columns[feature.name] = rng.uniform(feature.low, feature.high, rows)
        else:
            columns[feature.name] = rng.choice(getattr(feature, "categories", ["yes", "no"]), rows)
    return pd.DataFrame(columns), rng.choice(domain.classes, rows)


@cache
def published(*, report="leverage", seed=3, rows=400, insecure=False, epsilon=1.0, **texts):
    """A fit with secret noise, unless it shall be insecure."""
    domain = domain_of(**texts)
    X, y = drawn(domain, np.random.default_rng(seed), rows)
    state = seed if insecure else None
    model = LogisticRegression(domain=domain, report=report, epsilon=epsilon, random_state=state)
    return model.fit(X, y).publication_


def many_features(count, classes):
    """A domain of so many features and classes, with texts as long as people write them."""
    features = "".join(
        f'[[features]]\nname = "x{i}"\nkind = "number"\nlow = 0.0\nhigh = 10.0\n'
        f'title = "Measured value number {i}"\n'
        f'unit = "mmol/L"\nquestion = "What was the measured value number {i} at your visit?"\n'
        'help = "It is on the sheet that was handed to you at the end of your visit."\n'
        f'group = "Part {i // 6 + 1}"\naliases = ["value{i}"]\nexample = 5.0\n\n'
        for i in range(count)
    )
    names = ", ".join(f'"class {i}"' for i in range(classes))
    label = f'[label]\nname = "y"\nkind = "classes"\nclasses = [{names}]\nquestion = "What came next?"\n'
    return {"features": features, "label": label}
