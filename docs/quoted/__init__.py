"""Write every measured figure of the README and the documents: ``python -m docs.quoted``.

The figures come from the files of numbers that benchmarks and experiments write. They go between marks that a
reader does not see: ``<!-- numbers: NAME -->`` and ``<!-- /numbers -->`` on separate lines around a table or
a paragraph, ``<!-- n:NAME -->`` and ``<!-- /n -->`` around a few words. For each name, a function in one of
the modules here turns one file of numbers into the text between the marks. It first checks every statement
that the numbers could contradict. If one is no longer true, nothing is written, and the text has to be
changed.
"""

from docs.quoted import (
    auditing,
    calibration,
    cores,
    counted,
    goe,
    inference,
    multiclass,
    outcomes,
    paper,
    peers,
    people,
    ranges,
    rows,
    scale,
)
from docs.quoted.marks import PAGES, PASSAGES, ROOT, SOURCES, NumbersError, fill, load, names

__all__ = [
    "PAGES",
    "PASSAGES",
    "ROOT",
    "SOURCES",
    "NumbersError",
    "auditing",
    "calibration",
    "cores",
    "counted",
    "fill",
    "goe",
    "inference",
    "load",
    "multiclass",
    "names",
    "outcomes",
    "paper",
    "peers",
    "people",
    "ranges",
    "rows",
    "scale",
]
