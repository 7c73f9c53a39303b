"""What the page says before anyone has typed: who published what, what is promised, and whom to ask."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from expost.data.texts import Contact, PublicationTexts
from expost.page.base import Published
from expost.page.language import Language


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
    """Who publishes, where that is declared."""
    contact: Contact | None
    """Whom to ask, where that is declared."""
    reply: str | None
    """What the publisher promises to those who ask."""
    opt_out: bool
    """Whether all publishers promise to leave out whoever asks."""

    @classmethod
    def of(cls, publications: Sequence[Published], language: Language) -> "Introduction":
        """The opening words of a page; the first publication that declares a text decides it."""
        texts = [about(publication) for publication in publications]
        days = sorted({text.date for text in texts if text.date is not None})
        dates = language.listed([language.day(day) for day in days]) if days else None
        publisher = next((text.publisher for text in texts if text.publisher), None)
        contact = next((text.contact for text in texts if text.contact), None)
        return cls(
            eyebrow=" · ".join(part for part in (publisher, dates) if part),
            lead=" ".join(_lead(texts, publisher, language)),
            facts=tuple(_facts(publications, contact, language)),
            publisher=publisher,
            contact=contact,
            reply=next((text.reply for text in texts if text.reply), None),
            opt_out=all(text.opt_out for text in texts),
        )


def about(publication: Published) -> PublicationTexts:
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


def _lead(texts: Sequence[PublicationTexts], publisher: str | None, language: Language) -> list[str]:
    several = "_several" if len(texts) > 1 else ""
    purpose = texts[0].purpose
    if several:
        key = "lead.several" if publisher else "lead.anonymous_several"
    elif publisher:
        key = "lead.purpose" if purpose else "lead.plain"
    else:
        key = "lead.anonymous_purpose" if purpose else "lead.anonymous"
    said = [language.say(key, publisher=publisher, purpose=purpose, count=len(texts))]
    populations = {text.population for text in texts}
    if len(populations) == 1 and None not in populations:
        said.append(language.say(f"lead.population{several}", population=populations.pop()))
    return [*said, language.say(f"lead.here{several}")]


def _facts(publications: Sequence[Published], contact: Contact | None, language: Language) -> list[Fact]:
    say = language.say
    plans = [publication.release.plan for publication in publications]
    guess = Fact(say("label.guess"), say("label.guess_none"), say("label.guess_own"))
    insecure = any(publication.insecure for publication in publications)
    if insecure:
        guess = Fact(say("label.guess"), say("label.guess_void"), say("label.guess_test"))
    elif all(plan.profile is not None for plan in plans):
        right = right_of_hundred(sum(plan.epsilon for plan in plans))
        guess = Fact(say("label.guess"), say("label.guess_value", n=right), say("label.guess_luck"))
    shown = (
        say("label.questions_none") if contact is None else contact.email or contact.phone or contact.address
    )
    return [
        Fact(say("label.who"), say("label.who_value")),
        Fact(say("label.names"), say("label.names_value"), strong=True),
        guess,
        Fact(say("label.protection"), say(f"label.protection_{'none' if insecure else 'value'}")),
        Fact(say("label.outside"), say("label.outside_value"), strong=True),
        Fact(say("label.questions"), shown or "", email=None if contact is None else contact.email),
    ]
