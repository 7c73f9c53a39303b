"""The errors and warnings of the library.

Every message names the argument, the constraint, what was got and the way out, and has public
values only: a message may reach a log that the people in the table never agreed to. Each class is
explained in ``docs/messages.md`` under the heading that is its ``slug``: ``private-state`` for
:class:`PrivateStateError`.
"""

import re
from typing import ClassVar


def printable(text: str) -> str:
    r"""Escape what a terminal would obey or hide: control characters, line ends, changes of direction.

    Names in a file are chosen by whoever wrote it.

    Examples
    --------
    >>> printable("age\x1b[2J, Größe")
    'age\\x1b[2J, Größe'
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _slug(kind: type) -> str:
    words = re.findall("[A-Z][a-z]+", kind.__name__)
    return "-".join(words[:-1]).lower()


class ExpostError(Exception):
    """Base of every error that this library raises on purpose."""

    slug: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        cls.slug = _slug(cls)

    def __str__(self) -> str:
        return printable(super().__str__())


class ParameterError(ExpostError, ValueError):
    """A public parameter is outside its range."""


class DomainError(ExpostError, ValueError):
    """A table or a record does not fit what was declared about it."""


class LossError(ExpostError, ValueError):
    """A loss function is not what it declares itself to be."""


class CalibrationError(ExpostError, ValueError):
    """No noise scale is certified to meet the budget under the given parameters."""


class SolverError(ExpostError, RuntimeError):
    """The minimiser was not reached; nothing has been released."""


class PrivateStateError(ExpostError, RuntimeError):
    """The private part of a fit is needed and is not here, or would leave memory."""


class PublicationError(ExpostError, ValueError):
    """Something cannot be published, or a published file cannot be trusted to mean what it says."""


class FileError(ExpostError, ValueError):
    """A file cannot be read as what it should be, or must not be written under that name."""


class EngineError(ExpostError, RuntimeError):
    """A cluster did not finish its work; nothing has been released."""


class ResourceError(ExpostError, MemoryError):
    """A computation would need more memory than this machine has; nothing was drawn and nothing spent."""


class LedgerError(ExpostError, ValueError):
    """A ledger cannot be read or written, or has no such account."""


class BudgetError(ExpostError, RuntimeError):
    """A fit would spend more than its account may; nothing was spent."""


class MissingExtraError(ExpostError, ImportError):
    """Something needs a package that is an extra of this library's and is not installed."""


class ExpostWarning(UserWarning):
    """Base of every warning that this library gives."""

    slug: ClassVar[str] = "warning"

    def __init_subclass__(cls) -> None:
        cls.slug = cls.__dict__.get("slug", _slug(cls))


class PrivacyLeakWarning(ExpostWarning):
    """Something that should have been declared was learnt from the table, outside the guarantee."""


class UndeclaredWarning(ExpostWarning):
    """Something that only the curator knows was not declared, and the default suits few tables."""


class LargeDeltaWarning(ExpostWarning):
    """The probability with which nothing is promised is larger than any table of people allows."""


class UncountedWarning(ExpostWarning):
    """Several fits of one kind were made without an account that adds up what they spend."""


class LedgerWarning(ExpostWarning):
    """A fit was counted and published, but its entry could not be marked as finished."""

    slug = "ledger-warning"
