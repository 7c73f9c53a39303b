"""``expost losses``: everyone's exact loss, for the curator only."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expost.cli.base import console, legible, print_json, report_errors, say
from expost.cli.options import (
    AsJson,
    Cluster,
    Dates,
    Decimal,
    Delimiter,
    Device,
    DialectOf,
    Encoding,
    Force,
    Identifier,
    MissingWords,
    Weight,
    check_order,
    connected,
    dialect_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expost._common.progress import Watch
    from expost._common.typing import FloatArray
    from expost.data.lazy import LazyTable
    from expost.publication import Publication


@report_errors
def losses(
    publication: Annotated[Path, typer.Argument(metavar="PUBLICATION.json", help="What was published.")],
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="The table that was fitted: a file, a folder or a pattern; private."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the losses (.csv or .parquet); the name must have 'private' in it."
        ),
    ] = None,
    weight: Weight = None,
    identifier: Identifier = None,
    dask: Cluster = None,
    device: Device = None,
    domain: DialectOf = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    missing_words: MissingWords = None,
    dates: Dates = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Recompute everyone's exact privacy loss from the table and the publication. Private.

    The noise that was drawn follows from the two, so it was never stored. Name the whole table that was
    fitted, all of its rows: one that cannot be it is refused, but a part of it may go unnoticed, and then the
    figures are wrong. Never publish the result, nor tell it to the person it is about.

    Example: expost losses publication.json table.csv -o private-losses.csv
    """
    from expost.cli.base import shown
    from expost.cli.display import Tally, quantiles, show_losses
    from expost.cli.private_files import (
        COLUMN,
        LOSSES_MARK,
        check_identifier,
        check_private,
        with_identifiers,
        write_losses,
    )
    from expost.data.open_lazy import scan
    from expost.exceptions import DomainError
    from expost.publication import Publication

    check_order(publication, table)
    read = Publication.load(publication)
    written = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "dates": dates}
    dialect = dialect_of(domain, missing_words=missing_words, **written)
    if weight is None and read.weighting.max_weight is not None:
        raise DomainError(
            "the records of this publication had weights, and without them every figure would be wrong. Name "
            "the column that was fitted: --weight COLUMN."
        )
    tally = Tally()
    listed: list[float] = []
    with connected(dask) as client:
        found = scan(table, client=client, device=device, dialect=dialect)
        check_identifier(found, identifier, [COLUMN])
        if output is not None:
            inputs = (publication, table, *found.paths)
            check_private(output, "exact losses", inputs=inputs, overwrite=force)
        with shown("Computing everyone's exact loss") as progress:
            parts, likely = exact_losses(read, found, weight, progress.watch)
            if not likely:
                raise DomainError(
                    "this table implies noise that could not have been drawn, so it is not the one behind "
                    "the publication (or not in its units). Name the table that was fitted."
                )
            counted = tally.counted(parts)
            if output is not None:
                columns = ({COLUMN: part} for part in counted)
                write_losses(output, with_identifiers(columns, found, identifier), overwrite=force)
            else:
                listed = [loss for part in counted for loss in (part.tolist() if as_json else ())]
    if as_json:
        print_json(
            {
                "private": LOSSES_MARK,
                "plausible": likely,
                "epsilon": read.plan.epsilon,
                "quantiles": quantiles(tally),
                "losses": listed if output is None else None,
                "output": output,
            }
        )
        return
    console.print(show_losses(tally, read.release.plan.epsilon))
    if output is not None:
        say(f"\nPrivate: {legible(output)}")
    say("These figures come from everyone's records. Never publish them, and tell nobody hers: the page is")
    say("for that. They are right only if this is the whole table that was fitted, with all of its rows.")


def exact_losses(
    publication: "Publication", table: "LazyTable", weight: str | None = None, watch: "Watch | None" = None
) -> "tuple[Iterator[FloatArray], bool]":
    """Everyone's exact loss, part by part, and whether the table could be the fitted one; both private."""
    from expost.fitting.ex_post import streamed_terms
    from expost.fitting.private_fit import plausible, recover
    from expost.publication.readings import encoded_records

    plan = publication.release.plan
    encoded = replace(encoded_records(publication, table, None, weight), watch=watch)
    records = encoded.scanned(plan.loss, plan.max_weight)
    private = recover(publication.release, records)
    parts = streamed_terms(private, records, publication.loss, member=True)
    return (terms.loss for terms in parts), plausible(private)
