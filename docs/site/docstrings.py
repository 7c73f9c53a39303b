"""Prepare docstrings for the reference: privacy in a section of its own, one bibliography for all.

A docstring names its references itself, for those who read it in a terminal. On the site they are entries of
one page, so the lists in the docstrings are left out there.
"""

import re
from typing import Any

from sphinx.application import Sphinx

_UNDERLINE = re.compile(r"^-{3,}$")
_CITATION = re.compile(r"^\.\. \[[A-Za-z]")
_IN_NOTES = "**Privacy.** "
# A document that a docstring names, as a link to its page.
_DOCUMENT = re.compile(r"`{0,2}docs/([a-z]+)\.md`{0,2}")


def _without_citations(lines: list[str]) -> list[str]:
    """Leave out named references and the heading that they leave empty."""
    kept: list[str] = []
    inside = False
    for line in lines:
        if _CITATION.match(line):
            inside = True
        elif inside and line.startswith(" "):
            continue
        else:
            inside = False
            kept.append(line)
    for place in range(len(kept) - 1):
        if kept[place] == "References" and _UNDERLINE.match(kept[place + 1]):
            rest = [line for line in kept[place + 2 :] if line.strip()]
            if not rest or (len(rest) > 1 and _UNDERLINE.match(rest[1])):
                return kept[:place] + kept[place + 2 :]
    return kept


def _with_privacy_apart(lines: list[str]) -> list[str]:
    """Give an estimator's privacy notes the heading that they have elsewhere."""
    for place, line in enumerate(lines):
        if line.startswith(_IN_NOTES) and place >= 2 and lines[place - 2] == "Notes":
            end = next((at for at in range(place, len(lines)) if not lines[at].strip()), len(lines))
            privacy = ["Privacy", "-------", line.removeprefix(_IN_NOTES), *lines[place + 1 : end], ""]
            rest = lines[end + 1 :]
            following = [text for text in rest if text.strip()][:2]
            more = len(following) > 0 and not (len(following) > 1 and _UNDERLINE.match(following[1]))
            return lines[: place - 2] + privacy + (["Notes", "-----"] if more else []) + rest
    return lines


def prepare(_app: Sphinx, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place, before napoleon reads it."""
    prepared = _with_privacy_apart(_without_citations(lines))
    lines[:] = [_DOCUMENT.sub(r":doc:`/docs/\1`", line) for line in prepared]


def skip(_app: Sphinx, _what: str, name: str, member: Any, _skip: bool, _options: Any) -> bool | None:
    """Leave out what scikit-learn and pydantic give every class of theirs."""
    module = getattr(member, "__module__", None) or ""
    inherited = (
        module.startswith(("sklearn.", "pydantic.")) or name.endswith("_request") or name == "model_config"
    )
    return True if inherited else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before napoleon, which has the priority 500."""
    app.connect("autodoc-process-docstring", prepare, priority=100)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
