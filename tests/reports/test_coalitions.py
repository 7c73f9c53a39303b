"""Asking a publication about any number of records reveals nothing beyond the file.

The reason is not a bound: a figure is a function of the file's bytes and of the record alone. The tests show
that a process which has only the file gives the same figures, that asking changes nothing, that an answer
does not depend on who else asks, and that two tables with the same file give the same answers. Where two
answers must agree, a broken version that leaks shows that the comparison would find the leak.
"""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from problems import design_of

import expost
from expost.fitting import mechanism
from expost.fitting.release import Release
from expost.reports import evaluate

rng = np.random.default_rng(1)
X = rng.normal(size=(500, 3)) / 4
Y = (X[:, 0] + 0.1 * rng.normal(size=500) > 0).astype(int)
REPORTS = ["independent", "leverage", "dependent", "adaptive"]
# A process of its own for each takes seconds, so `make test` has the one with every statistic.
APART = [pytest.param(report, marks=[pytest.mark.slow] * (report != "adaptive")) for report in REPORTS]
FIGURES = ["lower", "upper", "report_cost", "total"]
ASKED = rng.uniform(-1, 1, size=(2_000, 3)), rng.integers(0, 2, 2_000)


@pytest.mark.long
@pytest.mark.parametrize("report", APART)
def test_another_process_with_the_file_computes_all_the_answers(report, tmp_path):
    """Another process, with no table and no estimator, computes a coalition's two thousand answers."""
    publication = expost.LogisticRegression(norm=1.0, classes=[0, 1], report=report).fit(X, Y).publication_
    publication.save(tmp_path / "publication.json")
    np.save(tmp_path / "X.npy", ASKED[0])
    np.save(tmp_path / "y.npy", ASKED[1])
    script = (
        "import json, sys, numpy as np, expost\n"
        "folder = sys.argv[1]\n"
        "publication = expost.Publication.load(folder + '/publication.json')\n"
        "got = publication.bounds(np.load(folder + '/X.npy'), np.load(folder + '/y.npy'), member=None)\n"
        "print(json.dumps([got.lower.tolist(), got.upper.tolist(), got.total.tolist()]))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    mine = publication.bounds(*ASKED, member=None)
    for theirs, ours in zip(json.loads(output), (mine.lower, mine.upper, mine.total), strict=True):
        np.testing.assert_array_equal(theirs, ours)


def test_asking_changes_nothing_and_the_order_of_questions_does_not_matter():
    publication = (
        expost.LogisticRegression(norm=1.0, classes=[0, 1], report="adaptive").fit(X, Y).publication_
    )
    before = publication.to_json()
    together = publication.bounds(*ASKED)
    for chosen in ([5], [1999, 3, 5], list(range(1000, 1200))):
        few = publication.bounds(ASKED[0][chosen], ASKED[1][chosen])
        np.testing.assert_allclose(few.upper, together.upper[chosen], rtol=1e-12)
        np.testing.assert_allclose(few.total, together.total[chosen], rtol=1e-12)
    assert publication.to_json() == before


def disagreement(one, other):
    """The largest relative difference among all figures of two answers."""
    pairs = [(getattr(one, name), getattr(other, name)) for name in FIGURES]
    return max(float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-9))) for a, b in pairs)


@pytest.mark.parametrize("company", ["alone", "reversed", "with strangers", "with a giant"])
@pytest.mark.parametrize("report", REPORTS)
def test_an_answer_does_not_depend_on_who_else_asks(report, company):
    """Up to rounding: sums of many rows are not always added up in the order of a single one."""
    publication = expost.LogisticRegression(norm=1.0, classes=[0, 1], report=report).fit(X, Y).publication_
    few, labels = ASKED[0][:40], ASKED[1][:40]
    with_giant = np.vstack([few, [[1e200, -1e200, 1e200]]]), np.append(labels, 1)
    asked, mine = {
        "alone": ((few[7:8], labels[7:8]), [7]),
        "reversed": ((few[::-1], labels[::-1]), list(range(39, -1, -1))),
        "with strangers": (ASKED, list(range(40))),
        "with a giant": (with_giant, list(range(40))),
    }[company]

    def answers(read, records, places):
        found = read(*records)
        return SimpleNamespace(**{name: getattr(found, name)[places] for name in FIGURES})

    def centred(rows, asked_labels):
        """A broken version, which learns something from all the records that it is asked about."""
        return publication.bounds(rows - rows.mean(axis=0), asked_labels)

    here = list(range(len(mine))) if company in ("alone", "reversed") else mine
    for read, agrees in ((publication.bounds, True), (centred, company == "reversed")):
        together = answers(read, (few, labels), mine)
        elsewhere = answers(read, asked, here)
        assert (disagreement(elsewhere, together) < 1e-12) == agrees


def published_as(release, table, labels, report, monkeypatch):
    """A fit to another table whose noise is made to have led to the same release."""
    with monkeypatch.context() as patch:
        patch.setattr(mechanism, "Release", lambda *_, **__: release)
        return expost.LogisticRegression(norm=1.0, classes=[0, 1], report=report).fit(table, labels)


@pytest.mark.parametrize("report", REPORTS)
def test_two_tables_with_the_same_file_give_the_same_answers(report, monkeypatch, remembered):
    """Whatever the table was, the answers depend on it only through what is published."""
    one = expost.LogisticRegression(norm=1.0, classes=[0, 1], report=report).fit(X, Y)
    other = published_as(one.publication_.release, X[:120] / 2, 1 - Y[:120], report, monkeypatch)
    assert other.publication_.to_json() == one.publication_.to_json()
    for options in ({}, {"member": True, "simultaneous": "all"}, {"member": False}):
        ours, theirs = (model.publication_.bounds(*ASKED, **options) for model in (one, other))
        for name in FIGURES:
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))

    def leaky(model):
        """A broken version, which reads the exact Hessian that only the curator has."""
        scales = {"sigma": 4.0, "sigma_hessian": 1e-3, "l2": 5.0}
        plan = expost.calibrate(report="leverage", fit_intercept=True, **scales)
        exact = Release(plan, model.publication_.release.coefficients, hessian=model._private.hessian)
        design = design_of(ASKED[0], fit_intercept=True)
        return evaluate(exact, design.labelled(ASKED[1].astype(float)))

    assert disagreement(leaky(one), leaky(other)) > 1e-3
    assert not np.allclose(one.ex_post_losses(X, Y), other.ex_post_losses(X, Y))
