"""Write formulas as MathML, which every browser draws by itself: no script, and nothing to download.

A formula that cannot be converted is a warning, so that the build fails.
"""

import html
import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

# An accent and its letter, which need braces where an index follows.
_ACCENT = re.compile(r"\\(?:hat|tilde|bar)\s*(?:\\[A-Za-z]+|[A-Za-z])")

# The name of a function and the letter after it, between which browsers leave no space by themselves.
_FUNCTION = re.compile(r"(\\(?:log|det|operatorname\{[a-z]+\}))\s*(?=[A-Za-z]|\\(?!left)[A-Za-z])")
# A norm is as high as what is written in a line; only the fences of \left and \right grow.
_NORM = re.compile(r"<mo[^>]*>(‖|∥)</mo>")

logger = logging.getLogger(__name__)


def _converted(node: nodes.Element, *, as_block: bool) -> str:
    """The formula of a node as MathML, or its source where that fails."""
    source = _ACCENT.sub(lambda found: f"{{{found[0]}}}", node.astext().strip())
    source = _FUNCTION.sub(r"\1\\,", source)
    if as_block and "&" in source and r"\begin" not in source:
        source = rf"\begin{{aligned}}{source}\end{{aligned}}"
    try:
        mathml = tex2mathml(source, as_block=as_block)
    except (MathError, ValueError, KeyError, IndexError, AttributeError, SyntaxError) as error:
        logger.warning("formula %r: %s", source, error, location=node)
        return f"<code>{html.escape(source)}</code>"
    return _NORM.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', mathml)


def inline(translator: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula in a line of text."""
    translator.body.append(f'<span class="math">{_converted(node, as_block=False)}</span>')
    raise nodes.SkipNode


def display(translator: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula on lines of its own."""
    number = f"({get_node_equation_number(translator, node)})" if node.get("number") else ""
    mathml = _converted(node, as_block=True)
    translator.body.append(f'<div class="math" tabindex="0">{mathml}<span class="eqno">{number}</span></div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
