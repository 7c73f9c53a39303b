import numpy as np
import pytest

from expost import SmoothedL1
from expost.exceptions import ParameterError


def test_derivatives_agree_with_finite_differences():
    rng = np.random.default_rng(1)
    r = SmoothedL1(weight=1.7, scale=0.2)
    theta, step = rng.normal(size=6), 1e-5
    unit = np.eye(6)
    slope = [(r.value(theta + step * e) - r.value(theta - step * e)) / (2 * step) for e in unit]
    bend = [(r.gradient(theta + step * e) - r.gradient(theta - step * e)) / (2 * step) for e in unit]
    np.testing.assert_allclose(r.gradient(theta), slope, rtol=1e-8)
    np.testing.assert_allclose(r.hessian(theta), bend, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(r.hessian_product(theta, unit[2]), r.hessian(theta)[2])
    assert np.linalg.eigvalsh(r.hessian(theta)).min() > 0


@pytest.mark.parametrize("bad", [{"weight": 0.0}, {"weight": 1.0, "scale": -1.0}])
def test_parameters_must_be_positive(bad):
    with pytest.raises(ParameterError, match="must be a finite number with"):
        SmoothedL1(**bad)
