"""Arrays of other libraries than NumPy, which stay on the device where they lie."""

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost._common.validation import missing_extra_error, parameter_error
from expost.exceptions import DomainError


def is_foreign(values: Any) -> bool:
    """Whether values are an array of the array API standard, or of torch or CuPy, and not NumPy's."""
    if isinstance(values, np.ndarray | np.generic):
        return False
    library = type(values).__module__.partition(".")[0]
    if library in _ARRAYS:
        return isinstance(values, getattr(sys.modules[library], _ARRAYS[library]))
    return hasattr(values, "__array_namespace__")


# The classes of arrays of libraries that have the standard's names elsewhere.
_ARRAYS = {"torch": "Tensor", "cupy": "ndarray"}


def namespace_of(values: Any) -> Any:
    """The functions for an array: NumPy's, or those of its own library under the standard's names."""
    kind = type(values)
    if kind not in _NAMESPACES:  # kernels ask often, and to look it up takes as long as to start one
        _NAMESPACES[kind] = _compat().array_namespace(values) if is_foreign(values) else np
    return _NAMESPACES[kind]


_NAMESPACES: dict[type, Any] = {np.ndarray: np}


def on_host(values: Any) -> NDArray[Any]:
    """An array of any library as NumPy's, which may be written to; copied where it lies on another device."""
    if not is_foreign(values):
        return np.asarray(values)
    if hasattr(values, "detach"):  # torch
        return np.asarray(values.detach().cpu().numpy())
    if hasattr(values, "get"):  # CuPy
        return np.asarray(values.get())
    return np.array(np.from_dlpack(values, device="cpu"))  # older versions of NumPy give it to read only


@cache
def _compat() -> Any:
    """The standard's names for libraries that have others; scikit-learn brings a copy since 1.7."""
    for name in ("array_api_compat", "sklearn.externals.array_api_compat"):
        with suppress(ImportError):
            return import_module(name)
    raise missing_extra_error("an array of another library than NumPy", "array-api-compat", "gpu")


def placed_like(constants: FloatArray, values: Any) -> FloatArray:
    """Constants of NumPy's, put where an array lies."""
    return cast(FloatArray, Space.of(values).put(constants))


@dataclass(frozen=True, eq=False)
class Space:
    """A library of arrays and a device of it, where kernels keep their numbers."""

    xp: Any
    """The library's functions, under the names of the array API standard."""
    device: Any

    @classmethod
    def of(cls, values: Any) -> "Space":
        """Where an array lies, the same object for all that lie there; DomainError if it has no doubles."""
        if not is_foreign(values):
            return HERE
        xp, device = namespace_of(values), _compat().device(values)
        place = xp.__name__, str(device)
        if place not in _SPACES:
            space, doubles = cls(xp, device), False
            with suppress(TypeError, ValueError, RuntimeError, AttributeError):
                doubles = space.put(np.zeros(1)).dtype == xp.float64
            if not doubles:
                raise DomainError(
                    "`X` must lie on a device with double precision, and its library must have it turned on. "
                    "Move it to another device, or give it as a NumPy array."
                )
            _SPACES[place] = space
        return _SPACES[place]

    @classmethod
    def named(cls, device: Any) -> "Space":
        """A device by its name in PyTorch, such as ``"cuda"``, or by an array that lies there."""
        if is_foreign(device):
            return cls.of(device)
        try:
            torch = import_module("torch")
        except ImportError:
            raise missing_extra_error("a device by its name", "PyTorch", "gpu") from None
        found = None
        with suppress(Exception):  # PyTorch's errors have several sentences
            found = torch.zeros(1, dtype=torch.float64, device=device)
        if found is None:
            raise parameter_error(
                "device", "a device that PyTorch finds, with double precision", device, "Try 'cuda' or 'cpu'."
            )
        return cls.of(found)

    def put(self, values: Any) -> Any:
        """Numbers of any library as doubles here, copied where they lie elsewhere."""
        if is_foreign(values) and namespace_of(values) is self.xp:
            moved = _compat().to_device(values, self.device)
            return self.xp.astype(moved, self.xp.float64, copy=False)
        host: FloatArray = np.asarray(on_host(values), dtype=np.float64)
        if self.xp is np:
            return host
        if not host.flags.writeable:  # torch would share its memory
            host = host.copy()
        return self.xp.asarray(host, dtype=self.xp.float64, device=self.device)

    def copy_of(self, values: NDArray[Any]) -> Any:
        """A copy of NumPy's numbers here, in their own type."""
        return self.xp.asarray(np.ascontiguousarray(values), device=self.device, copy=True)

    def zeros(self, *shape: int) -> Any:
        """Doubles, all zero."""
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)


HERE = Space(np, "cpu")
"""NumPy, in this machine's memory."""
_SPACES: dict[tuple[str, str], Space] = {}
