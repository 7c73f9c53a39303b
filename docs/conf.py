"""The documentation site: Sphinx over the Markdown of the repository, without any network.

`make docs` builds it with warnings as errors, from the root of the repository, so that every link between
documents is the same on the site and on GitHub. Extensions of our own are in `docs/site`.
"""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "site")]

_about = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "expost"
author = "The expost developers"
project_copyright = author
version = release = _about["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "docstrings",
    "gallery",
    "mathml",
]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
include_patterns = ["*.md", "docs/**.md", "examples/README.md", "papers/**.md"]
exclude_patterns = [".*", "build", "demo", "dist", "src", "tests", "bench", "papers/*/quick"]

# Markdown as GitHub reads it: headings have its anchors, and ```math is a formula.
myst_enable_extensions = ["amsmath", "dollarmath", "html_image"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# Docstrings.
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_param = False  # several names may share one description
napoleon_use_rtype = False
napoleon_custom_sections = ["Privacy", ("Attributes", "params_style")]

html_theme = "furo"
html_title = "expost"
html_static_path = ["site/static"]
html_extra_path = ["site/root"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
