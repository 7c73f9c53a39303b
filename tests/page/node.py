"""Node, which runs the page's own modules: Playwright brings one along, so that a bare machine has it too."""

import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

JS = Path(__file__).parent / "js"


def find_node():
    """Playwright's own node where it is installed, else the one on the path, else None."""
    # Playwright has no public name for it, so any trouble there counts as its absence.
    with suppress(Exception):
        from playwright._impl._driver import compute_driver_executable

        return shutil.which(compute_driver_executable()[0]) or shutil.which("node")
    return shutil.which("node")


NODE = find_node()
MISSING = "NODE IS MISSING (pip install playwright): the page's scripts are NOT tested on this machine"


def answer(script, question, *, timeout=300):
    """What a script in ``js`` answers on its standard output, both as JSON."""
    done = subprocess.run(
        [NODE, str(JS / script)],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
