"""The application, its consoles and its error reporting."""

import json
import math
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer
from rich.console import Console
from rich.markup import escape

from expost._common.interrupts import STOPPED, catch_interrupts, was_interrupted
from expost.exceptions import ExpostError, ExpostWarning, printable

# Commands import what they compute with when they run: `expost --help` should not load SciPy.
app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog="Status 0: done. 1: refused, with one sentence that says why. 2: wrong usage.",
)
console = Console(emoji=False)
error_console = Console(stderr=True, emoji=False)

_PYTHONS = warnings.showwarning
Command = TypeVar("Command", bound=Callable[..., None])
told: ContextVar[Mapping[str, Any]] = ContextVar("told")
"""The arguments and options of the command that runs."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"expost {version('expost')}")
        raise typer.Exit


_VERSION = typer.Option(
    "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
)


@app.callback()
def options(show_version: Annotated[bool, _VERSION] = False) -> None:
    """What did this model cost me? Private models, and the privacy loss of every person."""


def report_errors(command: Command) -> Command:
    """Report errors as one sentence on standard error, with exit status 1."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            catch_interrupts()
            told.set(kwargs)
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                command(*args, **kwargs)
        except ExpostError as error:
            sentence = str(error)
        except OSError as error:
            sentence = _about_file(error)
        except MemoryError:
            sentence = "there is not enough memory for this table; no partial file was left behind."
        except (KeyboardInterrupt, typer.Abort):
            sentence = STOPPED
        except Exception:
            if not was_interrupted():
                raise
            sentence = STOPPED
        else:
            return
        say(f"[bold red]expost:[/bold red] {legible(sentence)}", to=error_console)
        raise typer.Exit(1)

    return cast(Command, run)


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **others: Any) -> None:
    """Print a warning of the library's in one sentence, and any other as Python does."""
    if issubclass(category, ExpostWarning):
        warn(str(message))
    else:
        _PYTHONS(message, category, *place, **others)


def _about_file(error: OSError) -> str:
    where = f" {error.filename}" if error.filename else ""
    if isinstance(error, FileNotFoundError):
        return f"there is no file{where}. Check the name and the folder."
    if isinstance(error, IsADirectoryError):
        return f"cannot use{where}: it is a folder. Name a file."
    return f"cannot use{where}: {error.strerror or error}. Choose another place, or free some space there."


def legible(text: object) -> str:
    """A text from outside, such as a path or a name in a file, as the terminal may show it."""
    return escape(printable(str(text)))


def say(text: str, *, to: Console = console) -> None:
    """Print a line without breaking it at the terminal's width and without colouring numbers."""
    to.print(text, highlight=False, soft_wrap=True)


def warn(sentence: str) -> None:
    """Print a warning on standard error; the command continues."""
    say(f"[bold yellow]expost, warning:[/bold yellow] {legible(sentence)}", to=error_console)


def output_console(as_json: bool) -> Console:
    """The console for people: standard error if standard output is for JSON."""
    return error_console if as_json else console


def print_json(content: Any) -> None:
    """Print one JSON document on standard output, with null for numbers that are not finite."""
    typer.echo(json.dumps(_finite(content), allow_nan=False, indent=2))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
