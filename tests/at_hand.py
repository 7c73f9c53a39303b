"""The experiments' data are not part of the project: where they are absent, a test is skipped aloud."""

import pytest

from papers.datasets import available


def need(*names):
    """Skip the test where the files of a data set are not at hand; nothing is downloaded for a test."""
    absent = [name for name in names if not available(name)]
    if absent:
        pytest.skip(
            f"the {' and '.join(absent)} data are not here: set EXPOST_DATA to the folder that holds them"
        )
