"""What a fit does before its noise is drawn, and after its file was written."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expost.cli.base import warn
from expost.cli.next_steps import next_command

if TYPE_CHECKING:
    from expost.cli.progress import Shown
    from expost.data.domain import Domain
    from expost.data.encoded import Encoded
    from expost.data.lazy import LazyTable
    from expost.data.weights import Weighting
    from expost.ledger import Account
    from expost.privacy.plan import Plan


@contextmanager
def pointing_to_check(domain: Path, table: Path, **options: Any) -> Iterator[None]:
    """Let the refusal of a table say how to see everything that is wrong with it."""
    from expost.exceptions import DomainError, FileError

    try:
        yield
        return
    except (DomainError, FileError) as error:
        refusal = error
    command = next_command("check", domain, table, problems="private-problems.csv", **options)
    again = "Nothing was spent. Repeat this fit once the table fits; to see every problem at once:"
    raise type(refusal)(f"{refusal} {again}  {command}")


def check_places(output: Path, losses: Path | None, *, inputs: tuple[Path, ...], overwrite: bool) -> None:
    """Check that the results can be written, before a budget is spent on them."""
    from expost._common.files import same_file
    from expost.cli.private_files import check_private, check_public
    from expost.exceptions import FileError

    if losses is not None and same_file(losses, output):
        raise FileError("`--losses` must be another file than the publication: one is private.")
    check_public(output, inputs=inputs, overwrite=overwrite)
    if losses is not None:
        check_private(losses, "exact losses", inputs=inputs, overwrite=overwrite)


def check_held_out(table: "LazyTable", held_out: "LazyTable | None") -> None:
    """Refuse to measure a model by the records that it was fitted to."""
    from expost._common.files import same_file
    from expost.exceptions import FileError

    others = () if held_out is None else held_out.paths
    if any(same_file(one, other) for one in table.paths for other in others):
        raise FileError("`--test` must be another table than the one that is fitted: hold records out first.")


def open_account(ledger: Path | None, account: str | None, note: str) -> "Account | None":
    """The account to count in, where one is named."""
    from expost._common.validation import parameter_error
    from expost.ledger import Ledger

    if ledger is None and account is None:
        return None
    if ledger is None or account is None:
        missing = "ledger" if ledger is None else "account"
        raise parameter_error(missing, "given where the other of `ledger` and `account` is", None)
    return Ledger(ledger).account(account).noted(note)


@contextmanager
def saying_what_was_counted(entered: list[int]) -> Iterator[None]:
    """Let whoever stops a fit know that the ledger counts it, if it was entered by then."""
    try:
        yield
    except BaseException:
        if entered:
            warn("the ledger counts this fit all the same: nothing is ever refunded.")
        raise


def finish(account: "Account", number: int, sha256: str) -> float | None:
    """Mark the fit as finished, and return what is left; it is published and counted in any case."""
    from expost.exceptions import LedgerError

    try:
        account.finish(number, sha256=sha256)
        return account.left
    except LedgerError as error:
        warn(f"the fit is counted, but its entry stays unfinished: {error}")
        return None


def read_table(
    table: "LazyTable",
    domain: "Domain",
    plan: "Plan",
    weighting: "Weighting",
    weight: str | None,
    progress: "Shown",
) -> "Encoded":
    """Read and encode the table, and check every record once."""
    from expost.data.encoding import encode_records
    from expost.fitting.inputs import check_room

    encoded = encode_records(
        table,
        None,
        plan,
        classes=domain.classes,
        domain=domain,
        weighting=weighting,
        sample_weight=weight,
    )
    check_room(plan, encoded)
    return replace(encoded, watch=progress.watch).scanned(plan.loss, plan.max_weight)
