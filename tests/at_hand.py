"""The data of the experiments are not part of the project; a test that lacks them is skipped and says why."""

import pytest

from papers.datasets import available


def need(*names):
    """Skip the test where the files of a data set are not at hand; nothing is downloaded for a test."""
    absent = [name for name in names if not available(name)]
    if absent:
        pytest.skip(
            f"the {' and '.join(absent)} data are not here: set EXPOST_DATA to the folder that holds them"
        )
