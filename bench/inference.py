"""Coverage of confidence intervals on simulated tables, and their widths on real ones without privacy.

Run as ``python -m bench.inference``; the numbers that the documents quote go to ``--json``. The widths need
statsmodels and the data sets. With ``--only`` these settings alone are measured, and the others keep the
numbers that the file has.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np

import expost
from bench.inference_tables import CONFIDENCE, SPLIT, Setting, simulate
from bench.saving import RESULTS, save
from expost.inference import CoefficientTable
from expost.losses import SoftmaxLoss
from expost.privacy.shapes import capped_logistic
from papers.datasets import DataSet, adult, credit

TABLES = 400
SETTINGS = {
    "2,000 rows of 3 numbers": Setting(2_000, 1.0, 3),
    "2,000 rows of 5 numbers": Setting(2_000, 8.0, 5),
    "10,000 rows of 5 numbers": Setting(10_000, 0.3, 5),
    "20,000 records of a domain": Setting(20_000, 1.0),
    "50,000 records of a domain, scaled": Setting(50_000, 2.0, scaled=True),
    "50,000 rows of 20 numbers": Setting(50_000, 1.0, 20),
    "100,000 rows of 10 numbers": Setting(100_000, 0.3, 10),
}
# The default of two classes: rows of the unit ball, and the constant.
DEFAULT = capped_logistic(1.0, 1e-6, radius=math.sqrt(2.0))
OTHERS = {
    "its own model, capped": Setting(20_000, 1.0, 3, loss=DEFAULT, plain_labels=False),
    "plain labels, capped": Setting(20_000, 1.0, 3, loss=DEFAULT),
    "three classes": Setting(20_000, 2.0, 3, loss=SoftmaxLoss(3)),
    "three classes, capped": Setting(20_000, 2.0, 3, loss=SoftmaxLoss(3, cap=0.7), plain_labels=False),
    "a gradient as well": Setting(5_000, 1.0, 3, report="dependent", split=0.5),
    "the default split": Setting(20_000, 1.0, 5, split=None),
}
BREAKS = {
    "100 rows, ε = 8": Setting(100, 8.0, 3),
    "100 rows, ε = 1": Setting(100, 1.0, 3),
    "200 rows, ε = 8": Setting(200, 8.0, 3),
    "200 rows, ε = 1": Setting(200, 1.0, 3),
    "500 rows, ε = 1": Setting(500, 1.0, 3),
    "2,000 rows, ε = 1, the default split": Setting(2_000, 1.0, 3, split=None),
    "2,000 rows, ε = 1, log-odds up to 6": Setting(2_000, 1.0, 3, length=6.0),
    "10,000 rows, ε = 1, log-odds up to 12": Setting(10_000, 1.0, 3, length=12.0),
}
# What is fitted of each table; Adult has the education twice, and rare categories tell nothing.
CREDIT = ("LIMIT_BAL", "EDUCATION", "AGE", "PAY_0", "PAY_AMT1")
ADULT = (
    "age",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "marital-status",
    "sex",
)


def coverage(setting, tables=TABLES):
    """How often intervals cover the truth, and how often there are none."""
    found = list(simulate(setting, tables))
    coefficients = np.array([one.coefficients for one in found if one.coefficients is not None])
    probabilities = np.array([one.probabilities for one in found if one.probabilities is not None])
    refused = 1.0 - len(coefficients) / tables
    undetermined = float(np.mean(np.isnan(coefficients))) if len(coefficients) else 0.0
    return {
        "tables": tables,
        "rows": setting.rows,
        "epsilon": setting.epsilon,
        "coefficients": float(np.nanmean(coefficients)) if len(coefficients) else None,
        "probabilities": float(np.mean(probabilities)) if len(coefficients) else None,
        "undetermined": refused + (1.0 - refused) * undetermined,
        "refused": refused,
    }


def fitted(table: DataSet, domain: expost.Domain, epsilon: float, seed: int) -> CoefficientTable:
    """The coefficients of a private model without a cap."""
    import pandas as pd

    plan = expost.calibrate(
        epsilon=epsilon, norm=domain.row_norm, report="leverage", split=SPLIT, fit_intercept=True
    )
    model = expost.LogisticRegression(plan=plan, domain=domain, random_state=seed)
    frame = pd.DataFrame({feature.name: table.columns[feature.name] for feature in domain.features})
    return model.fit(frame, table.outcome).publication_.summary(CONFIDENCE)


def not_private(table: DataSet, domain: expost.Domain):
    """The coefficients and intervals of statsmodels, for clipped features in their own units."""
    import statsmodels.api as sm

    from expost.inference.coordinates import domain_coordinates

    found = domain_coordinates(domain, domain.longest_row, intercept=True)
    rows = np.column_stack([domain.encode(table.columns), np.ones(len(table))]) @ found.basis
    # φ is what these columns estimate; their terms in original units are linear in it.
    result = sm.Logit(table.labels(), rows).fit(disp=0, maxiter=200)
    covariance = found.units @ result.cov_params() @ found.units.T
    return found.names, found.units @ result.params, np.sqrt(np.diag(covariance))


def narrowed(table: DataSet, names=None) -> expost.Domain:
    """The domain of some features, whose rows are never scaled."""
    features = tuple(one for one in table.domain.features if names is None or one.name in names)
    return expost.Domain(features=features, label=table.domain.label, norm=len(features) ** 0.5)


def widths(table: DataSet, names, epsilon=1.0, seeds=10):
    """Widths of private intervals and of those without privacy, coefficient by coefficient."""
    domain = narrowed(table, names)
    terms, estimates, errors = not_private(table, domain)
    runs = [fitted(table, domain, epsilon, seed) for seed in range(seeds)]
    rows = []
    for place, term in enumerate(terms):
        private = np.array([run.standard_errors[place] for run in runs])
        distance = np.array([run.coefficients[place] - estimates[place] for run in runs])
        seen = np.isfinite(private)
        rows.append(
            {
                "term": term,
                "estimate": float(estimates[place]),
                "error": float(errors[place]),
                "private_error": float(np.median(private[seen])) if seen.any() else None,
                "determined": float(np.mean(seen)),
                # How far the private coefficient is from the other one, in its own standard errors.
                "distance": float(np.median(np.abs(distance[seen] / private[seen]))) if seen.any() else None,
            }
        )
    whole = narrowed(table)
    everything = [np.isfinite(fitted(table, whole, epsilon, seed).z) for seed in range(seeds)]
    return {
        "rows": len(table),
        "fits": seeds,
        "epsilon": epsilon,
        "terms": rows,
        "whole_terms": len(everything[0]),
        "whole_determined": float(np.median([found.sum() for found in everything])),
    }


def main():
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=RESULTS / "inference.json")
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--only", nargs="+", metavar="SETTING")
    options = parser.parse_args()
    document = {} if options.only is None else json.loads(options.json.read_text(encoding="utf-8"))
    for kind, settings in (("settings", SETTINGS), ("others", OTHERS), ("breaks", BREAKS)):
        found = document.setdefault(kind, {})
        for name, setting in settings.items():
            if options.only is None or name in options.only:
                found[name] = coverage(setting, options.tables)
                print(name, found[name], flush=True)
    if options.only is not None:
        save(options.json, document)
        return
    document["credit"] = widths(credit(), CREDIT)
    document["adult"] = widths(adult("train"), ADULT)
    for name in ("credit", "adult"):
        for row in document[name]["terms"]:
            print(name, row)
    save(options.json, document)


if __name__ == "__main__":
    main()
