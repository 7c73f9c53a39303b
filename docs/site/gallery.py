"""Run the scripts of the gallery and show the picture that each ends in, with the script below it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

# Inside the folder that git and Sphinx ignore.
_PICTURES = Path("build") / "gallery"


class Gallery(SphinxDirective):
    """```` ```{gallery} name ````: the picture that ``examples/gallery/name.py`` draws, and its code."""

    required_arguments = 1
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Draw the picture; a script that fails fails the build."""
        name = self.arguments[0]
        root = Path(self.env.srcdir)
        script = root / "examples" / "gallery" / f"{name}.py"
        picture = _PICTURES / f"{name}.png"
        code = script.read_text(encoding="utf-8")
        listing = nodes.literal_block(code, code, language="python")
        if not self.config.gallery_drawn:
            return [listing]
        (root / _PICTURES).mkdir(parents=True, exist_ok=True)
        paths = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])
        ran = subprocess.run(
            [sys.executable, str(script), str(root / picture)],
            env=os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            raise self.error(f"{script.name} failed: {ran.stderr}")
        self.env.note_dependency(str(script))
        return [nodes.image(uri=f"/{picture.as_posix()}", alt=self.options["alt"]), listing]


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the directive to Sphinx, and a setting that leaves the pictures out."""
    app.add_config_value("gallery_drawn", True, "env", bool)
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
