"""``expost plan``: what a fit would spend; no data is needed."""

from expost.cli.base import console, print_json, report_errors, say
from expost.cli.options import (
    L2,
    ROWS_AT_MOST,
    AsJson,
    Cap,
    Delta,
    DomainFile,
    Epsilon,
    LossOption,
    MaxWeight,
    Report,
    ReportOption,
    RowsAtMost,
    Split,
    Threshold,
    make_plan,
)


@report_errors
def plan(
    domain: DomainFile,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    report: ReportOption = Report.INDEPENDENT,
    l2: L2 = None,
    cap: Cap = None,
    split: Split = None,
    loss: LossOption = None,
    threshold: Threshold = None,
    rows_at_most: RowsAtMost = ROWS_AT_MOST,
    max_weight: MaxWeight = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show what a fit would spend and what noise it would add. No data is needed and none is read.

    Example: expost plan domain.toml --epsilon 1 --delta 1e-6 --report leverage
    """
    from expost.cli.options import load_domain
    from expost.cli.words import explain

    declared = load_domain(domain)
    planned = make_plan(
        declared,
        epsilon=epsilon,
        delta=delta,
        report=report,
        l2=l2,
        cap=cap,
        split=split,
        loss=loss,
        threshold=threshold,
        rows_at_most=rows_at_most,
        max_weight=max_weight,
    )
    if as_json:
        print_json(planned.fields())
    else:
        explain(console, planned, len(declared.column_names) + planned.fit_intercept)
        say("\nThe same in numbers, for experts:\n")
        console.print(planned)
