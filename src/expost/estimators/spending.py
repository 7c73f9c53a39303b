"""What a fit spends is entered in its account; fits that nobody counts are warned of."""

import threading
from datetime import UTC, datetime
from typing import Any

from expost._common.caller import warn_caller
from expost._common.validation import parameter_error
from expost.exceptions import LedgerError, LedgerWarning, UncountedWarning
from expost.ledger import Account
from expost.privacy.plan import Plan


class Spending:
    """The entry of one fit, from the check of its plan to the hash of its publication.

    Made before the table is touched: the entry has the time of that.

    Parameters
    ----------
    family
        The name of the estimator, which is the entry's note where the account has none.
    account
        The account, or None.
    insecure
        Whether the noise comes from a seed.
    """

    def __init__(self, family: str, account: Any, *, insecure: bool) -> None:
        if not (account is None or isinstance(account, Account)):
            raise parameter_error(
                "account", "an account of `expost.Ledger(...).account(...)` or None", type(account).__name__
            )
        self._family = family
        self._account: Account | None = account
        self._insecure = insecure
        self._began = datetime.now(UTC)
        self._number: int | None = None

    def check(self, plan: Plan) -> None:
        """Refuse a plan that would overdraw the account, or warn of a second fit without one."""
        if self._account is not None:
            self._account.check(plan)
        elif _UNCOUNTED.is_second(self._family):
            warn_caller(
                f"this process fits {self._family} once more and nobody counts what that spends: every fit "
                "spends its budget again. Give all fits of one table the same account: "
                "fit(..., account=account), with an account of expost.Ledger.",
                UncountedWarning,
            )

    def enter(self, plan: Plan) -> None:
        """Enter the plan as spent, or remember the fit without an account, just before noise is drawn."""
        if self._account is None:
            _UNCOUNTED.add(self._family)
        else:
            self._number = self._account.enter(
                plan, note=self._family, insecure=self._insecure, began=self._began
            )

    def finish(self, sha256: str | None) -> None:
        """Mark the entry as finished; the fit is spent and published whether or not this succeeds."""
        if self._account is None or self._number is None:
            return
        try:
            self._account.finish(self._number, sha256=sha256)
        except LedgerError as error:
            warn_caller(f"the fit is counted, but its entry stays unfinished: {error}", LedgerWarning)


class UncountedFits:
    """Which kinds of estimators this process has fitted without an account, and which it has warned of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fitted: set[str] = set()
        self._warned: set[str] = set()

    def add(self, family: str) -> None:
        """Remember a fit."""
        with self._lock:
            self._fitted.add(family)

    def is_second(self, family: str) -> bool:
        """Whether there was a fit of this kind before, and this has not been asked since: to warn once."""
        with self._lock:
            if family not in self._fitted or family in self._warned:
                return False
            self._warned.add(family)
            return True


_UNCOUNTED = UncountedFits()
