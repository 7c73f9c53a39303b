"""What the page says before anyone has typed, in the reader's language, and what it reads to say it."""

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, get_args

from markupsafe import Markup, escape

from expost._common.validation import LanguageName, parameter_error
from expost.data.domain import Domain
from expost.data.labels import Label
from expost.data.texts import Contact, PublicationTexts
from expost.data.weights import Weighting
from expost.fitting.release import Release
from expost.page.promises import choice_plans, promised_together


class PublishedFile(Protocol):
    """What the page reads of an :class:`expost.Publication`, whose room comes after this one."""

    domain: Domain | None
    feature_names: tuple[str, ...] | None
    classes: tuple[str | bool | int | float, ...] | None
    insecure: str | None
    sha256: str

    @property
    def release(self) -> Release:
        """Coefficients, statistics, scales and guarantee."""

    @property
    def label(self) -> Label | None:
        """What was declared about the outcome."""

    @property
    def weighting(self) -> Weighting:
        """What was declared about weights."""

    @property
    def n_features(self) -> int:
        """The number of encoded columns, without intercepts."""

    @property
    def of_people(self) -> bool:
        """Whether the promise is to people with several records."""

    def to_json(self) -> str:
        """The text of the file."""


LANGUAGES: tuple[str, ...] = get_args(LanguageName)
"""The languages that the page speaks; each has a catalogue in ``languages``."""
# What scripts say; the other parts of a catalogue are for the template.
_SCRIPTS = ("answer", "timeline", "form", "file", "experts")
_OF_PAGE = ("months", "day", "first_day", "and", "entry", "decimal", "percent", "slashed")
_BOLD = re.compile(r"\*\*(.+?)\*\*")


@dataclass(frozen=True)
class Language:
    """One catalogue: sentences by their key, such as ``answer.headline``."""

    sentences: dict[str, dict[str, str]]
    code: str = "en"
    several: bool = False
    """Whether there are several publications: a sentence that has a plural then says that."""

    @classmethod
    def of(cls, code: str, *, several: bool = False) -> "Language":
        """The catalogue of a language, or ParameterError.

        Examples
        --------
        >>> Language.of("en").say("label.guess_value", n=74), Language.of("de").day("2026-06-03")
        ('At most 74 of 100 right', '3. Juni 2026')
        >>> Language.of("en").listed(["a", "b", "c"])
        'a, b and c'
        """
        if code not in LANGUAGES:
            raise parameter_error("language", f"one of {', '.join(LANGUAGES)}", code)
        return replace(_catalogue(code), several=several)

    def _sentence(self, key: str) -> str:
        part, name = key.split(".")
        plural = self.sentences[part].get(f"{name}_several") if self.several else None
        return self.sentences[part][name] if plural is None else plural

    def say(self, key: str, **named: object) -> str:
        """A sentence with what it names filled in."""
        return _filled(self._sentence(key), named)

    def rich(self, key: str, **named: object) -> Markup:
        """A sentence as markup: what is filled in is escaped, and the parts between two stars are bold."""
        pieces = [escape(_filled(piece, named)) for piece in _BOLD.split(self._sentence(key))]
        pieces[1::2] = [Markup("<strong>{}</strong>").format(piece) for piece in pieces[1::2]]
        return Markup("").join(pieces)

    def day(self, date: str) -> str:
        """A day as the language writes it, from one such as 2026-06-03."""
        year, month, day = map(int, date.split("-"))
        key = "page.first_day" if day == 1 else "page.day"
        return self.say(key, day=day, month=self.say("page.months").split()[month - 1], year=year)

    def listed(self, names: list[str]) -> str:
        """Names with commas between them and a word before the last."""
        *others, last = names
        return f"{', '.join(others)}{self.say('page.and')}{last}" if others else last

    @property
    def of_scripts(self) -> dict[str, dict[str, str]]:
        """The sentences that scripts need, in the plural where there are several publications."""
        wanted = {part: self.sentences[part] for part in _SCRIPTS} | {"page": dict.fromkeys(_OF_PAGE, "")}
        return {
            part: {name: self._sentence(f"{part}.{name}") for name in names if not name.endswith("_several")}
            for part, names in wanted.items()
        }


@cache
def _catalogue(code: str) -> Language:
    text = (files("expost.page") / "languages" / f"{code}.toml").read_text(encoding="utf-8")
    return Language(tomllib.loads(text), code)


def _filled(sentence: str, named: dict[str, object]) -> str:
    # Not str.format: what is filled in may have braces of its own.
    return re.sub(r"\{(\w+)\}", lambda found: str(named[found[1]]), sentence)


@dataclass(frozen=True)
class Fact:
    """One line of the privacy label."""

    term: str
    value: str
    sub: str = ""
    strong: bool = False
    """Whether a thick line follows."""
    email: str | None = None


@dataclass(frozen=True)
class Introduction:
    """The page's opening words, for the template."""

    eyebrow: str
    lead: str
    facts: tuple[Fact, ...]
    publisher: str | None
    contact: Contact | None
    reply: str | None
    """What the publisher promises to those who ask."""
    opt_out: bool
    """Whether all publishers promise to leave out whoever asks."""

    @classmethod
    def of(cls, publications: Sequence[PublishedFile], language: Language) -> "Introduction":
        """The opening words of a page; the first publication that declares a text decides it."""
        texts = [about(publication) for publication in publications]
        days = sorted({text.date for text in texts if text.date is not None})
        dates = language.listed([language.day(day) for day in days]) if days else None
        publisher, contact = _first(texts, "publisher"), _first(texts, "contact")
        return cls(
            eyebrow=" · ".join(filter(None, (publisher, dates))),
            lead=" ".join([*_unit(publications, language), *_lead(texts, publisher, language)]),
            facts=tuple(_facts(publications, contact, language)),
            publisher=publisher,
            contact=contact,
            reply=_first(texts, "reply"),
            opt_out=all(text.opt_out for text in texts),
        )


def _first(texts: Sequence[PublicationTexts], name: str) -> Any:
    """What the first publication says that says anything; None where none does."""
    return next(filter(None, (getattr(text, name) for text in texts)), None)


def about(publication: PublishedFile) -> PublicationTexts:
    """What the publisher declared about a publication; nothing without a domain."""
    declared = None if publication.domain is None else publication.domain.publication
    return PublicationTexts() if declared is None else declared


def right_of_hundred(loss: float) -> int:
    r"""How many of 100 guesses can be right, where 50 are by luck.

    .. math:: n = \max\{51, \lceil 100/(1 + e^{-L})\rceil\}

    A belief of 50:50 becomes at most :math:`1/(1 + e^{-L})`. Rounding never makes a promise stronger.

    Examples
    --------
    >>> [right_of_hundred(loss) for loss in (0.0, 0.1, 1.0, 50.0)]
    [51, 53, 74, 100]
    """
    return max(51, math.ceil(100.0 / (1.0 + math.exp(-loss))))


def page_language(publications: Sequence[PublishedFile], given: str | None) -> str:
    """The language of a page: one that is given, else the first that a publisher declared, else English."""
    declared = (about(publication).language for publication in publications)
    return given or next((one for one in declared if one is not None), "en")


def speaks(texts: PublicationTexts, language: Language) -> bool:
    """Whether a publisher's words are in the page's language, as far as she says in which they are."""
    return texts.language in (None, language.code)


def _lead(texts: Sequence[PublicationTexts], publisher: str | None, language: Language) -> list[str]:
    """Who published what. Words in another language are quoted, and complete no sentence."""
    alike = all(speaks(text, language) for text in texts)
    purpose = texts[0].purpose if alike and len(texts) == 1 else None
    who = "lead.publisher" if publisher else "lead.anonymous"
    known = {"publisher": publisher, "purpose": purpose, "count": len(texts)}
    said = language.say(f"{who}_purpose" if purpose else who, **known)
    return [said, *_whose(texts, language, alike=alike), language.say("lead.here")]


def _whose(texts: Sequence[PublicationTexts], language: Language, *, alike: bool) -> list[str]:
    """Whose records were used, and words that are not in the page's language as they are."""
    populations = {text.population for text in texts}
    if not alike:
        words = dict.fromkeys(word for text in texts for word in (text.purpose, text.population) if word)
        return [language.say("lead.quoted", words=" – ".join(words))] if words else []
    if len(populations) > 1 or None in populations:
        return []
    return [language.say("lead.population", population=populations.pop())]


def _unit(publications: Sequence[PublishedFile], language: Language) -> list[str]:
    """Who the promise is to, where that is not whoever has a row."""
    declared = [about(one) for one in publications if one.of_people]
    if not declared:
        return []
    texts = [text for text in declared if speaks(text, language)]
    everyone = _first(texts, "everyone") or language.say("form.every_person")
    rows = _first(texts, "row_words") or language.say("form.row_words")
    return [language.say("lead.unit", everyone=everyone, rows=rows)]


def _guess(releases: Sequence[Release], language: Language, *, insecure: bool) -> Fact:
    """How often a guess who is in the table can be right."""
    plans, choices = tuple(release.plan for release in releases), choice_plans(releases)
    value, reason, right = "none", "own", None
    if insecure:
        value, reason = "void", "test"
    elif (together := promised_together(plans, choices)) is not None:
        value, reason, right = "value", "luck", right_of_hundred(together[0])
    say = language.say
    return Fact(say("label.guess"), say(f"label.guess_{value}", n=right), say(f"label.guess_{reason}"))


def _facts(publications: Sequence[PublishedFile], contact: Contact | None, language: Language) -> list[Fact]:
    say = language.say
    insecure = any(publication.insecure for publication in publications)
    email = None if contact is None else contact.email
    asked = None if contact is None else email or contact.phone or contact.address
    return [
        Fact(say("label.who"), say("label.who_value")),
        Fact(say("label.names"), say("label.names_value"), strong=True),
        _guess([publication.release for publication in publications], language, insecure=insecure),
        Fact(say("label.protection"), say(f"label.protection_{'none' if insecure else 'value'}")),
        Fact(say("label.outside"), say("label.outside_value"), strong=True),
        Fact(say("label.questions"), asked or say("label.questions_none"), email=email),
    ]
