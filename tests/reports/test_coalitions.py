"""Asking a publication about any number of records reveals nothing beyond the file.

The reason is not a bound: a figure is a function of the file's bytes and of the record alone. The tests show
that a process which has only the file gives the same figures, that asking changes nothing, and that anyone
can compute the answers of a coalition, however many, without asking.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

import expost

rng = np.random.default_rng(1)
X = rng.normal(size=(500, 3)) / 4
Y = (X[:, 0] + 0.1 * rng.normal(size=500) > 0).astype(int)
ASKED = rng.uniform(-1, 1, size=(2_000, 3)), rng.integers(0, 2, 2_000)


@pytest.mark.parametrize("report", ["independent", "leverage", "dependent", "adaptive"])
def test_another_process_with_the_file_computes_all_the_answers(report, tmp_path):
    """Another process, with no table and no estimator, computes a coalition's two thousand answers."""
    publication = expost.LogisticRegression(classes=[0, 1], report=report).fit(X, Y).publication_
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
    publication = expost.LogisticRegression(classes=[0, 1], report="adaptive").fit(X, Y).publication_
    before = publication.to_json()
    together = publication.bounds(*ASKED)
    for chosen in ([5], [1999, 3, 5], list(range(1000, 1200))):
        few = publication.bounds(ASKED[0][chosen], ASKED[1][chosen])
        np.testing.assert_allclose(few.upper, together.upper[chosen], rtol=1e-12)
        np.testing.assert_allclose(few.total, together.total[chosen], rtol=1e-12)
    assert publication.to_json() == before


def test_two_tables_with_the_same_file_give_the_same_answers():
    """Whatever the table was, the answers depend on it only through what is published."""
    release = expost.LogisticRegression(classes=[0, 1], report="leverage").fit(X, Y).publication_
    twin = expost.Publication.from_json(release.to_json())
    np.testing.assert_array_equal(release.bounds(*ASKED).upper, twin.bounds(*ASKED).upper)
