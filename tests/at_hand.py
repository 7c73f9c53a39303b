"""Skip tests that need data sets which are not here."""

import pytest

from papers.datasets import available


def need(*names):
    """Skip the test, with a reason, if the files of a data set are missing; tests download nothing."""
    absent = [name for name in names if not available(name)]
    if absent:
        pytest.skip(
            f"the {' and '.join(absent)} data are not here: set EXPOST_DATA to the folder that holds them"
        )
