"""Transcripts in the documents: commands with what they print, which can be run again.

``python tests/journeys/transcripts.py`` runs them and writes what they print into the documents.
"""

import doctest
import re
import shlex
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

import messy
from typer.testing import CliRunner

from expost.cli import app

ROOT = Path(__file__).parent.parent.parent
# Each document, the heading of its transcript, and what makes the files that it starts with.
TRANSCRIPTS = {
    "README.md": ("## From your CSV to a page", messy.write_tidy),
    "docs/journey.md": ("# From a messy table to a page", messy.write_all),
    "docs/tutorial.md": ("# From a CSV to a page in ten minutes", lambda folder: None),
}
# What a reader is asked to do: files that she writes, commands, and, in comments that she does not see, what
# the text asks her to change in an editor.
_STEP = re.compile(
    r"^```(?P<kind>toml|console|python)\n(?P<block>.*?)^```$"
    r"|^<!-- edit (?P<edited>\S+): (?P<wrong>\S+), (?P<right>\S+) -->$"
    r"|^<!-- write (?P<written>\S+): (?P<lines>[^\n]+) -->$",
    flags=re.MULTILINE | re.DOTALL,
)
# What depends on the noise.
_CHANGING = (
    (re.compile(r"(?m)^(  (?:AUC|log-loss) +)0\.\d{3}| *\b0\.\d+(?= *[│|])"), r"\1?"),
    (re.compile(r"(?m)^ \d\.\d+ to \d\.\d+ +\d+.*$"), "a bar"),
    (re.compile(r"(?m)^( (?:half|90%|95%|99%|everyone).*?) +\d\.\d+ +\d+\.\d%"), r"\1 ?"),
)


def section(document):
    """The part of a document that has its transcript."""
    text = (ROOT / document).read_text(encoding="utf-8")
    start = text.index(TRANSCRIPTS[document][0])
    end = text.find("\n## ", start + 1) if document == "README.md" else len(text)
    return text[start:end]


def commands(console):
    """The commands of a block, and what each prints."""
    parts = re.split(r"(?m)^\$ ", console)[1:]
    return [part.partition("\n")[::2] for part in parts]


def run(document, folder):
    """Run a transcript in a folder; give each command, what the document prints and what was printed."""
    TRANSCRIPTS[document][1](folder)
    with chdir(folder):
        for step in _STEP.finditer(section(document)):
            if step["kind"] == "console":
                for command, written in commands(step["block"]):
                    if command.startswith("expost "):  # and not the setting up of an environment
                        yield command, written, _printed(command)
            else:
                _do(step)


def _do(step):
    """Do what is no command: write a file, run a script, or change a cell."""
    if step["kind"] == "toml":
        Path("domain.toml").write_text(step["block"], encoding="utf-8")
    elif step["kind"] == "python" and ">>>" not in step["block"]:
        subprocess.run([sys.executable, "-c", step["block"]], check=True)
    elif step["edited"]:
        text = Path(step["edited"]).read_text(encoding="utf-8")
        assert text.count(step["wrong"]) == 1
        Path(step["edited"]).write_text(text.replace(step["wrong"], step["right"]), encoding="utf-8")
    elif step["written"]:
        Path(step["written"]).write_text(step["lines"].replace("; ", "\n") + "\n", encoding="utf-8")


def run_python(document, folder):
    """Run a document's examples in Python where its commands were run; how many were tried, and failed."""
    text = doctest.DocTestParser().get_doctest(section(document), {}, document, None, 0)
    with chdir(folder):
        return doctest.DocTestRunner().run(text)[::-1]


def _printed(command):
    program, *arguments = shlex.split(command)
    assert program == "expost"
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, arguments)
    assert "Traceback" not in result.output
    return "".join(line.rstrip() + "\n" for line in result.output.splitlines())


def masked(text):
    """What is printed without the figures that depend on the noise."""
    for pattern, kept in _CHANGING:
        text = pattern.sub(kept, text)
    return text


def rewrite(document):
    """Write what the commands of a document print into it."""
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for command, written, printed in run(document, folder):
            if masked(written) != masked(printed):
                text = text.replace(f"$ {command}\n{written}", f"$ {command}\n{printed}")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for one in TRANSCRIPTS:
        rewrite(one)
