"""Libraries of arrays beside NumPy that the tests run over."""

import importlib.util

import numpy as np
import pytest

from expost._common.namespaces import on_host


def _torch(values):
    import torch

    return torch.from_numpy(np.ascontiguousarray(values))


def _strict(values):
    import array_api_strict

    return array_api_strict.asarray(values)


SPACES = [
    pytest.param(_strict, id="array-api-strict"),
    pytest.param(
        _torch,
        id="torch",
        marks=pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    ),
]


def host(values):
    """An array of another library as NumPy's, after a check that it is one."""
    assert not isinstance(values, np.ndarray)
    return on_host(values)
