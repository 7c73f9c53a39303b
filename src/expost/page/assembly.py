"""Build the page from templates, scripts, styles and numbers."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from expost.exceptions import PublicationError
from expost.losses import SoftmaxLoss
from expost.losses.registry import PUBLISHED
from expost.page.base import Published
from expost.page.numbers import payload

# In the order of their imports.
MODULES = (
    "losses",
    "softmax",
    "encoding",
    "records",
    "csv",
    "bounds",
    "odds",
    "chart",
    "form",
    "results",
    "details",
    "app",
)


def render(publications: Sequence[Published]) -> str:
    """Build the page of one or more publications: one self-contained file that makes no request.

    Parameters
    ----------
    publications
        The publications, each a :class:`expost.Publication`. The confidence is shared among them,
        and :func:`expost.total` has the bound of their sum.

    Raises
    ------
    PublicationError
        If there is none, if one is there twice, or if two declare a feature of one name differently.

    Privacy
    -------
    Input and output are public. What a person types stays on the page: it makes no request and stores
    nothing.

    Examples
    --------
    >>> import numpy as np, expost
    >>> X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 500), np.array([1, 0] * 500)
    >>> publication = expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(X, y).publication_
    >>> render([publication]).startswith("<!doctype html>")
    True
    """
    if not publications:
        raise PublicationError("a page needs at least one publication; got none.")
    if len({publication.sha256 for publication in publications}) < len(publications):
        raise PublicationError("a publication is given twice, and would be counted twice; name each once.")
    for loss in (publication.release.plan.loss for publication in publications):
        if type(loss) not in PUBLISHED.values():
            raise PublicationError(
                f"there is no page for {type(loss).__name__}, because a page would have to know its formula; "
                "read the publication with `bounds`."
            )
    environment = Environment(
        loader=PackageLoader("expost.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    code, style = script(), _source("style.css")
    return environment.get_template("report.html").render(
        policy=f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'",
        script=Markup(code),
        style=Markup(style),
        data=Markup(data_block(payload(publications))),
        insecure=next((publication.insecure for publication in publications if publication.insecure), None),
        count=len(publications),
        several=any(isinstance(publication.release.plan.loss, SoftmaxLoss) for publication in publications),
        weighted=any(publication.weighting.used for publication in publications),
    )


def script() -> str:
    """Join the modules into one script, without their imports, because they share one scope."""
    parts = [_source(f"{name}.js") for name in MODULES]
    joined = "\n".join(re.sub(r"^export ", "", _without_imports(part), flags=re.MULTILINE) for part in parts)
    return f'(() => {{\n"use strict";\n{joined}}})();\n'


def data_block(content: Mapping[str, Any]) -> str:
    r"""Write JSON in which no text can end the script element or become markup.

    Examples
    --------
    >>> data_block({"name": "</script>"})
    '{"name":"\\u003c/script>"}'
    """
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _without_imports(source: str) -> str:
    return re.sub(r"^import [^;]*;\n", "", source, flags=re.MULTILINE)


def _source(name: str) -> str:
    return (files("expost.page") / "static" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
