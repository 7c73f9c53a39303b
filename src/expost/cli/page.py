"""``expost page``: the page on which a person reads what it cost her."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from expost._common.files import written_whole
from expost.cli.base import console, errors, refusing
from expost.page import render
from expost.publication import Publication


@refusing
def page(
    publications: Annotated[
        list[Path], typer.Argument(metavar="PUBLICATION.json", help="One or several publications.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
) -> None:
    """Make a page, one file that works offline, on which anyone can type her record and read her figures.

    The page holds the publications and nothing else; what is typed into it never leaves the browser.

    Example: expost page publication.json -o report.html
    """
    read = [Publication.load(path) for path in publications]
    with errors.status("Making the page"):
        write_page(output, read)
    console.print(f"Open in a browser: {escape(str(output))}", highlight=False, soft_wrap=True)


def write_page(path: Path, publications: list[Publication]) -> None:
    """Write the page of these publications, whole or not at all. Public."""
    text = render(publications)
    with written_whole(path) as file:
        file.write(text)
