"""Texts travel from the domain file to the publication, and files without them stay as they are."""

import datetime
import json

import make
import pages
import pytest

from expost import (
    Category,
    ClassLabel,
    Contact,
    Domain,
    Number,
    NumberLabel,
    Publication,
    PublicationTexts,
    YesNo,
)
from expost.exceptions import DomainError, PublicationError
from expost.page.fields import Form

FILE = """
[[features]]
name = "crea"
kind = "number"
low = 0.3
high = 15.0
title = "Creatinine"
unit = "mg/dL"
units = { "µmol/L" = 0.0113 }
question = "What was your creatinine?"
help = "It is on the sheet of your blood test."
group = "Blood test"
aliases = ["creatinine", "KREA"]
example = 1.1

[[features]]
name = "sex"
kind = "category"
categories = ["f", "m"]
titles = ["Female", "Male"]
example = "f"

[[features]]
name = "dm"
kind = "yes_no"
example = true

[label]
name = "worse"
kind = "classes"
classes = ["0", "1"]
titles = ["No", "Yes"]
question = "Did it get worse?"
example = "0"

[publication]
title = "Kidney model"
publisher = "Norrdal University Clinic"
contact = { email = "privacy@norrdal.example", phone = "+46 31 000 00 00", address = "Parkgatan 4, Norrdal" }
purpose = "helps doctors see early whose kidney disease will get worse"
date = 2026-06-03
population = "adults seen at its Kidney Centre from 2015 to 2024"
opt_out = true
reply = "We answer within two weeks."
"""


def with_texts():
    """A publication whose domain has texts, and the same without them."""
    plain = pages.published("logistic", "independent")
    features = (plain.domain.features[0].model_copy(update={"title": "Your age"}), *plain.domain.features[1:])
    domain = plain.domain.model_copy(
        update={"features": features, "publication": PublicationTexts(publisher="A clinic", opt_out=False)}
    )
    return Publication.from_release(
        plain.release, classes=domain.classes, feature_names=domain.column_names, domain=domain
    ), plain


def test_every_text_is_read_and_written():
    domain = Domain.from_toml(FILE)
    assert domain.features[0].units == (("µmol/L", 0.0113),)
    assert domain.publication.date == "2026-06-03"
    assert domain.publication.contact.email == "privacy@norrdal.example"
    assert Domain.from_toml(domain.to_toml()) == domain
    assert Domain.model_validate(json.loads(json.dumps(domain.model_dump(mode="json")))) == domain
    hash(domain)
    outcome = NumberLabel(name="y", low=0.0, high=9.0, unit="kg", units={"lb": 0.4536}, example=3.0)
    other = Domain(features=domain.features, label=outcome)
    assert Domain.from_toml(other.to_toml()) == other


def test_a_publication_holds_them_and_reads_them_back():
    publication, plain = with_texts()
    document = json.loads(publication.to_json())
    assert document["domain"]["publication"] == {"publisher": "A clinic", "opt_out": False}
    assert list(document["domain"]["features"][0])[-1] == "title"
    assert Publication.from_json(publication.to_json()) == publication
    assert publication != plain
    assert (publication.release.coefficients == plain.release.coefficients).all()


def test_files_without_texts_keep_every_byte():
    for stored in make.read("publications").values():
        again = json.loads(Publication.from_json(json.dumps(stored)).to_json())
        assert json.dumps(again) == json.dumps(stored)
    domain = pages.published("logistic", "independent").domain
    assert list(domain.model_dump(mode="json")) == ["features", "label", "norm"]
    assert list(domain.features[0].model_dump()) == ["name", "kind", "low", "high", "scale", "missing"]


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        ('title = "%s"' % ("x" * 121), "at most 120"),
        ('title = ""', "at least 1"),
        ('help = "one\\ntwo"', "one line of plain text"),
        ('title = "abc\\u202Etxt"', "one line of plain text"),
        ('title = " x"', "without blanks"),
        ('units = { "kg" = 2.0 }', "units other than `unit`"),
        ('unit = "kg"\nunits = { "kg" = 2.0 }', "units other than `unit`"),
        ('unit = "kg"\nunits = { "g" = 0.0 }', "must be above 0"),
        ('units = "kg"', "such as { weeks = 7 }; the unit of the column is `unit`"),
        ("example = 9.0", "example within its bounds"),
        ('aliases = ["Y "]', "without blanks"),
        ('aliases = ["Y"]', "names of no other field"),
        ('titles = ["a"]', "does not belong there"),
    ],
)
def test_what_no_page_could_show_is_refused(declared, complaint):
    text = f'[[features]]\nname = "x"\nkind = "number"\nlow = 0.0\nhigh = 1.0\n{declared}\n'
    with pytest.raises(DomainError, match=complaint):
        Domain.from_toml(text + '[label]\nname = "y"\nkind = "classes"\nclasses = ["a", "b"]\n')


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ({"date": "2026-02-30"}, "must be a day"),
        ({"date": "3 June"}, "must be a day"),
        ({"date": datetime.datetime(2026, 6, 3, 12)}, "valid string"),
        ({"contact": {}}, "must have `email`, `phone` or `address`"),
        ({"contact": {"email": "a@b.example?bcc=x"}}, "one plain e-mail address"),
        ({"reply": "x" * 301}, "at most 300"),
        ({"rows": 12}, "Extra inputs"),
    ],
)
def test_bad_texts_about_the_publication_are_refused(texts, complaint):
    with pytest.raises(ValueError, match=complaint):
        PublicationTexts.model_validate(texts)


def test_values_and_examples_must_belong_together():
    with pytest.raises(ValueError, match="2 different texts"):
        Category(name="sex", categories=("f", "m"), titles=("Female", "Female"))
    with pytest.raises(ValueError, match="one of its values"):
        ClassLabel(name="y", classes=("a", "b"), example="c")
    assert YesNo(name="dm", example=False).example is False
    assert Contact(phone="1").email is None


def test_a_file_with_a_bad_text_is_refused_in_one_sentence():
    document = json.loads(with_texts()[0].to_json())
    document["domain"]["publication"]["publisher"] = "x" * 500
    with pytest.raises(PublicationError, match=r"domain\.publication\.publisher"):
        Publication.from_json(json.dumps(document))


def test_words_may_differ_between_publications_and_units_may_not():
    texts, plain = with_texts()
    fields = Form.of([plain, texts]).fields
    assert fields[0]["title"] == "Your age"
    metres = plain.domain.features[0].model_copy(update={"unit": "months"})
    domain = plain.domain.model_copy(update={"features": (metres, *plain.domain.features[1:])})
    other = Publication.from_release(
        plain.release, classes=domain.classes, feature_names=domain.column_names, domain=domain
    )
    with pytest.raises(PublicationError, match="declare 'age' differently"):
        Form.of([plain, other])
    assert isinstance(domain.features[0], Number)
