"""``expost fit``: spend the budget once and write what may be published."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from expost._common.files import atomic_write, same_file
from expost.cli.base import error_console, legible, output_console, print_json, say, show_progress, warn
from expost.cli.commands import FitOptions
from expost.cli.ledger import named_account, said_to_be_spent
from expost.cli.losses import with_choices
from expost.cli.plan import declared_weighting, load_domain, make_corners, make_plan
from expost.cli.private_files import COLUMN, check_figures, check_public, is_publication, write_losses
from expost.cli.rehearse import verdict
from expost.cli.tables import check_identifier, connected, inputs_of
from expost.cli.words import announce, explain, next_command, say_next, show_quality
from expost.data.dialect import PLAIN
from expost.data.domain import Domain
from expost.data.encoding import Encoded, encode_records
from expost.data.lazy import LazyTable
from expost.data.tables import scan
from expost.data.weights import UNWEIGHTED, Declared, Weighting
from expost.exceptions import DomainError, FileError, LedgerError
from expost.fitting.choose import noted_choices
from expost.fitting.ex_post import streamed_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import ExactNoise
from expost.fitting.private_fit import PrivateFit, check_room
from expost.ledger import Account, Noted
from expost.losses.corners import Corners
from expost.privacy.plan import Plan
from expost.publication import Publication
from expost.publication.readings import held_out_quality
from expost.publication.trial import try_publication

# Passes over the rows that a fit usually takes after the first reading; docs/scale.md lists them.
_PASSES = 6


@dataclass(frozen=True)
class PlannedFit:
    """Everything about a fit that is known before its table is read; public."""

    options: FitOptions
    domain: Domain
    weighting: Weighting
    plan: Plan
    account: Account | None
    entering: list[Noted]
    """What an account enters: the fit, and choices of its domain that were made without the account."""
    began: datetime
    corners: Corners | None

    @property
    def out(self) -> Console:
        """The console for people."""
        return output_console(self.options.as_json)

    @property
    def published(self) -> dict[str, Any]:
        """What is published with the coefficients."""
        public = {"classes": self.domain.classes, "feature_names": self.domain.column_names}
        return {**public, "domain": self.domain, "weighting": self.weighting}


def fit(options: FitOptions) -> None:
    """Fit a private model and write the publication."""
    declared = _declare(options)
    plan, account, columns = declared.plan, declared.account, len(declared.domain.column_names)
    result: dict[str, Any] = {"plan": plan.fields(), "spent": False}
    result |= dict.fromkeys(["publication", "sha256", "private_losses", "private_quality", "verdict"])
    if account is not None:
        after = account.check(*declared.entering)
        result |= {"account": account.name, "left": account.left, "spent_after": after}
    with connected(options.dask) as client:
        dialect = declared.domain.table
        table = scan(options.table, client=client, device=options.device, dialect=dialect)
        aside = None if options.test is None else scan(options.test, client=client, dialect=dialect)
        _check_places(options, table, aside, declared.domain.person)
        size = try_publication(plan, columns, corners=declared.corners, **declared.published)
        explain(declared.out, plan, declared.domain, declared.corners, budget=options.model)
        known: Any = {"domain": declared.domain, "replaces": is_publication(options.output)}
        announce(declared.out, declared.entering, options.output, options.losses, account, **known)
        records, held = _read_tables(declared, table, aside)
        if options.dry_run:
            declared.out.print("Dry run: everything fits, and nothing was spent or written.")
            if not options.as_json:
                written = {"output": options.output, "force": options.force}
                say(f"Next: {legible(next_command('fit', options.domain, options.table, **written))}")
        elif not options.yes and _someone_is_there() and not typer.confirm("Spend it?", err=options.as_json):
            error_console.print("Nothing was spent or written.")
            raise typer.Exit(1)
        else:
            result |= _spend(declared, table, records, held, size)
    if options.as_json:
        print_json(result)


def _someone_is_there() -> bool:
    """Whether there is a terminal in which someone can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _declare(options: FitOptions) -> PlannedFit:
    """Read the domain file, make the plan, and check that the account has enough left for it."""
    domain = load_domain(options.domain, options.table)
    weighting = declared_weighting(options.weight, options.model.max_weight, domain.rows_per_person)
    plan, account = make_plan(domain, options.model), named_account(options.ledger, options.account)
    began = datetime.now(UTC)  # before the table is touched: how long that takes is not public
    whom = domain.promised_to
    entering = [
        *noted_choices(domain.choices, whom),
        Noted(options.output.name, plan, unit=whom),
    ]
    if account is not None:
        account = account.noted(options.note or "")
        account.check(*entering)  # refuses before the table is touched
    corners = make_corners(domain, options.model, plan)
    return PlannedFit(options, domain, weighting, plan, account, entering, began, corners)


def _check_unspent(output: Path) -> None:
    """Refuse to write over a publication, and say that this takes nothing back."""
    if is_publication(output):
        raise FileError(
            f"{output} exists, and it has spent already. A new fit spends again, and replacing the old one "
            "with `--force` refunds nothing. Name another file."
        )


def _check_places(options: FitOptions, table: LazyTable, aside: LazyTable | None, person: str | None) -> None:
    """Check that the results can be written, and that no record is held out that is fitted too."""
    held = () if aside is None else aside.paths
    inputs = inputs_of(table, options.domain, options.table, options.test, options.ledger, *held)
    if options.losses is not None and same_file(options.losses, options.output):
        raise FileError("`--losses` must be another file than the publication: one is private.")
    if not options.force:
        _check_unspent(options.output)
    check_public(options.output, inputs=inputs, overwrite=options.force)
    check_figures(options.losses, "exact losses", private=True, inputs=inputs, overwrite=options.force)
    if any(same_file(one, other) for one in table.paths for other in held):
        raise FileError("`--test` must be another table than the one that is fitted: hold records out first.")
    check_identifier(table, options.identifier, [COLUMN], person=person)


def _read_tables(
    declared: PlannedFit, table: LazyTable, aside: LazyTable | None
) -> tuple[Encoded, Encoded | None]:
    """Read and encode both tables, and check every record once."""
    options, plan, domain = declared.options, declared.plan, declared.domain

    def read(
        table: LazyTable, domain: Domain, weighting: Weighting, weight: str | None, unit: str
    ) -> Encoded:
        records = Declared.of(plan, classes=domain.classes, domain=domain, weighting=weighting, unit=unit)
        encoded = encode_records(table, None, records, weight)
        check_room(plan, encoded, corners=declared.corners)
        return replace(encoded, watch=progress.watch).checked_for(plan.loss, plan.max_weight)

    with show_progress("Reading the table and checking it") as progress:
        with _pointing_to_check(options.domain, options.table):
            records = read(table, domain, declared.weighting, options.weight, plan.unit)
        if aside is None or options.test is None:
            return records, None
        with _pointing_to_check(options.domain, options.test, weight=None, max_weight=None):
            return records, read(aside, domain.without_people, UNWEIGHTED, None, "row")


@contextmanager
def _pointing_to_check(domain: Path, table: Path, **others: Any) -> Iterator[None]:
    """Let the refusal of a table say how to see everything that is wrong with it."""
    try:
        yield
        return
    except (DomainError, FileError) as error:
        refusal = error
    command = next_command("check", domain, table, problems="private-problems.csv", **others)
    again = "Nothing was spent. Repeat this fit once the table fits; to see every problem at once:"
    raise type(refusal)(f"{refusal} {again}  {command}")


def _spend(
    declared: PlannedFit, table: LazyTable, records: Encoded, held: Encoded | None, size: int
) -> dict[str, Any]:
    """Spend the budget, write what was asked for, and return what is to be said about it."""
    options, out = declared.options, declared.out
    publication, private, entry = _publish(declared, records, size)
    result = {"spent": True, "publication": options.output, "sha256": publication.sha256}
    say(f"\nPublished: {legible(options.output)}", to=out)
    if declared.account is not None and entry is not None:
        result["left"] = _finish(declared.account, entry, publication.sha256, out)
    if options.losses is not None:
        with show_progress("Computing everyone's exact loss") as progress:
            watched = replace(records, watch=progress.watch)
            terms = streamed_terms(private, watched, declared.plan.loss, member=True)
            domain = declared.domain
            parts = with_choices(terms, domain, table, domain.person, domain.rows_per_person)
            named = domain.person or options.identifier
            written: Any = {"overwrite": options.force, "dialect": domain.table}
            write_losses(options.losses, parts, table, named, records.whose, **written)
        result["private_losses"] = options.losses
        say(f"Private:   {legible(options.losses)}", to=out)
    if held is not None:
        quality = held_out_quality(publication, replace(held, watch=None))
        result["private_quality"] = asdict(quality)
        show_quality(out, quality)
    result["verdict"] = _judge(declared)
    if not options.as_json:
        dialect = None if declared.domain.table == PLAIN else options.domain
        person = declared.domain.person
        told: Any = {"dialect": dialect, "person": person, "losses": options.losses}
        say_next(out, declared.plan, options.output, options.table, **told, counted=entry is not None)
    return result


def _judge(declared: PlannedFit) -> str | None:
    """Say so where as many rows as there may be cannot give a useful model."""
    try:
        said = verdict(declared.domain, declared.plan, declared.options.model.rows_at_most)
    except Exception:  # the model is published and paid for, whatever becomes of a rehearsal
        said = (
            "The fit is complete. Whether so many rows can give a useful model is not known: the rehearsal "
            "failed. `expost rehearse` says why."
        )
    if said is not None:
        say(f"\n{said}", to=declared.out)
    return said


def _publish(declared: PlannedFit, records: Encoded, size: int) -> tuple[Publication, PrivateFit, int | None]:
    """Fit the model and write the publication; also return the private part and the ledger's entry."""
    options, entry = declared.options, None

    def enter() -> None:
        nonlocal entry
        if declared.account is not None:
            entry = declared.account.enter_all(declared.entering, began=declared.began)[-1]

    # The file is open before the noise is drawn: nothing is spent where it cannot be written.
    with (
        said_to_be_spent(declared.account, declared.began, "this fit"),
        atomic_write(options.output, overwrite=options.force, room=size) as file,
        show_progress("Fitting") as progress,
    ):
        progress.step("Fitting", passes=_PASSES)
        watched = replace(records, watch=progress.watch)
        release, private = perturb(
            declared.plan,
            watched,
            noise=ExactNoise(),
            corners=declared.corners,
            step=progress.rename,
            before_noise=enter,
        )
        progress.step("Verifying and writing the publication")
        publication = Publication.from_release(release, **declared.published)
        file.write(publication.to_json())
    return publication, private, entry


def _finish(account: Account, entry: int, sha256: str, out: Console) -> float | None:
    """Mark the fit as finished, and return what is left; it is published and counted in any case."""
    try:
        account.finish(entry, sha256=sha256)
        left = account.left
    except LedgerError as error:
        warn(f"the fit is counted, but its entry stays unfinished: {error}")
        return None
    say(f"Left:      epsilon {left:.4g} in the account {legible(account.name)}", to=out)
    return left
