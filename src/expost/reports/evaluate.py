"""Every record's interval, cost and total, from a release and the record alone."""

import numpy as np

from expost._common.parallel import map_spans
from expost._common.typing import FloatArray
from expost._common.validation import check_choice, parameter_error
from expost.data.design import Design
from expost.fitting.release import Release
from expost.losses import VectorLoss
from expost.reports.base import CONFIDENCE, Scope, check_confidence
from expost.reports.bounds import Bounds
from expost.reports.paper import PaperReader
from expost.reports.tight import TightReader
from expost.reports.total import report_cost
from expost.reports.vector_records import records_of

METHODS: dict[str, type[TightReader] | type[PaperReader]] = {"tight": TightReader, "paper": PaperReader}


def evaluate(
    release: Release,
    design: Design,
    y: FloatArray,
    *,
    weights: FloatArray | None = None,
    confidence: float = CONFIDENCE,
    member: bool | None = None,
    simultaneous: int | str | None = None,
    method: str = "tight",
) -> Bounds:
    """Read a release for each record, in one pass over the records.

    Parameters
    ----------
    release
        What was published.
    design, y
        The records as the mechanism would see them, and their labels.
    weights
        The weight of each record, where they have any.
    confidence
        How sure to be; chosen by the reader, not by the curator, and before looking at any figure. The
        interval, the report's cost and the total each hold with it on their own, not jointly.
    member
        Whether the records were in the table; ``None`` where that is unknown, which gives the union of both.
    simultaneous
        ``None`` for each record on its own, fixed before the release; a number for that many such records
        at once, at least as many as are asked about; ``"all"`` for every record there could be, chosen
        after seeing the release included.
    method
        ``"tight"``, or ``"paper"`` for the report of Redberg and Wang (2021) made sound.

    Privacy
    -------
    Public values and the record itself in; the result concerns only that record. Answering for any number
    of records, by any coalition, reveals nothing beyond the release.
    """
    failure = check_confidence(confidence)
    scope = Scope.of(simultaneous)
    scope.check_records(design.n_rows)
    check_choice("method", method, METHODS)
    if isinstance(release.plan.loss, VectorLoss) and method == "paper":
        way_out = "That report is for one linear predictor."
        raise parameter_error("method", "'tight' with several linear predictors", method, way_out)
    if not (member is None or isinstance(member, bool | np.bool_)):
        raise parameter_error("member", "True, False or None", member)
    reader = METHODS[method](release, failure, scope)
    sides = (True, False) if member is None else (bool(member),)
    lower, upper, cost, total = (np.empty(design.n_rows) for _ in range(4))
    bounds = Bounds(lower, upper, cost, total, confidence=1.0 - failure, scope=scope)

    def work(slices: list[slice]) -> None:
        for block, rows in design.blocks(slices):
            # The squared loss has no largest slope: a label may be so far away that its bounds are infinite.
            with np.errstate(over="ignore", invalid="ignore"):
                weight = None if weights is None else weights[block]
                records = records_of(release, rows, y[block], scope, weight)
                readings = [reader.read(records, member=side) for side in sides]
                bounds.report_cost[block] = report_cost(release, records, scope, failure)
            bounds.lower[block] = np.min([reading.lower for reading in readings], axis=0)
            bounds.upper[block] = np.max([reading.upper for reading in readings], axis=0)
            bounds.total[block] = np.max([reading.total for reading in readings], axis=0)

    # A record of several predictors has matrices of its own.
    width = design.dimension
    if isinstance(release.plan.loss, VectorLoss):
        size = width if release.plan.reduced else len(release.coefficients)
        width = max(size, release.plan.loss.outputs + 1) * (release.plan.loss.outputs + 1)
    map_spans(design.n_rows, width, work)
    return bounds
