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
# The converter takes all digits after a fraction for its numerator.
_BARE = re.compile(r"\\[dt]?frac\s*[0-9]")
# Primes, which fonts draw raised and small already: they are no superscripts. Quotation marks in words stay.
_PRIMES = re.compile(r"\\text\{[^}]*\}|('+)|\^(\\prime)(?![A-Za-z])|\^\{((?:\\prime)+)\s*(\w?)\}")
_SEVERAL = re.compile(r"(?:<mi>′</mi>\s*){2,3}")
# The name of a function and what stands next to it, between which browsers leave no space by themselves.
_FUNCTION = re.compile(
    r"(\\(?:log|det|dim|(?:mathrm|operatorname)\{[A-Za-z]{2,}\}))\s*(?=[A-Za-z0-9]|\\(?!left|right|thinspace)[A-Za-z])"
)
_FACTOR = re.compile(r"(?<=[0-9)])\s*(?=\\(?:log|det|exp|max|min)(?![A-Za-z]))")
# A norm is as high as what is written in a line; only the fences of \left and \right grow. No space is
# around it, nor around a slash.
_TIGHT = re.compile(r'<mo(?: class="mathopen")?(?: stretchy="false")?>([‖∥/.]|(?<=stretchy="false">)\|)</mo>')
_FENCE = re.compile(r'<mo(?: class="mathopen")?>([|{}])</mo>')
# A sign after a relation, a comma or an opening bar belongs to what follows, and one alone to nothing.
_SIGN = re.compile(r'((?:[=≤≥≈∼↦→∈⪯⪰≻,;∶]|&[lg]t;|"mathopen">[|‖])</mo>\s*)<mo>([−+±∓])</mo>')
_ALONE = re.compile(r"(<math[^>]*>\s*|[(,]</mo>\s*)<mo[^>]*>([−+⋅])</mo>(?=\s*(?:</math>|<mo[^>]*>\)))")
# A definition is one sign.
_DEFINED = re.compile(r"<mo>∶</mo>\s*<mo>=</mo>")
# An index stands next to its letter, not below it, also where the letter has an accent.
_INDEXED = re.compile(r"<munderover>\s*(<mi>[^<]</mi>)(.*?)(<mo[^>]*>[ˆ~ˉ]</mo>)\s*</munderover>", re.DOTALL)
# A bar lies above its letter: as an accent it would touch a capital.
_BAR = re.compile(r'<mover accent="true">(\s*<mi[^>]*>.</mi>\s*<mo stretchy="false">)ˉ')
# The largest of a set is a function of it.
_LARGEST = re.compile(r"<mo>(max|min)</mo>")
# Capital Greek letters and gradients stand upright.
_UPRIGHT = re.compile(r'<mi(?: class="capital-greek")?>([∇Γ-Ω])</mi>')

logger = logging.getLogger(__name__)


def _prime(found: re.Match[str]) -> str:
    """Primes in a row with their letter, and the power after them."""
    marks, name, names, power = found.groups()
    primes = len(marks) * r"\prime" if marks else name or names
    return f"{primes} ^{power}" if power else f"{primes} " if primes else found[0]


def _converted(node: nodes.Element, *, as_block: bool) -> str:
    """The formula of a node as MathML, or its source where that fails."""
    if _BARE.search(node.astext()):
        logger.warning("formula %r: write a fraction with braces", node.astext(), location=node)
    source = _ACCENT.sub(lambda found: f"{{{found[0]}}}", node.astext().strip())
    source = _PRIMES.sub(_prime, _FUNCTION.sub(r"\1\\,", _FACTOR.sub(r"\\,", source)))
    if as_block and "&" in source and r"\begin" not in source:
        source = rf"\begin{{aligned}}{source}\end{{aligned}}"
    try:
        mathml = tex2mathml(source, as_block=as_block)
    except (MathError, ValueError, KeyError, IndexError, AttributeError, SyntaxError) as error:
        logger.warning("formula %r: %s", source, error, location=node)
        return f"<code>{html.escape(source)}</code>"
    mathml = _INDEXED.sub(r'<msub><mover accent="true">\1\3</mover>\2</msub>', mathml)
    mathml = _BAR.sub(r"<mover>\1‾", _DEFINED.sub("<mo>≔</mo>", mathml))
    mathml = _ALONE.sub(r'\1<mo lspace="0" rspace="0">\2</mo>', mathml)
    mathml = _SIGN.sub(r'\1<mo form="prefix">\2</mo>', mathml)
    mathml = _SEVERAL.sub(lambda found: f"<mi>{'″‴'[found[0].count('′') - 2]}</mi>", mathml)
    for pattern in (_TIGHT,) if r"\left" in source else (_TIGHT, _FENCE):
        mathml = pattern.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', mathml)
    mathml = _LARGEST.sub(r"<mi>\1</mi>", mathml)
    return _UPRIGHT.sub(r'<mi mathvariant="normal">\1</mi>', mathml)


def _keep_together(_app: Sphinx, document: nodes.document, _name: str) -> None:
    """Give each formula the comma or bracket after it: browsers break a line between the two."""
    for node in list(document.findall(nodes.math)):
        after = node.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and (signs := re.match(r"[^\w\s]+", after)):
            node["after"] = signs[0]
            # By its place: other texts of the paragraph may say the same.
            place = next(place for place, one in enumerate(after.parent) if one is after)
            after.parent[place] = nodes.Text(after[signs.end() :])


def inline(translator: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula in a line of text, together with the signs after it."""
    after = html.escape(node.get("after", ""))
    translator.body.append(f'<span class="math">{_converted(node, as_block=False)}{after}</span>')
    raise nodes.SkipNode


def display(translator: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula on lines of its own."""
    number = f"({get_node_equation_number(translator, node)})" if node.get("number") else ""
    mathml = _converted(node, as_block=True)
    translator.body.append(f'<div class="math" tabindex="0">{mathml}<span class="eqno">{number}</span></div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer to Sphinx."""
    app.connect("doctree-resolved", _keep_together)
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
