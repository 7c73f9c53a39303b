"""Write every measured figure of the README and the documents: ``python -m docs.quoted``.

The figures come from the files of numbers that benchmarks and experiments leave behind, by way of marks that
a reader does not see: ``<!-- numbers: NAME -->`` and ``<!-- /numbers -->`` on lines of their own around a
table or a paragraph, ``<!-- n:NAME -->`` and ``<!-- /n -->`` around a few words. Each name is a function
of one of the modules here, from one file to the text between its marks. Words that the numbers could refute
are checked before they are written; if they are no longer true, nothing is written and somebody has to find
better words.
"""

from docs.quoted import auditing, calibration, goe, paper
from docs.quoted.marks import PAGES, PASSAGES, ROOT, SOURCES, NumbersError, fill, load, names

__all__ = [
    "PAGES",
    "PASSAGES",
    "ROOT",
    "SOURCES",
    "NumbersError",
    "auditing",
    "calibration",
    "fill",
    "goe",
    "load",
    "names",
    "paper",
]
