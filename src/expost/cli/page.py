"""``expost page``: the page on which a person reads what it cost her."""

from pathlib import Path
from typing import TYPE_CHECKING

from expost.cli.base import error_console, legible, report_errors, say
from expost.cli.options import FORCE, PUBLICATIONS, option

if TYPE_CHECKING:
    from expost.publication import Publication


@report_errors
def page(
    publications: list[Path] = PUBLICATIONS,
    output: Path = option(Path("report.html"), "The page to write.", "--output", "-o"),
    language: str = option("en", "The language of the page: en or de.", "--language", "-l", metavar="en|de"),
    force: bool = FORCE,
) -> None:
    """Make a page, one file that works offline, on which anyone can type her record and read her figures.

    The page holds the publications and nothing else; what is typed into it never leaves the browser.

    What the publisher declared in words is shown as it is, whatever the language.

    Example: expost page publication.json -o report.html --language de
    """
    from expost.cli.private_files import check_public
    from expost.publication import Publication

    check_public(output, inputs=publications, overwrite=force)
    read = [Publication.load(path) for path in publications]
    with error_console.status("Making the page"):
        write_page(output, read, overwrite=force, language=language)
    say(f"Open in a browser: {legible(output)}")


def write_page(
    path: Path, publications: "list[Publication]", *, overwrite: bool, language: str = "en"
) -> None:
    """Write the page of these publications atomically; public."""
    from expost._common.files import atomic_write
    from expost.page import render

    text = render(publications, language=language)
    with atomic_write(path, overwrite=overwrite) as file:
        file.write(text)
