"""Import the fitting level on a machine that has little installed beside NumPy and SciPy.

``import bench.bare`` comes before any import of expost: what tables, files and pages need is then left out
where it is not installed, and the package is found in ``src``.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

# What tables, files and pages need, and a fit of a matrix does not.
_UNUSED = ("jinja2", "narwhals", "opendp", "pyarrow", "pydantic", "rich", "sklearn", "threadpoolctl", "typer")


class _Metaclass(type):
    def __new__(cls, name, bases, body, **_):
        return super().__new__(cls, name, bases, body)

    def __init__(cls, name, bases, body, **_):
        super().__init__(name, bases, body)


class _Base(metaclass=_Metaclass):
    def __init_subclass__(cls, **_):
        pass

    def __init__(self, **_):
        pass


class _Nothing:
    """Stands for anything that is imported and never used: a decorator, a base class, a type."""

    def __call__(self, *given, **named):
        return given[0] if len(given) == 1 and callable(given[0]) and not named else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Base if name == "BaseModel" else self

    def __mro_entries__(self, _):
        return (_Base,)

    def __getitem__(self, _):
        return self

    def __or__(self, _):
        return self

    __ror__ = __or__


class _Unused(MetaPathFinder, Loader):
    """Finds the packages above, empty, where nothing else finds them."""

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in _UNUSED else None

    def create_module(self, spec):
        module = ModuleType(spec.name)
        module.__getattr__ = _Nothing().__getattr__
        return module

    def exec_module(self, module):
        pass


sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.meta_path.append(_Unused())
