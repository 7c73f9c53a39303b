"""Build the page from templates, scripts, styles and numbers."""

import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from expost.exceptions import PublicationError
from expost.losses.registry import PUBLISHED
from expost.page.introduction import Introduction, Language, PublishedFile, page_language
from expost.page.numbers import in_base64, payload
from expost.privacy.recalibration import recalibration_of

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
# Sentences of scripts that nobody reads unless a model was recalibrated so.
_OF_RECALIBRATION = {"histogram": ("row_cell", "beside_histogram"), "moments": ("beside_moments",)}
STYLES = ("base", "answer", "form", "experts", "print")


def render(publications: Sequence[PublishedFile], *, language: str | None = None) -> str:
    """Build the page of one or more publications: one self-contained file that makes no request.

    Several share the confidence, and :func:`expost.total` has the bound of their sum. ``language`` is that of
    the page's own sentences and of its numbers, by default what the publisher declared, or English; what the
    publisher declared in words is shown as it is.

    Privacy
    -------
    Input and output are public. What a person types stays on the page: it makes no request and stores
    nothing.
    """
    _check(publications)
    language = page_language(publications, language)
    spoken = Language.of(language, several=len(publications) > 1)
    recalibrated = _recalibrated(publications)
    environment = Environment(
        loader=PackageLoader("expost.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    code, style = script(), styles()
    return environment.get_template("report.html").render(
        policy=f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'",
        script=Markup(code),
        style=Markup(style),
        data=Markup(
            data_block(payload(publications) | {"language": language, "texts": _texts(spoken, recalibrated)})
        ),
        files=[in_base64(zlib.compress(one.to_json().encode("utf-8"), 9)) for one in publications],
        language=language,
        say=spoken.rich,
        breakable=breakable,
        plain=spoken.say,
        intro=Introduction.of(publications, spoken),
        insecure=any(publication.insecure for publication in publications),
        count=len(publications),
        of_people=all(publication.of_people for publication in publications),
        several=any(publication.release.plan.loss.outputs > 1 for publication in publications),
        weighted=any(publication.weighting.used for publication in publications),
        recalibrated=recalibrated,
        cornered=any(publication.release.corners is not None for publication in publications),
    )


def _recalibrated(publications: Sequence[PublishedFile]) -> list[str]:
    """By which kinds of numbers some of the models are recalibrated."""
    plans = [publication.release.plan for publication in publications]
    kinds = [recalibration_of(plan.loss) for plan in plans if plan.recalibrate]
    return sorted({kind.name for kind in kinds if kind is not None})


def _texts(spoken: Language, recalibrated: Sequence[str]) -> dict[str, dict[str, str]]:
    """The sentences of scripts; those of a recalibration where there is one."""
    texts = spoken.of_scripts
    unread = {name for kind, names in _OF_RECALIBRATION.items() if kind not in recalibrated for name in names}
    if not recalibrated:
        unread.add("noise_recalibration")
    texts["experts"] = {name: one for name, one in texts["experts"].items() if name not in unread}
    return texts


def _check(publications: Sequence[PublishedFile]) -> None:
    if not publications:
        raise PublicationError("a page needs at least one publication; got none.")
    if len({publication.sha256 for publication in publications}) < len(publications):
        raise PublicationError("a publication is given twice, and would be counted twice; name each once.")
    for publication in publications:
        loss = publication.release.plan.loss
        if type(loss) not in PUBLISHED.values():
            raise PublicationError(
                f"there is no page for {type(loss).__name__}, because a page would have to know its formula; "
                "read the publication with `bounds`."
            )


def breakable(text: str) -> Markup:
    """A text in which an e-mail address may be broken at its signs, and not inside a word.

    Examples
    --------
    >>> breakable("privacy@clinic.example")
    Markup('privacy@<wbr>clinic<wbr>.example')
    """
    spelt = re.sub(r"(?<=\w)(\.)(?=\w)", r"<wbr>\1", str(escape(text)))
    return Markup(re.sub(r"@(?=\w)", "@<wbr>", spelt))


def styles() -> str:
    """Join the styles into one; comments, indents and blanks stay in the sources, where they are read."""
    commented = "\n".join(_source(f"{name}.css") for name in STYLES)
    plain = re.sub(r"/\*.*?\*/", "", commented, flags=re.DOTALL)
    return re.sub(r"\s*([{},;])\s*|(?<=:) ", r"\1", plain).replace(";}", "}")


def script() -> str:
    """Join the modules into one script: each is a function that returns what it exports."""
    return '(() => {\n"use strict";\n' + "".join(map(_module, modules())) + "})();\n"


def modules() -> list[str]:
    """The names of all modules, each after those that it imports."""
    ordered: list[str] = []

    def add(name: str) -> None:
        for _, needed in _IMPORT.findall(_source(f"{name}.js")):
            if needed not in ordered:
                add(needed)
        ordered.append(name)

    add("app")
    return ordered


def _module(name: str) -> str:
    """A module without its imports and exports, which become names of this one scope."""
    source = _source(f"{name}.js")
    exported = re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", source, flags=re.MULTILINE)
    # As of styles.
    plain = re.sub(r"^ *//.*\n|^export (?=[a-z])|^ +|^\n", "", source, flags=re.MULTILINE)
    lines = map(_squeezed, _IMPORT.sub(r"const \1 = of_\2;", plain).splitlines())
    inner = re.sub(r"(?<=[{(\[,;])\n", "", "\n".join(lines))
    return f"const of_{name}=(()=>{{{inner}\nreturn{{{','.join(exported)}}};}})();\n"


def _squeezed(line: str) -> str:
    """A line without the blanks beside its signs; one with a template or a pattern in it stays as it is."""
    if "`" in line or re.search(r"/(?! )|(?<! )/", line):
        return line
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', line)
    pieces[::2] = (re.sub(r" ?([=,;:?(){}\[\]<>&|*]+) ?", r"\1", code) for code in pieces[::2])
    return "".join(pieces)


def data_block(content: Mapping[str, Any]) -> str:
    r"""Write JSON in which no text can end the script element or become markup.

    Examples
    --------
    >>> data_block({"name": "</script>"})
    '{"name":"\\u003c/script>"}'
    """
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _source(name: str) -> str:
    return (files("expost.page") / "static" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{in_base64(hashlib.sha256(text.encode()).digest())}'"
