"""``expost bounds``: what one or several publications cost each record."""

from collections import deque
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expost._common.validation import Simultaneous
from expost.cli.base import console, legible, print_json, report_errors, say, warn
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
    check_order,
    connected,
    dialect_of,
    number,
    whole_number,
)

if TYPE_CHECKING:
    from expost.publication import Publication
    from expost.reports.base import Figures


class Member(StrEnum):
    """Whether the records were in the table, as far as the reader knows."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


_MEMBER = {Member.YES: True, Member.NO: False, Member.UNKNOWN: None}


@report_errors
def bounds(
    publications: Annotated[
        list[Path], typer.Argument(metavar="PUBLICATION.json", help="One or several publications.")
    ],
    records: Annotated[
        Path,
        typer.Argument(
            metavar="RECORDS",
            help="A .csv or .parquet file with the outcome's column, a folder of such files, or a quoted "
            "pattern.",
        ),
    ],
    confidence: Annotated[
        float,
        typer.Option(
            parser=number, metavar="<number>", help="How sure each bound should be; choose it before looking."
        ),
    ] = 0.95,
    member: Annotated[
        Member, typer.Option(help="Whether the records were in the table that was fitted.")
    ] = Member.UNKNOWN,
    simultaneous: Annotated[
        str | None,
        typer.Option(
            metavar="all|N",
            help="Bounds that hold together: for N records fixed in advance, at least as many as RECORDS "
            "has, or for all possible records, even one chosen after seeing the publication.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column with the weight of each record; without it the figures of a publication with "
            "weights hold whatever these were.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all figures (.csv or .parquet) as they are computed."),
    ] = None,
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
    """Bound what publications cost each record, from the publication and the record alone.

    Nothing is sent anywhere, except to the cluster of `--dask`, and nothing about anyone else is revealed.
    The interval for the model, the cost of what was published beside it and the total each hold with the
    chosen confidence on their own, not jointly. With several publications, each has its share of the
    confidence, and the total of all together is a bound of its own, below their sum.

    Example: expost bounds publication.json my-record.csv --confidence 0.99 --member yes
    """
    from expost._common.files import check_output
    from expost._common.validation import check_positive
    from expost.cli.base import shown
    from expost.cli.display import MOST_RECORDS, FirstRecords, columns_of, figures_of, show_bounds
    from expost.cli.private_files import check_identifier, check_table_name, with_identifiers, write_columns
    from expost.data.open_lazy import scan
    from expost.exceptions import FileError
    from expost.publication import Publication
    from expost.reports.base import Figures, Scope

    check_positive("confidence", confidence, below=1.0)
    scope = _scope(simultaneous)
    check_order(publications[0], records)
    written = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "dates": dates}
    dialect = dialect_of(domain, missing_words=missing_words, **written)
    read = [Publication.load(path) for path in publications]
    if len({publication.sha256 for publication in read}) < len(read):
        raise FileError("a publication is given twice, and would be counted twice. Name each file once.")
    with connected(dask) as client:
        table = scan(records, client=client, device=device, dialect=dialect)
        check_identifier(table, identifier, Figures._fields)
        if output is not None:
            check_table_name(output, "bounds")
            check_output(output, inputs=(*publications, records, *table.paths), overwrite=force)
        first = FirstRecords(None if as_json and output is None else MOST_RECORDS)
        with shown("Reading the publications for each record") as progress:
            found = figures_of(
                read,
                table,
                weight,
                confidence=confidence,
                member=_MEMBER[member],
                simultaneous=scope,
                watch=progress.watch,
            )
            columns = (columns_of(run) for run in first.passing(found))
            if output is None:
                deque(columns, maxlen=0)
            else:
                write_columns(output, with_identifiers(columns, table, identifier), overwrite=force)
    if weight is None and any(publication.weighting.max_weight is not None for publication in read):
        warn("records had weights here; without --weight COLUMN the figures hold whatever these were.")
    for path, publication in zip(publications, read, strict=True):
        if publication.insecure:
            warn(f"{path} was made with seeded noise for a test: its promise and these bounds are void.")
    promised = float(sum(_promise(publication) for publication in read))
    every, total = first.run
    if as_json:
        print_json(
            {
                "confidence": confidence,
                "member": member.value,
                "simultaneous": scope,
                "promised": promised,
                "publications": [
                    _fields(path, publication, None if output is not None else figures)
                    for path, publication, figures in zip(publications, read, every, strict=True)
                ],
                "total": None if output is not None else total.tolist(),
                "output": output,
            }
        )
        return
    where = "use --output to have them all" if output is None else f"all of them are in {legible(output)}"
    console.print(show_bounds(publications, first.run, first.records, promised, where))
    say(Scope.of(scope).sentence(confidence))
    if output is not None:
        say(f"Written: {legible(output)}")


def _scope(simultaneous: str | None) -> Simultaneous:
    if simultaneous is None:
        return None
    if simultaneous == "all":
        return "all"
    from expost._common.validation import parameter_error

    with suppress(ValueError):
        return whole_number(simultaneous)
    raise parameter_error("simultaneous", "a number of records or 'all'", simultaneous)


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
