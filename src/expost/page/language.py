"""The sentences of the page, in the reader's language."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from markupsafe import Markup, escape

from expost._common.validation import parameter_error

LANGUAGES = ("en", "de")
"""The languages that the page speaks; each has a catalogue in ``languages``."""
# What scripts say; the other parts of a catalogue are for the template.
_SCRIPTS = ("answer", "timeline", "form", "file", "experts")
_BOLD = re.compile(r"\*\*(.+?)\*\*")


@dataclass(frozen=True)
class Language:
    """One catalogue: sentences by their key, such as ``answer.headline``."""

    code: str
    sentences: dict[str, dict[str, str]]

    @classmethod
    def of(cls, code: str) -> "Language":
        """The catalogue of a language, or ParameterError.

        Examples
        --------
        >>> Language.of("en").say("label.guess_value", n=74)
        'At most 74 of 100 right'
        """
        if code not in LANGUAGES:
            raise parameter_error("language", f"one of {', '.join(LANGUAGES)}", code)
        return _catalogue(code)

    def say(self, key: str, **named: object) -> str:
        """A sentence with what it names filled in."""
        part, name = key.split(".")
        return _filled(self.sentences[part][name], named)

    def rich(self, key: str, **named: object) -> Markup:
        """A sentence as markup: what is filled in is escaped, and the parts between two stars are bold."""
        part, name = key.split(".")
        bold = Markup("<strong>{}</strong>")
        pieces = _BOLD.split(self.sentences[part][name])
        filled = [_filled(piece, named) for piece in pieces]
        return Markup("").join(
            bold.format(piece) if place % 2 else escape(piece) for place, piece in enumerate(filled)
        )

    def day(self, date: str) -> str:
        """A day as the language writes it, from one such as 2026-06-03.

        Examples
        --------
        >>> Language.of("en").day("2026-06-03"), Language.of("de").day("2026-06-03")
        ('3 June 2026', '3. Juni 2026')
        """
        year, month, day = map(int, date.split("-"))
        return self.say("page.day", day=day, month=self.say("page.months").split()[month - 1], year=year)

    def listed(self, names: list[str]) -> str:
        """Names with commas between them and a word before the last.

        Examples
        --------
        >>> Language.of("en").listed(["a", "b", "c"])
        'a, b and c'
        """
        *others, last = names
        return f"{', '.join(others)}{self.say('page.and')}{last}" if others else last

    @property
    def of_scripts(self) -> dict[str, dict[str, str]]:
        """The sentences that scripts need."""
        return {part: self.sentences[part] for part in _SCRIPTS} | {
            "page": {key: self.sentences["page"][key] for key in ("months", "day", "and")}
        }


@cache
def _catalogue(code: str) -> Language:
    text = (files("expost.page") / "languages" / f"{code}.toml").read_text(encoding="utf-8")
    return Language(code, tomllib.loads(text))


def _filled(sentence: str, named: dict[str, object]) -> str:
    # Not str.format: what is filled in may have braces of its own.
    return re.sub(r"\{(\w+)\}", lambda found: str(named[found[1]]), sentence)
