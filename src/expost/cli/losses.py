"""``expost losses``: everyone's exact loss, for the curator only."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expost.cli.base import console, error_console, legible, print_json, report_errors, say, warn
from expost.cli.options import AsJson, Force, Weight

if TYPE_CHECKING:
    from expost._common.typing import FloatArray
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
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Recompute everyone's exact privacy loss from the table and the publication. Private.

    The noise that was drawn follows from the two, so it was never stored. The command cannot know whether the
    table is the one that was fitted. With another table the figures mean nothing, and only large differences
    are noticed. Never publish the result, nor tell it to the person it is about.

    Example: expost losses publication.json table.csv -o private-losses.csv
    """
    from expost.cli.display import quantiles, show_losses
    from expost.cli.private_files import MARK, check_private, write_losses
    from expost.data.open_lazy import scan
    from expost.publication import Publication

    if output is not None:
        check_private(output, inputs=(publication, *scan(table).paths), overwrite=force)
    read = Publication.load(publication)
    if weight is None and read.weighting.max_weight is not None:
        warn(
            "this publication states that its records may have weights; without --weight COLUMN each counts "
            "once, and the figures are right only if each did."
        )
    with error_console.status("Computing everyone's exact loss"):
        exact, likely = exact_losses(read, table, weight)
    if not likely:
        warn(
            "this table implies noise that could not have been drawn, so it is not the one behind the "
            "publication (or not in its units), and the figures mean nothing."
        )
    if output is not None:
        write_losses(output, [exact], overwrite=force)
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
        say(f"\nPrivate: {legible(output)}")
    say("These figures come from everyone's records. Never publish them.")


def exact_losses(
    publication: "Publication", table: Path, weight: str | None = None
) -> "tuple[FloatArray, bool]":
    """Everyone's exact loss, and whether the table could be the one that was fitted; both private."""
    from expost.data.encoding import encode_records
    from expost.fitting.ex_post import ex_post_terms
    from expost.fitting.private_fit import plausible, recover

    release = publication.release
    records = encode_records(
        table,
        None,
        release.plan,
        classes=publication.classes,
        domain=publication.domain,
        n_features=publication.n_features,
        feature_names=publication.feature_names,
        weighting=publication.weighting,
        sample_weight=weight,
    ).scanned(release.plan.loss, release.plan.max_weight)
    private = recover(release, records)
    terms = ex_post_terms(private, records, publication.loss, member=True)
    return terms.loss, plausible(private)
