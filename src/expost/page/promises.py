"""What was promised for all publications of a page together: by the certified composition of their plans."""

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from expost.exceptions import MissingExtraError
from expost.privacy.composition import compose
from expost.privacy.plan import Plan


@cache
def promised_together(plans: tuple[Plan, ...]) -> tuple[float, float] | None:
    r"""The :math:`(\epsilon, \delta)` that plans promise together, or None where one promises nothing.

    :math:`\delta` is the sum of theirs. Publications cost less together than one by one, so
    :math:`\epsilon` is that of :func:`expost.compose`, where the extra ``ledger`` is installed and the plans
    are for one unit, and at most the sum of theirs.

    Privacy
    -------
    Public.
    """
    if any(plan.profile is None for plan in plans):
        return None
    added, delta = sum(plan.epsilon for plan in plans), sum(plan.delta for plan in plans)
    if len(plans) > 1 and len({plan.unit for plan in plans}) == 1:
        with suppress(MissingExtraError):
            added = min(added, compose(plans).epsilon_at(delta))
    return added, delta


def promises(plans: Sequence[Plan], families: Sequence[Sequence[float | None]]) -> list[float | None]:
    """The promised ε for one record or person, for two of them and so on, of all plans together.

    ``families`` has those of each plan for two, three and so on; of these only sums are known.
    """
    together = promised_together(tuple(plans))
    sizes = range(min(map(len, families), default=0))
    sums = [_added([family[size] for family in families]) for size in sizes]
    return [None if together is None else together[0], *sums]


def _added(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None and math.isfinite(part)]
    return sum(known) if len(known) == len(parts) else None
