"""What was promised for all publications of a page together: by the certified composition of their plans."""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache

from expost.data.choices import counted_once
from expost.exceptions import MissingExtraError
from expost.fitting.release import Release
from expost.privacy.choices import ChoicePlan
from expost.privacy.composition import compose
from expost.privacy.plan import Plan
from expost.privacy.profile_curve import AnyPlan


@cache
def promised_together(
    plans: tuple[Plan, ...], choices: tuple[ChoicePlan, ...] = ()
) -> tuple[float, float] | None:
    r"""The :math:`(\epsilon, \delta)` that plans promise together, or None where one promises nothing.

    :math:`\delta` is the sum of theirs. Publications cost less together than one by one, so
    :math:`\epsilon` is that of :func:`expost.compose`, where the extra ``ledger`` is installed and the plans
    are for one unit, and at most the sum of theirs. Private choices that were made for them are counted.

    Privacy
    -------
    Public.
    """
    if any(plan.profile is None for plan in plans):
        return None
    every: tuple[AnyPlan, ...] = (*plans, *choices)
    added, delta = sum((plan.epsilon for plan in every), start=0.0), sum(plan.delta for plan in plans)
    if len(every) > 1 and len({plan.unit for plan in every}) == 1:
        with suppress(MissingExtraError):
            added = min(added, compose(every).epsilon_at(delta))
    return added, delta


def choice_plans(releases: Iterable[Release]) -> tuple[ChoicePlan, ...]:
    """The plans of all private choices that releases used, each once."""
    every = (choice for release in releases for choice in release.choices)
    return tuple(choice.plan for choice in counted_once(every))


def promises(
    plans: Sequence[Plan],
    families: Sequence[Sequence[float | None]],
    choices: tuple[ChoicePlan, ...] = (),
) -> list[float | None]:
    """The promised ε for one record or person, for two of them and so on, of all plans together.

    ``families`` has those of each plan for two, three and so on; of these only sums are known.
    """
    together = promised_together(tuple(plans), choices)
    sizes = range(min(map(len, families), default=0))
    chosen = sum(choice.epsilon for choice in choices)
    sums = [_added([*(family[size] for family in families), (size + 2) * chosen]) for size in sizes]
    return [None if together is None else together[0], *sums]


def _added(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None and math.isfinite(part)]
    return sum(known) if len(known) == len(parts) else None
