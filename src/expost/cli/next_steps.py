"""The commands that another one suggests, as they are typed in a shell."""

import shlex
from collections.abc import Iterator
from inspect import signature
from typing import Any

from typer.models import OptionInfo

from expost.cli.base import app, told

# What is about one run of a command, and not about its table or its model.
_OF_ONE_RUN = ("output", "force", "as_json", "dry_run")


def next_command(name: str, *arguments: object, **options: Any) -> str:
    """A command that goes on with everything that this one was told and that it takes as well.

    So it means the same table, the same model and the same account. ``options`` are added to what was told,
    or take its place; None leaves one out.
    """
    commands = [one.callback for one in app.registered_commands if one.callback is not None]
    (command,) = (one for one in commands if one.__name__ == name)
    words = ["expost", name, *map(_as_file, arguments)]
    for parameter in signature(command).parameters.values():
        (option,) = parameter.annotation.__metadata__
        if not isinstance(option, OptionInfo):
            continue
        value = told.get().get(parameter.name)
        if parameter.name in _OF_ONE_RUN or value == parameter.default:
            value = None
        value = options.get(parameter.name, value)
        # In an annotation the first name stands where a default would.
        names = [one for one in (option.default, *(option.param_decls or ())) if isinstance(one, str)]
        words += _as_words(min(names, key=len, default=f"--{parameter.name.replace('_', '-')}"), value)
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A word of a shell; letters that a terminal does not show are spelt out."""
    if word.isprintable():
        return shlex.quote(word)
    plain = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in plain) + "'"


def _as_file(argument: object) -> str:
    """A path that is not taken for an option."""
    return f"./{argument}" if str(argument).startswith("-") else str(argument)


def _as_words(option: str, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield from [option] * value
        return
    for one in value if isinstance(value, list) else [] if value is None else [value]:
        yield from (option, str(one).removesuffix(".0") if isinstance(one, float) else str(one))
