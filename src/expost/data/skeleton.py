"""A domain file that explains itself, with the names of a table's columns and everything else left open."""

import re
import shlex
from collections.abc import Mapping

from expost.data.dialect import PLAIN, Dialect, delimiter_advice
from expost.data.refusals import PLACEHOLDER
from expost.data.texts import quoted, toml_value
from expost.exceptions import DomainError

_OPENING = f"""\
# The domain file: what is publicly known about a record, before anyone looks at
# the table. Only the names of the columns (and, from Parquet, their types) were
# taken from the table, and no value.
#
# Replace every "{PLACEHOLDER}". Take the values from what the columns mean: a codebook,
# a law, common sense. Never compute them from the table: the privacy guarantee
# does not cover what is learnt that way. docs/domain.md explains every key.
#
# Each feature is of one of six kinds:
#   kind = "number"    low = 0.0  high = 120.0        beyond them it counts as the bound
#                      nobody knows them? low = "private" and a grid: expost choose
#   kind = "category"  categories = ["a", "b"]        any other value is refused
#   kind = "yes_no"                                   yes/no, true/false or 1/0
#   kind = "date"      low = 1900-01-01  high = 2030-12-31     counts days
#   kind = "month"     or kind = "weekday"            of a date, around a circle
# A missing value is refused, unless `missing` says what it counts as; with
# recorded = true the model also has a column for that it was not recorded.
# The texts (title, unit, question and so on) are what people read on the page, and
# `example` is the value of an invented person whom it shows first. All are optional:
# delete the # in front of those that you write.
#
# The effect of a number or date may bend: knots = [30, 45, 60]. Two features whose
# effects depend on each other, such as age and smoker, are named at the end of the file:
#   [[interactions]]
#   product = ["age", "smoker"]
#
# `norm` is the longest that an encoded record may be: longer ones are scaled down,
# and the noise grows with it. The default follows from the number of features.
# norm = 2.0
"""

_IGNORE = """\
# Columns that the model must not use. Names that are here were taken by how they
# sound: delete the line of a column that you want, and write a part for it, as below.
# Move others here, and delete their parts:
#   - identifiers (patient number, name): they point to one person, and say
#     nothing about others;
#   - free text (notes, remarks): nobody knows beforehand what is written in it;
#   - dates, if an age or a length of stay says what you need: add that as a
#     column instead. A full date also makes a person easy to find.
"""

_PERSON = """\
# Do people have several rows, such as visits? Then delete the # below, and the column
# from `ignore`: the promise is then to each person with all of her rows. An id in two
# spellings is two people. Each person counts once, and a row of hers weighs one divided
# by the number of her rows: the model is of the average person. With `rows_per_person`
# (a number that few people exceed, known without the table) rows count alike: the model
# is of the average row, and its noise is that number times as large for each row.
"""

_TABLE = {
    "delimiter": ('";"', "what separates the cells"),
    "decimal": ('","', "the decimal mark of numbers"),
    "encoding": ('"cp1252"', 'what Excel on Windows writes, or "utf-8-sig" with a BOM'),
    "missing_words": ('["NA", "-"]', "words for a missing value, as empty cells are"),
    "dates": ('"DD.MM.YYYY"', "how dates are written"),
}

_PUBLICATION = """\
# What you tell the people who read the page. All of it is public and optional, and
# cannot be added after a fit. Write nothing that was learnt from the table, such as
# how many people are in it.
# [publication]
# title = "..."                 # the name of the model
# publisher = "..."             # who publishes it
# contact = { email = "privacy@clinic.example" }    # or phone, or address
# purpose = "..."               # completes: a computer model that ...
# date = 2026-01-31             # the day of the publication
# population = "..."            # whose records: such as patients of 2025
# everyone = "every patient"    # with `person`: whom the promise is made to
# row_word = "visit"            # and what she has several of
# row_words = "visits"
# opt_out = true                # if you leave out next time whoever asks for it
# reply = "..."                 # what you promise to those who ask
# language = "de"               # the language of the page: en, de, fr or es
"""

# The texts of a field, each with the kinds that have it where not all do, and with an example of it.
_TEXTS = {
    "title": (None, '"..."'),
    "unit": (("number",), '"..."'),
    "units": (("number",), '{ "other" = 0.01 }  # other units, and what to multiply by'),
    "question": (None, '"..."'),
    "help": (None, '"..."'),
    "group": (None, '"..."'),
    "titles": (("category", "classes"), '["...", "..."]     # one for each value'),
    "aliases": (None, '["..."]           # other names in a person\'s own file'),
}
# Words in names of columns, in English and in German, and what they say about a column.
_IGNORED = {  # the last that fits counts
    "by its name free text": "comment comments kommentar note notes notiz notizen remark remarks bemerkung "
    "bemerkungen text freitext description beschreibung",
    "by its name an identifier": "id ids uuid guid mrn ssn pid name vorname nachname firstname lastname "
    "surname email mail phone telefon address adresse street strasse straße iban "
    "fallnr fallnummer aktenzeichen",
}
# The name of a column that says whose a row is has no other words than these, and one of the first kind.
_PEOPLE = (
    "id ids uuid mrn ssn pid person personid patient patientid patientin subject participant customer client "
    "member user respondent insured kunde kundin kunden kundennr kundennummer patienten patientennr "
    "patientennummer personen personennr personennummer proband probandin probanden probandennr teilnehmer "
    "teilnehmerin versicherte versicherten versichertennr versichertennummer mitglied mitgliedsnr "
    "mitgliedsnummer"
)
_NUMBERS = "nr no num number nummer code key"
# Letters of a name that an error shows.
_LONGEST_NAME = 60
_WEIGHTS = (
    "weight weights weighting wgt wt pweight fweight gewicht gewichtung hochrechnungsfaktor poids peso "
    "ponderacion ponderación pondération ponderation"
)
# What a missing value may count as, and bounds, for each kind of feature.
_MISSING = {"number": "40.0", "category": '"a"', "yes_no": "false", "date": "1970-01-01"}
_EXAMPLES = _MISSING | {"classes": '"..."'}
_BOUNDS = {"number": ("0.0", "120.0"), "date": ("1900-01-01", "2030-12-31")}
_DATES = frozenset(["date", "datum", "timestamp", "birthdate", "birthday", "geburtsdatum", "dob"])


def skeleton(kinds: Mapping[str, str | None], label: str | None = None, dialect: Dialect = PLAIN) -> str:
    """A domain file with the names of the columns and everything else still to be declared.

    Columns that are identifiers or free text by their names are proposed for ``ignore``, and the first whose
    name says that it tells people apart for ``person``. Columns of unknown kind start as numbers. The outcome
    is ``label``, or the last column.

    Privacy
    -------
    Public: names and types only. :meth:`expost.Domain.from_toml` refuses the text until it is filled in.
    """
    label = _outcome(kinds, label, dialect)
    others = [name for name in kinds if name != label]
    ignored, person = _ignored(others), next(filter(_tells_people_apart, others), None)
    if person is not None:
        ignored[person] = "by its name an identifier"
    if len(ignored) == len(others):
        ignored = {}
    entries = [f"    {quoted(name)},  # {why}\n" for name, why in ignored.items()]
    listed = "".join(["\n" * bool(entries), *entries])
    return "\n".join(
        [
            _OPENING,
            *([] if person is None else [_person(person)]),
            f"{_IGNORE}ignore = [{listed}]\n",
            _table(dialect),
            *(_feature(name, kinds[name]) for name in others if name not in ignored),
            _label(label, numeric=kinds[label] == "number"),
            _PUBLICATION,
        ]
    )


def _outcome(kinds: Mapping[str, str | None], label: str | None, dialect: Dialect) -> str:
    if len(kinds) < 2:
        title = "".join(
            f"Its first line names one, {name[:_LONGEST_NAME]!r}: if that is a title, delete the line"
            for name in kinds
        )
        advice = delimiter_advice(kinds, dialect) or title
        raise DomainError(
            "a table must have at least two columns: a feature and the outcome."
            + f" {advice}." * bool(advice)
        )
    label = list(kinds)[-1] if label is None else label
    if label not in kinds:
        raise DomainError(f"the table has no column {label!r} to be the outcome. Check `--label`.")
    return label


def _ignored(names: list[str]) -> dict[str, str]:
    """The columns that are identifiers, free text or weights by their names, and why."""
    reasons = {why: set(words.split()) for why, words in _IGNORED.items()}
    ignored = {name: why for name in names for why, words in reasons.items() if _words(name) & words}
    weights = [name for name in names if _words(name) & set(_WEIGHTS.split()) and name not in ignored]
    return ignored | {name: _weight(name) for name in weights}


def _tells_people_apart(name: str) -> bool:
    words, people = _words(name) - {""}, set(_PEOPLE.split())
    return bool(words & people) and words <= people | set(_NUMBERS.split())


def _weight(name: str) -> str:
    command = f"expost fit --weight {shlex.quote(name)}"
    return f"how much a record counts? Then: {command}. A body's weight is a feature"


def _person(name: str) -> str:
    """A proposal, in comments: whether people have several rows is not in a column's name."""
    return f"{_PERSON}# person = {quoted(name)}\n# rows_per_person = 12\n"


def _words(name: str) -> set[str]:
    """The words of a name such as ``PatientID`` or ``patient_id``, in lower case."""
    parted = re.sub(r"([a-zäöüß0-9])([A-ZÄÖÜ])", r"\1 \2", name)
    return set(re.split(r"[\W_]+", parted.lower()))


def _table(dialect: Dialect) -> str:
    """How the file is written; what is not declared is shown as a comment."""
    text = "# How the table is written, if it is not CSV with commas, in UTF-8, with 1.5 for 3/2:\n"
    text += f"{'# ' * (dialect == PLAIN)}[table]\n"
    for key, (example, meaning) in _TABLE.items():
        value, usual = getattr(dialect, key), getattr(PLAIN, key)
        line = f"{key} = {example if value == usual else toml_value(value)}"
        text += f"{'# ' * (value == usual)}{line:<30}# {meaning}\n"
    return text


def _feature(name: str, kind: str | None) -> str:
    known = kind if kind and kind in _MISSING else "date" if _words(name) & _DATES else "number"
    notes = {f'kind = "{known}"': "or " + ", ".join(f'"{one}"' for one in _MISSING if one != known)}
    bounds = zip(("low", "high"), _BOUNDS.get(known, ()), strict=False)
    notes |= {f'{bound} = "{PLACEHOLDER}"': f"such as {one}" for bound, one in bounds}
    if kind not in _MISSING:
        notes['# categories = ["a", "b"]'] = "for a category, in place of low and high"
    notes[f"# missing = {_MISSING[known]}"] = "what a missing value counts as"
    lines = [f"{line:<30}# {note}\n" for line, note in notes.items()]
    if known == "category":
        lines.insert(1, f'categories = ["{PLACEHOLDER}", "{PLACEHOLDER}"]\n')
    return f"[[features]]\nname = {quoted(name)}\n{''.join(lines)}{_texts(known)}"


def _texts(kind: str) -> str:
    own = {key: value for key, (kinds, value) in _TEXTS.items() if kinds is None or kind in kinds}
    return "".join(f"# {key} = {value}\n" for key, value in {**own, "example": _EXAMPLES[kind]}.items())


def _label(name: str, *, numeric: bool) -> str:
    number = f'kind = "number"\nlow = "{PLACEHOLDER}"\nhigh = "{PLACEHOLDER}"\n'
    classes = f'kind = "classes"\nclasses = ["{PLACEHOLDER}", "{PLACEHOLDER}"]\n'
    chosen, other = (number, classes) if numeric else (classes, number)
    return (
        "# The outcome: two classes or more, a number, a count or a positive amount (kind =\n"
        '# "count", "amount", with low and high as a number has them). Write classes as the table\n'
        "# has them: texts, [0, 1] or [false, true]. Of two, positive scores predict the second.\n"
        '# Three or more that have an order, from the lowest: kind = "ordered". A time to an event\n'
        '# has kind = "time" with event = "its column of yes and no", periods = 4, length = 90.\n'
        "# Few periods are better: 100 rows times the square of their number, as 1,600 for 4, at\n"
        "# epsilon 1, and twice as many at 0.3. With fewer rows, predicted times are too short.\n"
        f"[label]\nname = {quoted(name)}\n{chosen}"
        f"# For {'classes' if numeric else 'a number'} write instead:\n"
        + "".join(f"# {line}\n" for line in other.splitlines())
        + _texts("number" if numeric else "classes")
    )
