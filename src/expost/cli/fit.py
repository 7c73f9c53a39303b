"""``expost fit``: spend the budget once and write what may be published."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from expost.cli.base import error_console, legible, output_console, print_json, report_errors, say, warn
from expost.cli.cluster import connected
from expost.cli.options import (
    L2,
    ROWS_AT_MOST,
    AsJson,
    Cap,
    Cluster,
    Delta,
    DomainFile,
    Epsilon,
    Force,
    LossOption,
    MaxWeight,
    Report,
    ReportOption,
    RowsAtMost,
    Split,
    Threshold,
    Weight,
    make_plan,
)

if TYPE_CHECKING:
    from expost.data.domain import Domain
    from expost.data.encoded import Encoded
    from expost.data.lazy import LazyTable
    from expost.data.weights import Weighting
    from expost.ledger import Account
    from expost.privacy.plan import Plan


@report_errors
def fit(
    domain: DomainFile,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="A .csv or .parquet file, a folder of such files, or a quoted pattern; private.",
        ),
    ],
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
    dask: Cluster = None,
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
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit a private model to a table and write the publication: the one file that is made public.

    Shows what will be spent and written before it spends. Every fit spends the budget again. Columns
    that the domain does not name are ignored; a record that does not fit the domain is refused.

    Example: expost fit domain.toml table.csv -o publication.json --losses private-losses.csv
    """
    from expost._common.files import atomic_write
    from expost.cli.private_files import write_losses
    from expost.data.domain import Domain
    from expost.data.open_lazy import scan
    from expost.data.weights import Weighting
    from expost.fitting.ex_post import streamed_terms
    from expost.fitting.fit import fit as fit_model
    from expost.publication import Publication
    from expost.publication.rehearsal import rehearse

    declared = Domain.load(domain)
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
    book = _open_account(ledger, account, note or output.name)
    left = None
    if book is not None:
        book.check(plan)  # before the table is read
        left = book.left
    names = declared.column_names
    weighting = Weighting.declared(max_weight, None, of_records=weight is not None)
    public: dict[str, Any] = {
        "classes": declared.classes,
        "feature_names": names,
        "domain": declared,
        "weighting": weighting,
    }
    out = output_console(as_json)
    publication = None
    with connected(dask) as client:
        found = scan(table, client=client)
        inputs = (domain, table, *found.paths, *(() if ledger is None else (ledger,)))
        _check_places(output, losses, inputs=inputs, overwrite=force)
        size = rehearse(plan, len(names), **public)
        _announce(out, plan, output, losses, book)
        with error_console.status("Reading the table and checking it against the domain"):
            records = _read(found, declared, plan, weighting, weight)
        if dry_run:
            out.print("Dry run: everything fits, and nothing was spent or written.")
        elif confirm and not typer.confirm("Spend it?", err=as_json):
            error_console.print("Nothing was spent or written.")
            raise typer.Exit(1)
        else:
            # The file is open before the noise is drawn: nothing is spent where it cannot be written.
            with atomic_write(output, overwrite=force, room=size) as file:
                with error_console.status("Drawing the noise and fitting") as status:
                    entered: list[int] = []
                    release, private = fit_model(
                        plan,
                        records,
                        step=status.update,
                        before_noise=None if book is None else lambda: entered.append(book.enter(plan)),
                    )
                with error_console.status("Verifying and writing the publication"):
                    publication = Publication.from_release(release, **public)
                    file.write(publication.to_json())
            say(f"\nPublished: {legible(output)}", to=out)
            if book is not None:
                left = _finish(book, entered[0], publication.sha256)
                if left is not None:
                    say(f"Left:      epsilon {left:.4g} in the account {legible(book.name)}", to=out)
            if losses is not None:
                with error_console.status("Computing everyone's exact loss"):
                    terms = streamed_terms(private, records, plan.loss, member=True)
                    write_losses(losses, (part.loss for part in terms), overwrite=force)
                say(f"Private:   {legible(losses)}", to=out)
    if as_json:
        print_json(
            {
                "plan": plan.fields(),
                "spent": publication is not None,
                "publication": None if publication is None else output,
                "sha256": None if publication is None else publication.sha256,
                "private_losses": None if publication is None else losses,
                **({} if book is None else {"account": book.name, "left": left}),
            }
        )


def _check_places(output: Path, losses: Path | None, *, inputs: tuple[Path, ...], overwrite: bool) -> None:
    """Check that the results can be written, before a budget is spent on them."""
    from expost._common.files import check_output, same_file
    from expost.cli.private_files import check_private
    from expost.exceptions import FileError

    if losses is not None and same_file(losses, output):
        raise FileError("`--losses` must be another file than the publication: one is private.")
    check_output(output, inputs=inputs, overwrite=overwrite)
    if losses is not None:
        check_private(losses, inputs=inputs, overwrite=overwrite)


def _open_account(ledger: Path | None, account: str | None, note: str) -> "Account | None":
    """The account to count in, where one is named."""
    from expost._common.validation import parameter_error
    from expost.ledger import Ledger

    if ledger is None and account is None:
        return None
    if ledger is None or account is None:
        missing = "ledger" if ledger is None else "account"
        raise parameter_error(missing, "given where the other of `ledger` and `account` is", None)
    return Ledger(ledger).account(account).noted(note)


def _finish(account: "Account", number: int, sha256: str) -> float | None:
    """Mark the fit as finished, and return what is left; it is published and counted in any case."""
    from expost.exceptions import LedgerError

    try:
        account.finish(number, sha256=sha256)
        return account.left
    except LedgerError as error:
        warn(f"the fit is counted, but its entry stays unfinished: {error}")
        return None


def _announce(
    out: Console, plan: "Plan", output: Path, losses: Path | None, account: "Account | None"
) -> None:
    out.print(plan)
    written = f"\nWill spend   epsilon {plan.epsilon:g} at delta {plan.delta:g}, once, for every record alike"
    written += f"\nWill write   {legible(output)}  (public)"
    if losses is not None:
        written += f"\n             {legible(losses)}  (PRIVATE: never publish)"
    if account is not None:
        left = f"{account.left:.4g} left of {account.epsilon:g}"
        written += f"\nWill count   in the account {legible(account.name)}, which has epsilon {left}"
    say(written, to=out)


def _read(
    table: "LazyTable", domain: "Domain", plan: "Plan", weighting: "Weighting", weight: str | None
) -> "Encoded":
    """Read and encode the table, and check every record once."""
    from expost.data.encoding import encode_records

    encoded = encode_records(
        table,
        None,
        plan,
        classes=domain.classes,
        domain=domain,
        weighting=weighting,
        sample_weight=weight,
    )
    return encoded.scanned(plan.loss, plan.max_weight)
