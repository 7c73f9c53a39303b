"""``expost fit``: spend the budget once and write what may be published."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from expost._common.files import check_writable
from expost._common.typing import FloatArray
from expost.cli.base import errors, print_json, refusing, speaker
from expost.cli.options import (
    L2,
    AsJson,
    Delta,
    DomainFile,
    Epsilon,
    LossOption,
    Report,
    ReportOption,
    Split,
    make_plan,
    plan_fields,
    read_domain,
)
from expost.cli.private_files import check_private, write_losses
from expost.data.design import Design
from expost.data.domain import ClassLabel, Domain
from expost.data.encoding import encode_labels
from expost.data.records import split_by_domain
from expost.data.tables import open_table
from expost.data.tables.files import read_columns
from expost.exceptions import FileError
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.privacy.plan import Plan
from expost.publication import Publication


@refusing
def fit(
    domain: DomainFile,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv or .parquet file; private.")],
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
    split: Split = None,
    loss: LossOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, spend nothing.")] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Ask before spending.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a publication that a budget was spent on.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a private model to a table and write the publication: the one file that may leave the building.

    Shows what will be spent and written before it spends. Every fit spends the budget again. Columns
    that the domain does not name are ignored; a record that does not fit the domain is refused.

    Example: expost fit domain.toml table.csv -o publication.json --losses private-losses.csv
    """
    declared = read_domain(domain)
    plan = make_plan(declared, epsilon=epsilon, delta=delta, report=report, l2=l2, split=split, loss=loss)
    _check_places(output, losses, force=force)
    speak = speaker(as_json)
    _announce(speak, plan, output, losses)
    with errors.status("Reading the table and checking it against the domain"):
        design, labels = _open(table, declared, plan)
    if dry_run:
        speak.print("Dry run: everything fits, and nothing was spent or written.")
    elif confirm and not typer.confirm("Spend it?", err=as_json):
        errors.print("Nothing was spent or written.")
        raise typer.Exit(1)
    else:
        with errors.status("Drawing the noise and fitting"):
            release, private = perturb(plan, design, labels, noise=noise_source(None))
        with errors.status("Verifying and writing the publication"):
            publication = Publication.from_release(
                release,
                classes=_classes(declared),
                feature_names=declared.column_names,
                domain=declared,
            )
            publication.save(output)
        speak.print(f"\nPublished: {escape(str(output))}", highlight=False, soft_wrap=True)
        if losses is not None:
            with errors.status("Computing everyone's exact loss"):
                exact = ex_post_terms(private, design, labels, plan.loss, member=True).loss
                write_losses(losses, exact.tolist())
            speak.print(f"Private:   {escape(str(losses))}", highlight=False, soft_wrap=True)
    if as_json:
        print_json(
            {
                "plan": plan_fields(plan),
                "spent": not dry_run,
                "publication": None if dry_run else output,
                "sha256": None if dry_run else publication.sha256,
                "private_losses": None if dry_run else losses,
            }
        )


def _check_places(output: Path, losses: Path | None, *, force: bool) -> None:
    """Refuse where the results could not be written, before a budget is spent on them."""
    if output.is_file() and not force:
        raise FileError(
            f"{output} exists and a budget was spent on it. Name another file with `-o`, or give `--force`."
        )
    check_writable(output)
    if losses is not None:
        check_private(losses)
        if losses.absolute() == output.absolute():
            raise FileError("`--losses` must be another file than the publication: one is private.")


def _announce(speak: Console, plan: Plan, output: Path, losses: Path | None) -> None:
    speak.print(plan)
    written = f"\nWill spend   epsilon {plan.epsilon:g} at delta {plan.delta:g}, once, for every record alike"
    written += f"\nWill write   {escape(str(output))}  (public)"
    if losses is not None:
        written += f"\n             {escape(str(losses))}  (PRIVATE: never publish)"
    speak.print(written, highlight=False, soft_wrap=True)


def _open(table: Path, domain: Domain, plan: Plan) -> tuple[Design, FloatArray]:
    """The table as the mechanism sees it, with every record looked at once."""
    features, outcome = split_by_domain(read_columns(table), domain)
    opened = open_table(features, domain)
    labels = encode_labels(
        outcome, loss=plan.loss, classes=_classes(domain), rows=opened.n_rows, domain=domain
    )
    design = Design(opened, norm=plan.norm, fit_intercept=plan.fit_intercept)
    design.scan()
    return design, labels


def _classes(domain: Domain) -> tuple[str, str] | None:
    return domain.label.classes if isinstance(domain.label, ClassLabel) else None
