"""``expost fit``: spend the budget once and write what may be published."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expost.cli.base import error_console, legible, output_console, print_json, report_errors, say, warn
from expost.cli.options import (
    L2,
    ROWS_AT_MOST,
    AsJson,
    Cap,
    Cluster,
    Dates,
    Decimal,
    Delimiter,
    Delta,
    Device,
    DomainFile,
    Encoding,
    Epsilon,
    Force,
    Identifier,
    LossOption,
    MaxWeight,
    MissingWords,
    Report,
    ReportOption,
    RowsAtMost,
    Split,
    Table,
    Threshold,
    Weight,
    connected,
    declared_weighting,
    load_domain,
    make_plan,
)
from expost.cli.words import next_command

if TYPE_CHECKING:
    from expost.cli.base import Shown
    from expost.data.domain import Domain
    from expost.data.encoding import Encoded
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
    from expost.fitting.private_fit import check_room

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


@report_errors
def fit(
    domain: DomainFile,
    table: Table,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to publish.")] = Path(
        "publication.json"
    ),
    losses: Annotated[
        Path | None,
        typer.Option(
            help="Also write everyone's exact loss (.csv or .parquet), for the curator only; "
            "the name must have 'private' in it."
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Records that are not fitted, to see how well they are predicted; for the curator only.",
        ),
    ] = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    report: ReportOption = Report.INDEPENDENT,
    l2: L2 = None,
    cap: Cap = None,
    split: Split = None,
    loss: LossOption = None,
    threshold: Threshold = None,
    rows_at_most: RowsAtMost = ROWS_AT_MOST,
    weight: Weight = None,
    max_weight: MaxWeight = 1.0,
    identifier: Identifier = None,
    dask: Cluster = None,
    device: Device = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that counts what is spent; needs `--account`.")
    ] = None,
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="The table's account there, opened by `expost ledger`.")
    ] = None,
    note: Annotated[
        str, typer.Option(metavar="TEXT", help="What the ledger says about this fit; public.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, spend nothing.")] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Ask before spending.")] = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing_words: MissingWords = None,
    dates: Dates = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit a private model to a table and write the publication: the one file that is made public.

    Shows what will be spent and written before it spends. Every fit spends the budget again. Columns
    that the domain does not name are ignored; a record that does not fit the domain is refused.

    Example: expost fit domain.toml table.csv -o publication.json --losses private-losses.csv
    """
    from expost._common.files import atomic_write
    from expost.cli.base import PASSES_OF_A_FIT, shown
    from expost.cli.private_files import COLUMN, check_identifier, with_identifiers, write_losses
    from expost.cli.words import announce, explain, say_next, show_quality
    from expost.data.dialect import PLAIN
    from expost.data.open_lazy import scan
    from expost.data.weights import UNWEIGHTED
    from expost.fitting.ex_post import streamed_terms
    from expost.fitting.mechanism import fit as fit_model
    from expost.publication import Publication
    from expost.publication.readings import held_out_quality
    from expost.publication.rehearsal import rehearse

    written = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "dates": dates}
    declared = load_domain(domain, table, missing_words=missing_words, **written)
    weighting = declared_weighting(weight, max_weight)
    plan = make_plan(
        declared,
        epsilon=epsilon,
        delta=delta,
        report=report,
        l2=l2,
        cap=cap,
        split=split,
        loss=loss,
        threshold=threshold,
        rows_at_most=rows_at_most,
        max_weight=max_weight,
    )
    began = datetime.now(UTC)  # before the table is touched: how long that takes is not public
    book = open_account(ledger, account, note or output.name)
    left = None
    if book is not None:
        book.check(plan)  # before the table is read
        left = book.left
    names = declared.column_names
    public: dict[str, Any] = {
        "classes": declared.classes,
        "feature_names": names,
        "domain": declared,
        "weighting": weighting,
    }
    out = output_console(as_json)
    publication = quality = None
    with connected(dask) as client:
        found = scan(table, client=client, device=device, dialect=declared.table)
        aside = None if test is None else scan(test, client=client, dialect=declared.table)
        others = [path for path in (test, ledger) if path is not None]
        inputs = (domain, table, *found.paths, *others, *(() if aside is None else aside.paths))
        check_places(output, losses, inputs=inputs, overwrite=force)
        check_held_out(found, aside)
        check_identifier(found, identifier, [COLUMN])
        size = rehearse(plan, len(names), **public)
        explain(out, plan, len(names) + plan.fit_intercept)
        announce(out, plan, output, losses, book)
        with shown("Reading the table and checking it") as progress:
            with pointing_to_check(domain, table):
                records = read_table(found, declared, plan, weighting, weight, progress)
            held = None
            if aside is not None:
                assert test is not None
                with pointing_to_check(domain, test, weight=None, max_weight=None):
                    held = read_table(aside, declared, plan, UNWEIGHTED, None, progress)
        if dry_run:
            out.print("Dry run: everything fits, and nothing was spent or written.")
            if not as_json:
                command = next_command("fit", domain, table, output=output, force=force)
                say(f"Next: {legible(command)}", to=out)
        elif confirm and not typer.confirm("Spend it?", err=as_json):
            error_console.print("Nothing was spent or written.")
            raise typer.Exit(1)
        else:
            # The file is open before the noise is drawn: nothing is spent where it cannot be written.
            entered: list[int] = []

            def enter() -> None:
                if book is not None:
                    entered.append(book.enter(plan, began=began))

            with (
                saying_what_was_counted(entered),
                atomic_write(output, overwrite=force, room=size) as file,
                shown("Fitting") as progress,
            ):
                progress.step("Fitting", passes=PASSES_OF_A_FIT)
                release, private = fit_model(
                    plan,
                    replace(records, watch=progress.watch),
                    step=progress.rename,
                    before_noise=enter,
                )
                progress.step("Verifying and writing the publication")
                publication = Publication.from_release(release, **public)
                file.write(publication.to_json())
            say(f"\nPublished: {legible(output)}", to=out)
            if book is not None:
                left = finish(book, entered[0], publication.sha256)
                if left is not None:
                    say(f"Left:      epsilon {left:.4g} in the account {legible(book.name)}", to=out)
            if losses is not None:
                with shown("Computing everyone's exact loss") as progress:
                    watched = replace(records, watch=progress.watch)
                    terms = streamed_terms(private, watched, plan.loss, member=True)
                    parts = ({COLUMN: part.loss} for part in terms)
                    write_losses(losses, with_identifiers(parts, found, identifier), overwrite=force)
                say(f"Private:   {legible(losses)}", to=out)
            if held is not None:
                quality = held_out_quality(publication, replace(held, watch=None))
                show_quality(out, quality)
            if not as_json:
                dialect = None if declared.table == PLAIN else domain
                say_next(out, output, table, dialect=dialect, losses=losses)
    if as_json:
        print_json(
            {
                "plan": plan.fields(),
                "spent": publication is not None,
                "publication": None if publication is None else output,
                "sha256": None if publication is None else publication.sha256,
                "private_losses": None if publication is None else losses,
                "private_quality": None if quality is None else asdict(quality),
                **({} if book is None else {"account": book.name, "left": left}),
            }
        )
