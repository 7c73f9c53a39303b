"""The types of the library's arrays."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
"""Any array of doubles; the docstring of each function states its shape."""

BoolArray: TypeAlias = NDArray[np.bool_]
