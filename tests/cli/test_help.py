"""Every help text has an example and is in the documents."""

import importlib.util
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from ward import run

from expost._common import kernels
from expost.cli import app

DOCS = Path(__file__).parent.parent.parent / "docs"
NAMES = [command.callback.__name__ for command in app.registered_commands]


def test_the_commands_are_those_of_the_product_in_the_order_of_the_work():
    assert NAMES == [
        "demo", "init", "check", "choose", "plan", "rehearse", "fit", "page", "predict", "bounds", "losses",
        "summary",
        "ledger",
    ]  # fmt: skip


def test_the_version_is_the_package_s():
    assert run("--version").output == f"expost {version('expost')}\n"


@pytest.mark.parametrize("order", [("--version", "--verbose"), ("--verbose", "--version")])
def test_asked_for_more_it_says_which_kernels_run(order, monkeypatch):
    lines = run(*order).output.splitlines()
    assert lines == [f"expost {version('expost')}", f"kernels: {kernels.described()}"]
    monkeypatch.setattr(kernels, "library", lambda: None)
    monkeypatch.setenv("EXPOST_KERNELS", "off")
    assert run(*order).output.splitlines()[1] == "kernels: NumPy (EXPOST_KERNELS=off)"


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example(name):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"Example: expost {name}" in result.output


def words(page):
    """The words of a page, without the types and brackets that versions of typer write differently."""
    return re.sub(r"<[^>\n]*>|[{}]|\.\.\.", "", page).split()


def test_the_page_of_commands_is_up_to_date():
    spec = importlib.util.spec_from_file_location("commands", DOCS / "commands.py")
    commands = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(commands)
    written = commands.PAGE.read_text(encoding="utf-8")
    assert words(written) == words(commands.page()), "run python docs/commands.py"


def test_completion_is_on():
    assert "--install-completion" in run("--help").output


@pytest.mark.parametrize("command", [[], ["fit"], ["page"], ["bounds"]])
def test_nobody_has_to_know_types(command):
    """Such as bool or list[Path]; and no list of names takes half of the width."""
    shown = run(*command, "--help", env={"COLUMNS": "80"}).output
    assert "--help" in shown
    assert not re.search(r"bool|list|independent\|", shown)
