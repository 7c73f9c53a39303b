"""Libraries of arrays beside NumPy that the tests run over."""

import importlib.util
import os

import numpy as np
import pytest

from expost._common.namespaces import on_host


def _torch(values):
    import torch

    return torch.from_numpy(np.ascontiguousarray(values))


def _strict(values):
    import array_api_strict

    return array_api_strict.asarray(values)


def _cuda(values):
    return _torch(values).to("cuda")


def _cupy(values):
    import cupy

    return cupy.asarray(values)


SPACES = [
    pytest.param(_strict, id="array-api-strict"),
    pytest.param(
        _torch,
        id="torch",
        marks=[
            pytest.mark.arrays,
            pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
        ],
    ),
]
if os.environ.get("EXPOST_GPU"):  # set by `make check-gpu`
    SPACES = [pytest.param(_cuda, id="torch on a GPU")]
    if importlib.util.find_spec("cupy") is not None:
        SPACES.append(pytest.param(_cupy, id="CuPy"))


def host(values):
    """An array of another library as NumPy's, after a check that it is one."""
    assert not isinstance(values, np.ndarray)
    return on_host(values)
