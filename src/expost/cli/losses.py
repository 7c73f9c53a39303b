"""``expost losses``: everyone's exact loss, recomputed from the table and the publication."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from expost._common.typing import FloatArray
from expost.cli.base import console, legible, print_json, say, warn
from expost.cli.commands import LossesOptions
from expost.cli.display import Tally, show_losses
from expost.cli.private_files import COLUMN, LOSSES_MARK, check_figures, listed_ids, unit_of, write_losses
from expost.cli.tables import check_publication_first, dialect_of, inputs_of, open_records, person_column
from expost.cli.words import whole_promise
from expost.data.domain import Domain
from expost.data.encoding import Encoded
from expost.data.lazy import LazyTable
from expost.data.ranges import choice_losses
from expost.exceptions import DomainError, PublicationError
from expost.fitting.ex_post import LossTerms, streamed_terms
from expost.fitting.private_fit import FALSE_ALARMS, plausible, recover
from expost.publication import Publication
from expost.publication.readings import encoded_records

# How seldom noise is that makes a curator doubt whether this is the whole table.
_DOUBTFUL = 1e-3


def losses(options: LossesOptions) -> None:
    """Recompute everyone's exact loss; private."""
    check_publication_first(options.publication, options.table)
    read, reading, output = Publication.load(options.publication), options.reading, options.output
    person = person_column(options.person, reading, of_people=read.of_people)
    _check_declared(read, options.weight, person)
    tally = Tally()
    listed: list[float] = []
    where = {"person": person, "dask": options.dask, "device": options.device}
    doing = "Computing everyone's exact loss"
    with open_records(options.table, reading, [COLUMN], doing, **where) as (table, watch):
        inputs = inputs_of(table, options.publication, options.table, reading.domain)
        check_figures(output, "exact losses", private=True, inputs=inputs, overwrite=reading.force)
        records = replace(encoded_records(read, table, None, options.weight, person), watch=watch)
        people, named = records.whose, person or reading.identifier
        rows, terms = read.weighting.rows_per_person, _exact_losses(read, records)
        counted = tally.counted(with_choices(terms, read.domain, table, person, rows))
        if output is not None:
            written: Any = {"overwrite": reading.force, "dialect": dialect_of(reading)}
            write_losses(output, counted, table, named, people, **written)
        else:
            listed = [loss for part in counted for loss in (part.tolist() if reading.as_json else ())]
    promised = whole_promise(read.release.plan, read.release.choices)
    if reading.as_json:
        print_json(
            {
                "private": LOSSES_MARK,
                "plausible": True,
                "epsilon": promised,
                "quantiles": {f"{share:g}": loss for share, loss in tally.quantiles().items()},
                "unit": unit_of(people),
                "people": listed_ids(people, person, output),
                "losses": listed if output is None else None,
                "output": output,
            }
        )
        return
    console.print(show_losses(tally, promised))
    if output is not None:
        say(f"\nPrivate: {legible(output)}")
    say("These figures come from everyone's records. Never publish them, and tell nobody")
    say("hers: the page is for that. They are right only if this is the whole table that")
    say("was fitted, with all of its rows. The noise that it implies could have been")
    say("drawn, but that can be so without many of its rows too.")


def _check_declared(publication: Publication, weight: str | None, person: str | None) -> None:
    """Refuse exact losses where nobody said the weight of each record, or whose each row is."""
    if weight is None and publication.weighting.max_weight is not None:
        raise DomainError(
            "the records of this publication had weights, and without them every figure would be wrong. Name "
            "the column that was fitted: --weight COLUMN."
        )
    if person is None and publication.of_people:
        raise DomainError(
            "this publication promises to people, and nobody said whose each row is. Name the column of the "
            "fit: --person COLUMN, or --domain DOMAIN.toml with a domain file that declares `person`."
        )


def with_choices(
    parts: Iterable[LossTerms],
    domain: Domain | None,
    table: LazyTable,
    person: str | None,
    rows_per_person: int | None,
) -> Iterator[FloatArray]:
    """Everyone's exact loss from its terms, part by part, with ranges that were chosen; private."""
    choices = () if domain is None else domain.choices
    if domain is None or not choices:
        yield from (terms.loss for terms in parts)
        return
    people: Any = {"person": person, "rows_per_person": rows_per_person}
    every, start = choice_losses(table, choices, dialect=table.dialect, **people), 0
    for terms in parts:
        count = len(terms.signed)
        yield replace(terms, choices=every[start : start + count]).loss
        start += count


def _exact_losses(publication: Publication, encoded: Encoded) -> Iterator[LossTerms]:
    """The terms of everyone's exact loss, part by part, if the table could be the fitted one; private."""
    plan = publication.release.plan
    records = encoded.checked_for(plan.loss, plan.max_weight)
    private = recover(publication.release, records)
    if not plausible(private):
        raise PublicationError(
            "this is not the table that was fitted, or not all of it: with the publication it implies noise "
            f"that is drawn less than once in {1.0 / FALSE_ALARMS:,.0f} fits. Name the whole table, in the "
            "units and with the weights of the fit."
        )
    if not plausible(private, level=_DOUBTFUL):
        warn(
            "with the publication, this table implies noise that is drawn less than once in "
            f"{1.0 / _DOUBTFUL:,.0f} fits. If some of its rows are missing, every figure is wrong."
        )
    return streamed_terms(private, records, publication.loss, member=True)
