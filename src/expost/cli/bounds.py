"""``expost bounds``: what one or several publications cost each record."""

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expost.cli.base import console, error_console, print_json, report_errors, say, warn
from expost.cli.options import AsJson, Weight, number, whole_number

if TYPE_CHECKING:
    from expost.publication import Publication
    from expost.reports import Bounds


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
        Path, typer.Argument(metavar="RECORDS", help="A .csv or .parquet file with the outcome's column.")
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
    weight: Weight = None,
    as_json: AsJson = False,
) -> None:
    """Bound what publications cost each record, from the publication and the record alone.

    Nothing is sent anywhere and nothing about anyone else is revealed. The interval for the model, the cost
    of what was published beside it and the total each hold with the chosen confidence on their own, not
    jointly. With several publications, the totals are added up, and the confidence is shared among them so
    that it holds for the sum.

    Example: expost bounds publication.json my-record.csv --confidence 0.99 --member yes
    """
    import numpy as np

    from expost._common.validation import check_positive
    from expost.cli.display import show_bounds
    from expost.exceptions import FileError
    from expost.publication import Publication

    failure = 1.0 - check_positive("confidence", confidence, below=1.0)
    scope = _scope(simultaneous)
    read = [Publication.load(path) for path in publications]
    if len({publication.sha256 for publication in read}) < len(read):
        raise FileError("a publication is given twice, and would be counted twice. Name each file once.")
    every: list[Bounds] = []
    with error_console.status("Reading the publications for each record"):
        for publication in read:
            # Each gets an equal share of the failure probability, so that the sum has the chosen confidence.
            level = 1.0 - failure / len(read)
            every.append(
                publication.bounds(
                    records,
                    sample_weight=weight if publication.weighting.max_weight is not None else None,
                    confidence=level,
                    member=_MEMBER[member],
                    simultaneous=scope,
                )
            )
    if weight is None and any(publication.weighting.max_weight is not None for publication in read):
        warn("records may have weights in this publication; without --weight COLUMN each counts once.")
    for path, publication in zip(publications, read, strict=True):
        if publication.insecure:
            warn(f"{path} was made with seeded noise for a test: its promise and these bounds are void.")
    total = np.sum([one.total for one in every], axis=0)
    promised = float(sum(_promise(publication) for publication in read))
    if as_json:
        print_json(
            {
                "confidence": confidence,
                "member": member.value,
                "simultaneous": scope,
                "promised": promised,
                "publications": [_fields(*one) for one in zip(publications, read, every, strict=True)],
                "total": total.tolist(),
            }
        )
    else:
        console.print(show_bounds(publications, every, total, promised))
        say(every[0].scope.sentence(confidence))


def _scope(simultaneous: str | None) -> int | str | None:
    if simultaneous is None or simultaneous == "all":
        return simultaneous
    from expost._common.validation import parameter_error

    with suppress(ValueError):
        return whole_number(simultaneous)
    raise parameter_error("simultaneous", "a number of records or 'all'", simultaneous)


def _promise(publication: "Publication") -> float:
    return float("inf") if publication.plan.epsilon is None else publication.plan.epsilon


def _fields(path: Path, publication: "Publication", bounds: "Bounds") -> dict[str, object]:
    return {
        "publication": path,
        "sha256": publication.sha256,
        "insecure": publication.insecure is not None,
        "epsilon": publication.plan.epsilon,
        "delta": publication.plan.delta,
        "lower": bounds.lower.tolist(),
        "upper": bounds.upper.tolist(),
        "report_cost": bounds.report_cost.tolist(),
        "total": bounds.total.tolist(),
    }
