"""``expost losses``: everyone's exact loss, for the curator's eyes only."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from expost._common.typing import FloatArray
from expost.cli.base import console, errors, print_json, refusing, warn
from expost.cli.display import quantiles, show_losses
from expost.cli.options import AsJson
from expost.cli.private_files import MARK, check_private, write_losses
from expost.data.design import Design
from expost.data.encoding import encode_labels
from expost.data.records import split_for
from expost.data.tables import open_table
from expost.data.tables.files import read_columns
from expost.fitting.ex_post import ex_post_terms
from expost.fitting.mechanism import plausible, recover
from expost.publication import Publication


@refusing
def losses(
    publication: Annotated[Path, typer.Argument(metavar="PUBLICATION.json", help="What was published.")],
    table: Annotated[
        Path,
        typer.Argument(metavar="TABLE", help="The very table that was fitted, .csv or .parquet; private."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the losses (.csv or .parquet); the name must have 'private' in it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute everyone's exact privacy loss from the table and the publication. Private.

    The noise that was drawn follows from the two, so it was never stored. Whether the table is the one that
    was fitted cannot be known: with another one the figures mean nothing, and only gross mistakes are
    noticed. Never publish the result, nor tell it to the person it is about.

    Example: expost losses publication.json table.csv -o private-losses.csv
    """
    if output is not None:
        check_private(output)
    read = Publication.load(publication)
    with errors.status("Computing everyone's exact loss"):
        exact, likely = exact_losses(read, table)
    if not likely:
        warn(
            "this table implies noise that could not have been drawn, so it is not the one behind the "
            "publication (or not in its units), and the figures mean nothing."
        )
    if output is not None:
        write_losses(output, exact.tolist())
    if as_json:
        print_json(
            {
                "private": MARK,
                "plausible": likely,
                "epsilon": read.plan.epsilon,
                "quantiles": quantiles(exact),
                "losses": exact.tolist(),
                "output": output,
            }
        )
        return
    console.print(show_losses(exact, read.release.plan.epsilon))
    if output is not None:
        console.print(f"\nPrivate: {escape(str(output))}", highlight=False, soft_wrap=True)
    console.print("These figures come from everyone's records. Never publish them.", highlight=False)


def exact_losses(publication: Publication, table: Path) -> tuple[FloatArray, bool]:
    """Everyone's exact loss, and whether the table could be the one that was fitted; both private."""
    X, y = split_for(publication, read_columns(table))
    opened = open_table(X, publication.domain)
    labels = encode_labels(
        y, loss=publication.loss, classes=publication.classes, rows=opened.n_rows, domain=publication.domain
    )
    design = Design(opened, norm=publication.norm, fit_intercept=publication.fit_intercept)
    private = recover(publication.release, design, labels)
    return ex_post_terms(private, design, labels, publication.loss, member=True).loss, plausible(private)
