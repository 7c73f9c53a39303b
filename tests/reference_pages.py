"""The pages of the reference in docs, and the names that they hand to Sphinx."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
# Public modules, which have an anchor of their own and names of their own.
MODULES = ("audit", "budgets", "exceptions", "gaussian", "goe", "research")
_DIRECTIVE = re.compile(r"^\.\. auto(?:class|function|exception):: (\S+)$", re.MULTILINE)


def names_on(page):
    """The names that one page documents."""
    return _DIRECTIVE.findall(page.read_text(encoding="utf-8"))


def documented():
    """The names that all pages document, in their order."""
    return [name for page in PAGES for name in names_on(page)]
