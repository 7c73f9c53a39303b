"""``expost bounds``: what one or several publications cost each record."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from expost._common.validation import Simultaneous, check_positive, parameter_error
from expost.cli.base import console, legible, print_json, report_errors, say, show_progress, warn
from expost.cli.options import (
    CLUSTER,
    DEVICE,
    PUBLICATIONS,
    RecordOptions,
    argument,
    check_order,
    number,
    option,
    whole_number,
)

if TYPE_CHECKING:
    from expost.publication import Publication
    from expost.reports.base import Figures


@report_errors
def bounds(
    *,
    publications: list[Path] = PUBLICATIONS,
    records: Path = argument(
        "RECORDS",
        "A .csv or .parquet file with the outcome's column, a folder of such files, or a quoted pattern.",
    ),
    confidence: float = number(0.95, "How sure each bound should be; choose it before looking."),
    member: Literal["yes", "no", "unknown"] = option(
        "unknown", "Whether the records were in the table that was fitted."
    ),
    simultaneous: str | None = option(
        None,
        "Bounds that hold together: for N records fixed in advance, at least as many as RECORDS has, or for "
        "all possible records, even one chosen after seeing the publication.",
        metavar="all|N",
    ),
    weight: str | None = option(
        None,
        "The column with the weight of each record; without it the figures of a publication with weights "
        "hold whatever these were.",
        metavar="COLUMN",
    ),
    output: Path | None = option(
        None, "Write all figures (.csv or .parquet) as they are computed.", "--output", "-o"
    ),
    dask: str | None = CLUSTER,
    device: str | None = DEVICE,
    options: RecordOptions,
) -> None:
    """Bound what publications cost each record, from the publication and the record alone.

    Nothing is sent anywhere, except to the cluster of `--dask`, and nothing about anyone else is revealed.
    The interval for the model, the cost of what was published beside it and the total each hold with the
    chosen confidence on their own, not jointly. With several publications, each has its share of the
    confidence, and the total of all together is a bound of its own, below their sum.

    Example: expost bounds publication.json my-record.csv --confidence 0.99 --member yes
    """
    from expost.cli.display import MOST_RECORDS, FirstRecords, Run, columns_of, figures_of, show_bounds
    from expost.cli.private_files import open_records, with_identifiers, write_columns
    from expost.reports.base import Figures, Scope

    check_positive("confidence", confidence, below=1.0)
    scope = _scope(simultaneous)
    check_order(publications[0], records)
    read = _load(publications)
    most = None if options.as_json and output is None else MOST_RECORDS
    first: FirstRecords[Run] = FirstRecords(most, lambda run: len(run.total))
    places = {"names": Figures._fields, "read": publications, "dask": dask, "device": device}
    with (
        open_records(records, options, output, "bounds", **places) as table,
        show_progress("Reading the publications for each record") as progress,
    ):
        found = figures_of(
            read,
            table,
            weight,
            confidence=confidence,
            member={"yes": True, "no": False}.get(member),
            simultaneous=scope,
            watch=progress.watch,
        )
        columns = map(columns_of, first.passing(found))
        identifier = None if output is None else options.identifier
        write_columns(output, with_identifiers(columns, table, identifier), overwrite=options.force)
    _warn(publications, read, weight)
    promised = float(sum(_promise(publication) for publication in read))
    run = Run.joined(first.kept)
    if options.as_json:
        figures = run.figures if output is None else [None] * len(read)
        print_json(
            {
                "confidence": confidence,
                "member": member,
                "simultaneous": scope,
                "promised": promised,
                "publications": list(map(_fields, publications, read, figures)),
                "total": run.total.tolist() if output is None else None,
                "output": output,
            }
        )
        return
    where = "use --output to have them all" if output is None else f"all of them are in {legible(output)}"
    console.print(show_bounds(publications, run, first.records, promised, where))
    say(Scope.of(scope).sentence(confidence))
    if output is not None:
        say(f"Written: {legible(output)}")


def _scope(simultaneous: str | None) -> Simultaneous:
    if simultaneous is None or simultaneous == "all":
        return simultaneous
    with suppress(ValueError):
        return whole_number(simultaneous)
    raise parameter_error("simultaneous", "a number of records or 'all'", simultaneous)


def _load(paths: list[Path]) -> "list[Publication]":
    from expost.exceptions import FileError
    from expost.publication import Publication

    read = [Publication.load(path) for path in paths]
    if len({publication.sha256 for publication in read}) < len(read):
        raise FileError("a publication is given twice, and would be counted twice. Name each file once.")
    return read


def _warn(paths: list[Path], read: "list[Publication]", weight: str | None) -> None:
    if weight is None and any(publication.weighting.max_weight is not None for publication in read):
        warn("records had weights here; without --weight COLUMN the figures hold whatever these were.")
    for path, publication in zip(paths, read, strict=True):
        if publication.insecure:
            warn(f"{path} was made with seeded noise for a test: its promise and these bounds are void.")


def _promise(publication: "Publication") -> float:
    return float("inf") if publication.plan.epsilon is None else publication.plan.epsilon


def _fields(path: Path, publication: "Publication", figures: "Figures | None") -> dict[str, object]:
    fields = {
        "publication": path,
        "sha256": publication.sha256,
        "insecure": publication.insecure is not None,
        "epsilon": publication.plan.epsilon,
        "delta": publication.plan.delta,
    }
    if figures is not None:
        fields |= {name: figure.tolist() for name, figure in figures._asdict().items()}
    return fields
