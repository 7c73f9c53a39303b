"""Write ``docs/commands.md``: the help text of every command, as on a plain terminal of 80 columns."""

from pathlib import Path

import typer
from typer.testing import CliRunner

from expost.cli import app

PAGE = Path(__file__).with_name("commands.md")
OPENING = """\
# Commands

The help text of every command; `python docs/commands.py` writes this page and a test keeps it up to date.
Exit status 0 is fine, 1 is a refusal with one sentence on standard error, 2 is wrong usage. `--json` prints
one document on standard output, and everything meant for people then goes to standard error. No command
writes over a file that it reads, and none overwrites any file without `--force`, but
`check` its own list of problems.

A table is a `.csv` file (a line of names first; UTF-8, commas and a decimal point unless `[table]` in the
domain file says otherwise; cells are read as text and the domain decides what is a number: ASCII digits, a
decimal mark, an exponent), a `.parquet` file, a folder of files of one of these kinds, or a quoted
pattern such as `"folder/*.parquet"`. It may be larger than memory. [domain.md](domain.md) explains the domain
file, and the [tutorial](tutorial.md) shows the commands at work.
`expost --install-completion` sets up completion for your shell.

![expost demo in a terminal](figures/terminal.svg)
"""


def help_text(*command: str) -> str:
    """What ``expost COMMAND --help`` prints without colours and boxes."""
    plain = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)
    plain.registered_callback = app.registered_callback
    plain.registered_commands = app.registered_commands
    result = CliRunner(env={"COLUMNS": "80"}).invoke(plain, [*command, "--help"], prog_name="expost")
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def page() -> str:
    """The whole page."""
    names = [command.callback.__name__ for command in app.registered_commands if command.callback]
    sections = [f"## expost\n\n```text\n{help_text()}\n```\n"]
    sections += [f"## expost {name}\n\n```text\n{help_text(name)}\n```\n" for name in names]
    return "\n".join([OPENING, *sections])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
