"""Draw private choices among public candidates, exactly: the exponential mechanism in whole numbers."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from expost._common.validation import parameter_error
from expost.data.choices import MOST_CANDIDATES, ONE, Choice, RangeChoice, rounded_scores
from expost.data.ranges import Column, ReadAs
from expost.fitting.noise import NoiseSource, noise_source
from expost.ledger import Account
from expost.privacy.choices import ChoicePlan

Noted: TypeAlias = tuple[str, ChoicePlan]
"""A plan with the note of its entry."""


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
    named, began = tuple(candidates), datetime.now(UTC)
    if not 2 <= len(named) <= MOST_CANDIDATES or len(set(named)) < len(named):
        wanted = f"between 2 and {MOST_CANDIDATES:,} different texts or numbers"
        raise parameter_error("candidates", wanted, f"{len(named)} of them")
    if not all(isinstance(one, str | int | float) for one in named):
        raise parameter_error("candidates", "texts or numbers", "something else")
    plan, noise = ChoicePlan(epsilon, len(named), unit), noise_source(random_state)
    rate = Fraction(plan.epsilon) / ONE
    sums = rounded_scores(scores, len(named)).sum(axis=0).tolist()
    entries = _entered(account, [("choice", plan)], insecure=noise.insecure, began=began)
    choice = Choice(
        candidates=named,
        place=draw([rate * one for one in sums], noise),
        epsilon=float(plan.epsilon),
        unit=unit,  # type: ignore[arg-type]  # checked by the plan
        id=secrets.token_hex(32),
        insecure=noise.insecure,
    )
    _finished(account, entries, [choice])
    return choice


def choose_ranges(
    asked: Sequence[RangeChoice],
    columns: Mapping[ReadAs, Column],
    *,
    account: Account | None = None,
    began: datetime | None = None,
    random_state: Any = None,
) -> tuple[RangeChoice, ...]:
    """Choose ends of columns' ranges; all of them are entered in the account first, or none is chosen.

    Entries have the time ``began``, when nothing of the table had been read.
    """
    noise = noise_source(random_state)
    exponents = [one.exponents(columns[one.read_as].histogram(one)) for one in asked]
    entries = _entered(account, _plans(asked), insecure=noise.insecure, began=began)
    found = tuple(
        one.model_copy(
            update={
                "place": draw(own, noise),
                "id": secrets.token_hex(32),
                "insecure": noise.insecure,
            }
        )
        for one, own in zip(asked, exponents, strict=True)
    )
    _finished(account, entries, found)
    return found


def uncounted(choices: Sequence[RangeChoice], account: Account) -> tuple[RangeChoice, ...]:
    """The choices that an account does not count yet."""
    counted = {entry.sha256 for entry in account.entries if "candidates" in entry.plan}
    return tuple(one for one in choices if one.id not in counted)


def count_choices(choices: Sequence[RangeChoice], account: Account, *, began: datetime | None = None) -> None:
    """Enter choices that were made without an account, each once, with the time ``began``."""
    left = uncounted(choices, account)
    if left:
        insecure = any(one.insecure for one in left)
        _finished(account, _entered(account, _plans(left), insecure=insecure, began=began), left)


def _plans(choices: Sequence[RangeChoice]) -> list[Noted]:
    return [(f"range of {one.column}: {one.end}", one.plan) for one in choices]


def _entered(
    account: Account | None, plans: Sequence[Noted], *, insecure: bool, began: datetime | None
) -> list[int]:
    return [] if account is None else account.enter_all(plans, insecure=insecure, began=began)


def _finished(account: Account | None, entries: Sequence[int], choices: Sequence[Choice]) -> None:
    if account is not None:
        for number, choice in zip(entries, choices, strict=True):
            account.finish(number, sha256=choice.id)
