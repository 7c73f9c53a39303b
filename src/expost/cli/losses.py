"""``expost losses``: everyone's exact loss, for the curator only."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from expost.cli.base import console, legible, print_json, report_errors, say, show_progress
from expost.cli.options import CLUSTER, DEVICE, WEIGHT, RecordOptions, argument, check_order, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expost._common.progress import Watch
    from expost._common.typing import FloatArray
    from expost.data.lazy import LazyTable
    from expost.publication import Publication


@report_errors
def losses(
    *,
    publication: Path = argument("PUBLICATION.json", "What was published."),
    table: Path = argument("TABLE", "The table that was fitted: a file, a folder or a pattern; private."),
    output: Path | None = option(
        None, "Write the losses (.csv or .parquet); the name must have 'private' in it.", "--output", "-o"
    ),
    weight: str | None = WEIGHT,
    dask: str | None = CLUSTER,
    device: str | None = DEVICE,
    options: RecordOptions,
) -> None:
    """Recompute everyone's exact privacy loss from the table and the publication. Private.

    The noise that was drawn follows from the two, so it was never stored. Name the whole table that was
    fitted, all of its rows: one that cannot be it is refused, but a part of it may go unnoticed, and then the
    figures are wrong. Never publish the result, nor tell it to the person it is about.

    Example: expost losses publication.json table.csv -o private-losses.csv
    """
    from expost.cli.display import Tally, show_losses
    from expost.cli.private_files import COLUMN, LOSSES_MARK, open_records, write_losses
    from expost.exceptions import DomainError
    from expost.publication import Publication

    check_order(publication, table)
    read = Publication.load(publication)
    if weight is None and read.weighting.max_weight is not None:
        raise DomainError(
            "the records of this publication had weights, and without them every figure would be wrong. Name "
            "the column that was fitted: --weight COLUMN."
        )
    tally = Tally()
    listed: list[float] = []
    places = {"names": [COLUMN], "read": [publication], "private": True, "dask": dask, "device": device}
    with (
        open_records(table, options, output, "exact losses", **places) as found,
        show_progress("Computing everyone's exact loss") as progress,
    ):
        counted = tally.counted(_exact_losses(read, found, weight, progress.watch))
        if output is not None:
            write_losses(output, counted, found, options.identifier, overwrite=options.force)
        else:
            listed = [loss for part in counted for loss in (part.tolist() if options.as_json else ())]
    if options.as_json:
        print_json(
            {
                "private": LOSSES_MARK,
                "plausible": True,
                "epsilon": read.plan.epsilon,
                "quantiles": {f"{share:g}": loss for share, loss in tally.quantiles().items()},
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


def _exact_losses(
    publication: "Publication", table: "LazyTable", weight: str | None, watch: "Watch"
) -> "Iterator[FloatArray]":
    """Everyone's exact loss, part by part, if the table could be the fitted one; private."""
    from expost.exceptions import DomainError
    from expost.fitting.ex_post import streamed_terms
    from expost.fitting.private_fit import plausible, recover
    from expost.publication.readings import encoded_records

    plan = publication.release.plan
    encoded = replace(encoded_records(publication, table, None, weight), watch=watch)
    records = encoded.scanned(plan.loss, plan.max_weight)
    private = recover(publication.release, records)
    if not plausible(private):
        raise DomainError(
            "this table implies noise that could not have been drawn, so it is not the one behind the "
            "publication (or not in its units). Name the table that was fitted."
        )
    return (terms.loss for terms in streamed_terms(private, records, publication.loss, member=True))
