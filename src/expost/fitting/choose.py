"""Draw private choices among public candidates, exactly: the exponential mechanism in whole numbers."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from expost._common.validation import check_positive, parameter_error
from expost.data.choices import MOST_CANDIDATES, ONE, Choice, RangeChoice, SomeChoice, rounded_scores
from expost.data.ranges import Column, ReadAs
from expost.data.values import attempted, plain_class
from expost.exceptions import printable
from expost.fitting.noise import NoiseSource, noise_source
from expost.ledger import Account, Noted, check_account
from expost.ledger.entries import LONGEST_NAME
from expost.privacy.choices import ChoicePlan

_CANDIDATES = "texts or finite numbers that a file can hold"


def draw(exponents: Sequence[Fraction], noise: NoiseSource) -> int:
    r"""A place with probability :math:`\propto e^{x}`, exactly, from rational exponents.

    A place is drawn evenly and kept with probability :math:`e^{-(x_{\max} - x)}`, until one is kept.
    """
    top = max(exponents)
    while True:
        place = noise.below(len(exponents))
        if _happens(top - exponents[place], noise):
            return place


def _happens(rate: Fraction, noise: NoiseSource) -> bool:
    r"""True with probability :math:`e^{-\gamma}` (Canonne, Kamath and Steinke 2020, algorithm 1)."""
    while rate > 1:
        if not _happens_below(Fraction(1), noise):
            return False
        rate -= 1
    return _happens_below(rate, noise)


def _happens_below(rate: Fraction, noise: NoiseSource) -> bool:
    count = 1
    while noise.below(rate.denominator * count) < rate.numerator:
        count += 1
    return count % 2 == 1


def choose(
    candidates: Sequence[Any],
    scores: ArrayLike,
    *,
    epsilon: float,
    unit: str = "row",
    account: Account | None = None,
    random_state: Any = None,
) -> Choice:
    r"""Choose one of several public candidates by a sum over the records, with differential privacy.

    Candidate :math:`w` is chosen with probability :math:`\propto e^{\epsilon\sum_i u_w(z_i)}`
    (:class:`expost.ChoicePlan`). The draw is exact: scores are whole numbers of steps of :math:`2^{-20}`, and
    all arithmetic is rational, so there is no rounding to attack. A candidate whose sum is less than the best
    one's by :math:`t/\epsilon` is chosen at most :math:`e^{-t}` times as often.

    What the choice published is paid for; what it was made for is not: a model that uses it costs as much as
    ever, and :func:`expost.compose` adds the two.

    Parameters
    ----------
    candidates
        Texts or numbers, two or more, decided on without the table.
    scores
        The score of each record for each candidate, records by candidates, between 0 and 1; others are cut.
        A row must be a function of that record alone, or of all rows of one person with ``unit="person"``,
        and of public values. A mean over the table, a rank or anything else that somebody else's record
        changes breaks the promise.
    epsilon
        The promise; its δ is 0.
    unit
        What a row of scores belongs to, ``"row"`` or ``"person"``.
    account
        The table's account in a ledger, which is charged before anything is drawn.
    random_state
        A seed, for tests only: the choice is then marked as insecure.

    Privacy
    -------
    Reads the table; the result is public, and costs ``epsilon``.

    Examples
    --------
    >>> import numpy as np, expost
    >>> visits = np.array([0, 1, 1, 2, 1, 3, 1, 1, 1, 0] * 200)
    >>> scores = (visits[:, None] <= np.array([0, 1, 2])).astype(float)
    >>> expost.choose([0, 1, 2], scores - 0.3 * np.array([0, 1, 2]), epsilon=0.1).chosen
    1
    """
    if not isinstance(candidates, list | tuple | np.ndarray):
        wanted = "a list, in the order of the columns of `scores`"
        raise parameter_error("candidates", wanted, type(candidates).__name__)
    named, began = tuple(map(plain_class, candidates)), datetime.now(UTC)
    if account is not None:
        check_account(account)
    if not all(isinstance(one, str | int | float) for one in named):
        raise parameter_error("candidates", _CANDIDATES, "something else")
    if not 2 <= len(named) <= MOST_CANDIDATES or len(set(named)) < len(named):
        wanted = f"between 2 and {MOST_CANDIDATES:,} different texts or numbers"
        raise parameter_error("candidates", wanted, f"{len(named)}, of which {len(set(named))} differ")
    plan = ChoicePlan(check_positive("epsilon", epsilon), len(named), unit)
    # Whatever is drawn can be written and read again: that is known before anything is spent.
    asked = attempted(lambda: _written(candidates=named, epsilon=plan.epsilon, unit=unit))
    if asked is None:
        raise parameter_error("candidates", _CANDIDATES, "something else")
    rate, noise = Fraction(plan.epsilon) / ONE, noise_source(random_state)
    sums = rounded_scores(scores, len(named)).sum(axis=0).tolist()
    (choice,) = _drawn([asked], [[rate * one for one in sums]], noise, account, began)
    return choice


def _written(**fields: Any) -> Choice:
    """A choice with these fields, as it is read from its file."""
    return Choice.from_json(Choice(place=0, id="0" * 64, **fields).to_json())


def choose_ranges(
    asked: Sequence[RangeChoice],
    columns: Mapping[ReadAs, Column],
    *,
    account: Account | None = None,
    promised_to: str | None = None,
    began: datetime | None = None,
    random_state: Any = None,
) -> tuple[RangeChoice, ...]:
    """Choose ends of columns' ranges; all of them are entered in the account first, or none is chosen.

    Entries have the time ``began``, when nothing of the table had been read, and say to whom it is promised
    where the choices do not.
    """
    noise = noise_source(random_state)
    exponents = [one.exponents(columns[one.read_as].histogram(one)) for one in asked]
    return _drawn(asked, exponents, noise, account, began, promised_to)


def _drawn(
    asked: Sequence[SomeChoice],
    exponents: Sequence[Sequence[Fraction]],
    noise: NoiseSource,
    account: Account | None,
    began: datetime | None,
    promised_to: str | None = None,
) -> tuple[SomeChoice, ...]:
    """Choices with names of their own, which an account has counted when the first place is drawn."""
    named = [
        one.model_copy(update={"id": secrets.token_hex(32), "insecure": noise.insecure}) for one in asked
    ]
    if account is not None:
        account.enter_all(noted_choices(named, promised_to), began=began)
    return tuple(
        one.model_copy(update={"place": draw(own, noise)}) for one, own in zip(named, exponents, strict=True)
    )


def noted_choices(choices: Iterable[Choice], promised_to: str | None = None) -> list[Noted]:
    """Choices as an account enters them, each once."""
    return [Noted(_note(one), one.plan, one.id, one.insecure, promised_to) for one in choices]


def _note(choice: Choice) -> str:
    if not isinstance(choice, RangeChoice):
        return "choice"
    # A column may have any name, and a note is a line of text.
    return f"range of {printable(choice.column)[:LONGEST_NAME]}: {choice.end}"
