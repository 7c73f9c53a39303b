"""Transcripts in the documents: commands with what they print, which can be run again.

``python tests/journeys/transcripts.py`` runs them and writes what they print into the documents.
"""

import os
import re
import shlex
import tempfile
from pathlib import Path

import messy
from typer.testing import CliRunner

from expost.cli import app

ROOT = Path(__file__).parent.parent.parent
# Each document, the heading of its transcript, and what makes the files that it starts with.
TRANSCRIPTS = {
    "README.md": ("## From your CSV to a page", messy.write_tidy),
    "docs/journey.md": ("# From a messy table to a page", messy.write_all),
}
_BLOCK = re.compile(r"^```(toml|console)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
# What depends on the noise.
_CHANGING = re.compile(r"(?m)^(  (?:AUC|log-loss) +)0\.\d{3}|\b0\.\d+(?= *[│|])")


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
    before = os.getcwd()
    TRANSCRIPTS[document][1](folder)
    os.chdir(folder)
    try:
        for kind, block in _BLOCK.findall(section(document)):
            if kind == "toml":
                Path("domain.toml").write_text(block, encoding="utf-8")
                continue
            for command, written in commands(block):
                yield command, written, _printed(command)
    finally:
        os.chdir(before)


def _printed(command):
    words, _, target = command.partition(" > ")
    program, *arguments = shlex.split(words)
    assert program == "expost"
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, arguments)
    assert "Traceback" not in result.output
    if target:
        Path(target).write_text(result.stdout, encoding="utf-8")
    text = result.stderr if target else result.output
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def masked(text):
    """What is printed without the figures that depend on the noise."""
    return _CHANGING.sub(r"\1?", text)


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
