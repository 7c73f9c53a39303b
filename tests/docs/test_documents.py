"""The documents as they lie in the repository: links, anchors, formulas, citations and the reference."""

import ast
import inspect
import pydoc
import re

import pytest
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from markdown_it import MarkdownIt
from reference_pages import MODULES, ROOT, documented

import expost

DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "papers/*/*.md")
    for path in ROOT.glob(pattern)
)
CITED = re.compile(r"\[([A-Za-z]+[0-9]{2})\]_")
CITED_THEOREMS = re.compile(
    r"(theorem|lemma|proposition)s?\s+(\d+\.\d+(?: and \d+\.\d+)*)"
)  # papers' are capital
DEFINED = re.compile(r"\.\. \[([A-Za-z]+[0-9]{2})\] ")


def named(paths):
    return [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in paths]


def outside_fences(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    found = {}
    for heading in re.findall(r"^#+ (.+)$", outside_fences(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {
        f"{slug}-{number}" if number else slug for slug, last in found.items() for number in range(last + 1)
    }


def dead_links(text, place):
    """The links of a document in this place that lead nowhere in the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", outside_fences(text))):
        if not re.match(r"[a-z]+:", target):
            name, _, anchor = target.partition("#")
            found = place.parent / name
            there = found.read_text(encoding="utf-8") if anchor and found.is_file() else text
            if not found.exists() or (anchor and anchor not in anchors(there)):
                yield target


@pytest.mark.parametrize("document", named(DOCUMENTS))
def test_no_link_or_anchor_is_dead(document):
    assert list(dead_links(document.read_text(encoding="utf-8"), document)) == []


def test_dead_links_are_seen():
    headings = "# A `b`: c, d?\n\n## Twice\n\n## Twice\n\n```sh\n# none\n```\n"
    assert anchors(headings) == {"a-b-c-d", "twice", "twice-1"}
    dead = ["#twice-2", "#none", "nowhere.md", "mathematics.md#nowhere"]
    alive = ["#twice-1", "../README.md", "mathematics.md#2-the-exact-loss", "https://example.org/"]
    text = headings + "".join(f"[x]({target})\n" for target in dead + alive) + "`[x](code.md)`\n"
    assert list(dead_links(text, ROOT / "docs" / "index.md")) == dead


@pytest.mark.parametrize("document", named(DOCUMENTS))
def test_every_formula_converts(document):
    for formula in re.findall(
        r"^```math\n(.*?)^```$", document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        assert drawn(formula.strip())


def unsafe_formulas(text):
    """The formulas in lines of text that the site cannot draw or that GitHub shows otherwise or not at all.

    GitHub reads the Markdown first, so a backslash before a sign, a bar in a table or a pair of underscores
    may be gone. Then it wants a formula to follow a space, and no letter or digit to follow the formula.
    """
    plain = re.sub(r"`[^`]*`", "code", outside_fences(text))
    read = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(plain)
    left = "\n".join(part.content for token in read for part in token.children or () if part.type == "text")
    pieces = plain.split("$")
    if len(pieces) % 2 == 0:
        yield "an odd number of dollar signs"
    for before, formula, after in zip(pieces[:-1:2], pieces[1::2], pieces[2::2], strict=False):
        bounded = re.search(r"(^|\s)$", before) and not re.match("[A-Za-z0-9]", after)
        whole = re.fullmatch(r"\S(.*\S)?", formula) and f"${formula}$" in left
        if not bounded or not whole or not drawn(formula):
            yield formula


def drawn(formula):
    """Whether the site draws a formula and GitHub allows its commands."""
    try:
        return "operatorname" not in formula and bool(tex2mathml(formula))
    except (MathError, ValueError, KeyError, IndexError, AttributeError, SyntaxError):
        return False


@pytest.mark.parametrize("document", named(DOCUMENTS))
def test_every_formula_in_a_line_is_safe(document):
    assert list(unsafe_formulas(document.read_text(encoding="utf-8"))) == []


def test_unsafe_formulas_are_seen():
    safe = (
        r"*If $\lVert x \rVert_2$, $a_{i}$-th and* `$HOME` $b_1$ `c`."
        + "\n\n| a |\n|---|\n| $\\lvert b \\rvert$ |\n"
    )
    assert list(unsafe_formulas(safe)) == []
    unsafe = [
        r"\{x\}",
        "a_{i}^{*} b*",
        "|x|",
        " a",
        "\nb",
        r"\unknown",
        r"\operatorname{a} b",
        "[a](b)",
        "x <b> y",
        "",
    ]
    for formula in unsafe:
        assert list(unsafe_formulas(f"| a |\n|---|\n| ${formula}$ |\n")) == [formula]
    assert list(unsafe_formulas("A $}_a$ and $a_{b}$.")) != []
    for text in ("($a$)", "x$a$", "$a$s"):
        assert list(unsafe_formulas(text)) == ["a"]
    assert list(unsafe_formulas("$5")) == ["an odd number of dollar signs"]


def test_theorems_are_numbered_and_cited_where_they_are_used():
    """By section and place; the code cites theorems that exist, and all of them."""
    text = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    stated, sections = {}, re.split(r"^## (\d+)\. ", text, flags=re.MULTILINE)[1:]
    for section, body in zip(sections[::2], sections[1::2], strict=True):
        found = re.findall(r"\*\*(Theorem|Lemma|Proposition)\b ?([\d.]*\d)?", body)
        assert [number for _, number in found] == [f"{section}.{place + 1}" for place in range(len(found))]
        stated |= {number: kind.lower() for kind, number in found}
    cited = {}
    for path in (ROOT / "src" / "expost").rglob("*.*"):
        if path.suffix in (".py", ".c", ".h", ".js"):
            for kind, numbers in CITED_THEOREMS.findall(path.read_text(encoding="utf-8")):
                cited |= dict.fromkeys(numbers.split(" and "), kind)
    assert cited == stated


def test_the_mathematics_has_no_formula_in_plain_signs():
    text = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    assert not re.findall(r"\n\n    \S.*", outside_fences(text))


def public_names(module):
    """What a module defines, and what it imports under the same name on purpose (``X as X``)."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.asname == alias.name)


def test_every_public_name_is_in_the_reference_once():
    names = documented()
    expected = {f"expost.{name}" for name in dir(expost) if name not in (*MODULES, "__version__")}
    for module in MODULES:
        for name in public_names(getattr(expost, module)):
            if not name.startswith("_") and name != "printable":
                expected.add(f"expost.{module}.{name}")
    assert len(expected) > 80
    assert expected <= set(names), f"missing in docs/reference: {sorted(expected - set(names))}"
    assert len(names) == len(set(names))


# What a record, a loss or a domain is made of has no result that could be private.
_PARTS = ("expost.losses", "expost.data", "expost.goe", "expost.exceptions")


@pytest.mark.parametrize("name", documented())
def test_what_is_public_and_what_is_private_is_said_of_every_name(name):
    thing = pydoc.locate(name)
    said = re.search(r"^Privacy\n-------\n\S|\*\*Privacy\.\*\* \S", inspect.getdoc(thing) or "", re.MULTILINE)
    assert said or (inspect.isclass(thing) and thing.__module__.startswith(_PARTS))


def test_every_page_is_reached_from_the_first():
    listed = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    reached, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for block in listed.findall(page.read_text(encoding="utf-8")):
            for line in block.splitlines():
                if line.strip() and not line.startswith(":"):
                    entry = re.sub(r"^.*<(.*)>$", r"\1", line.strip())
                    waiting.append((page.parent / f"{entry}.md").resolve())
    assert reached == set(DOCUMENTS)


@pytest.mark.parametrize("module", named(sorted((ROOT / "src").rglob("*.py"))))
def test_citations_are_defined_where_they_are_made(module):
    text = module.read_text(encoding="utf-8")
    assert set(CITED.findall(text)) == set(DEFINED.findall(text))


def test_the_gallery_shows_every_script():
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\{gallery\} (\w+)$", text, re.MULTILINE)
    scripts = sorted((ROOT / "examples" / "gallery").glob("*.py"))
    assert sorted(shown) == [script.stem for script in scripts]
    assert len(scripts) == 13
    for script in scripts:
        compile(script.read_text(encoding="utf-8"), script.name, "exec")
