"""The application, its consoles, its error reporting, and how far long work has come."""

import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import is_dataclass
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from expost._common import kernels
from expost._common.progress import STOPPED, Watch, catch_interrupts, was_interrupted
from expost.exceptions import ExpostError, ExpostWarning, printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class _Flags:
    """Lets the help show no type of an option that is there or not, and a plain one of several paths."""

    def get_params(self, context: Any) -> Any:
        """All parameters, also those that every command has."""
        found = super().get_params(context)  # type: ignore[misc]
        for one in found:
            if getattr(one, "is_flag", False):
                one.metavar = ""
            if one.param_type_name == "argument":  # each is a path, or several
                one.display_type_rich = lambda ctx: "<path>"
        return found


class _Group(_Flags, TyperGroup):
    """All commands."""


class _Command(_Flags, TyperCommand):
    """One command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As ever; who names several files, or lets the shell do it, is told how."""
        several = sum(one.endswith(".json") for one in args) > 1
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            said: Any = error  # whichever parser is underneath, what it says is its message
            if hasattr(said, "message"):
                said.message = said.message.removeprefix("Value error, ")
            extra = re.search(r"unexpected extra.*\.(csv|parquet)\b", getattr(said, "message", ""))
            if extra and several:
                said.message += f". expost {ctx.info_name} takes one publication."
            elif extra:
                said.message += ". For several files, name their folder or a pattern in quotes."
            raise


app = typer.Typer(
    cls=_Group,
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog="Status 0: done. 1: refused, with one sentence that says why. 2: wrong usage.",
)
console = Console(emoji=False)
error_console = Console(stderr=True, emoji=False)

_PYTHONS = warnings.showwarning
given: ContextVar[Mapping[str, Any]] = ContextVar("given")
"""The arguments and options of the command that runs, by their names."""


def _print_version(context: typer.Context, parameter: typer.CallbackParam, asked: bool) -> None:
    """Print once both options are read, in whichever order they were given."""
    context.meta[parameter.name] = asked
    if len(context.meta) == 2 and context.meta["show_version"]:
        typer.echo(f"expost {version('expost')}")
        if context.meta["verbose"]:
            typer.echo(f"kernels: {kernels.described()}")
        raise typer.Exit


_VERSION = typer.Option(
    False, "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
)
_VERBOSE = typer.Option(
    False,
    "--verbose",
    callback=_print_version,
    is_eager=True,
    help="With --version: also whether passes over the rows are run with compiled kernels.",
)


@app.callback()
def options(show_version: bool = _VERSION, verbose: bool = _VERBOSE) -> None:
    """What did this model cost me? Private models, and the privacy loss of every person."""


def command(module: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a declaration; the function of its name in a module of this room does the work.

    The module is loaded when the command runs: `expost --help` should not load SciPy. A parameter that is a
    dataclass stands for its fields: each of them is an argument or an option.
    """

    def declare(declaration: Callable[..., None]) -> Callable[..., None]:
        @wraps(declaration)
        def run(**values: Any) -> None:
            given.set(values)
            with _errors_reported():
                work = getattr(import_module(f"expost.cli.{module}"), declaration.__name__)
                work(**_arguments(declaration, values))

        run.__signature__ = signature(declaration).replace(parameters=list(_parameters(declaration)))  # type: ignore[attr-defined]
        return app.command(cls=_Command)(run)

    return declare


@contextmanager
def _errors_reported() -> Iterator[None]:
    """Report errors as one sentence on standard error, with exit status 1."""
    try:
        catch_interrupts()
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
        return
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
    say(f"[bold red]expost:[/bold red] {legible(sentence)}", to=error_console)
    raise typer.Exit(1)


def _parameters(function: Callable[..., Any]) -> Iterator[Parameter]:
    for one in signature(function).parameters.values():
        if is_dataclass(one.annotation):
            yield from _parameters(cast(Any, one.annotation))
        else:
            yield one.replace(kind=Parameter.KEYWORD_ONLY)


def _arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, one in signature(function).parameters.items():
        kind: Any = one.annotation
        found[name] = kind(**_arguments(kind, values)) if is_dataclass(one.annotation) else values[name]
    return found


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


def say(lines: str, *, to: Console = console) -> None:
    """Print lines without colouring numbers.

    A terminal breaks them between words, but not those with a command in them, which are there to be copied.
    """
    for line in lines.split("\n"):
        if to.is_terminal and "expost " not in line:
            words = line.lstrip(" ")
            text = Text.from_markup(words, emoji=False)
            to.print(Padding.indent(text, len(line) - len(words)), highlight=False)
        else:
            to.print(line, highlight=False, soft_wrap=True)


def warn(sentence: str) -> None:
    """Print a warning on standard error; the command continues."""
    say(f"[bold yellow]expost, warning:[/bold yellow] {legible(sentence)}", to=error_console)


def output_console(as_json: bool) -> Console:
    """The console for people: standard error if standard output is for JSON."""
    return error_console if as_json else console


def print_json(content: Any) -> None:
    """Print one JSON document on standard output, with null for numbers that are not finite."""
    typer.echo(json.dumps(_finite(content), allow_nan=False, indent=2, default=str))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class ProgressLine:
    """One line in a terminal that says what is done and what is left of it.

    Private: it has numbers of rows. It goes away at the end, and nothing is shown where there is no terminal.
    """

    def __init__(self, bar: "Progress", text: str) -> None:
        self._bar = bar
        self._task: TaskID = bar.add_task(text, total=None, left="")
        self._expected: int | None = None
        self._before = 0
        self.watch = Watch(self._update)

    def step(self, text: str, *, passes: int | None = None) -> None:
        """Another step begins; ``passes`` says about how many there are over the rows, if more than one."""
        self._expected, self._before = passes, self.watch.passes
        self._bar.update(self._task, description=text, total=None, completed=0, left="")

    def rename(self, text: str) -> None:
        """Show another name for the step; its passes are counted on."""
        self._bar.update(self._task, description=text)

    def _update(self, watch: Watch) -> None:
        total, parts = 1.0 if watch.share > 0.0 else None, []
        if self._expected is not None:
            number = watch.passes - self._before
            parts.append(f"pass {number}" + (f" of about {self._expected}" * (number <= self._expected)))
        if watch.left is not None and watch.rows:
            about = "" if watch.total is not None else "about "
            parts.append(f"{about}{watch.left:,} rows left")
        self._bar.update(self._task, total=total, completed=watch.share, left=", ".join(parts))


@contextmanager
def show_progress(text: str) -> Iterator[ProgressLine]:
    """Show what is done, on standard error, until the end of the block."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[left]}"),
    )
    terminal = error_console.is_terminal
    bar = Progress(*columns, console=error_console, transient=True, disable=not terminal)
    with bar if terminal else nullcontext():  # older versions of rich end a line that they did not begin
        yield ProgressLine(bar, text)
