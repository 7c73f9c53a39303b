"""How far long work has come: the pass, the rows that are left, and a bar."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from expost._common.progress import Watch
from expost.cli.base import error_console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Passes over the rows that a fit usually takes after the first reading; docs/scale.md lists them.
PASSES_OF_A_FIT = 6


class Shown:
    """One line in a terminal that says what is done and what is left of it.

    Privacy
    -------
    Private: it has numbers of rows. It goes away at the end, and nothing is shown where there is no terminal.
    """

    def __init__(self, bar: "Progress", text: str) -> None:
        self._bar = bar
        self._task: TaskID = bar.add_task(text, total=None, left="")
        self._expected: int | None = None
        self._before = 0
        self.watch = Watch(self._update)

    def step(self, text: str, *, passes: int | None = None) -> None:
        """Another step begins, of about so many passes over the rows, where it has more than one."""
        self._expected, self._before = passes, self.watch.passes
        self._bar.update(self._task, description=text, total=None, completed=0, left="")

    def rename(self, text: str) -> None:
        """The same work goes on under another name; its passes are counted on."""
        self._bar.update(self._task, description=text)

    def _update(self, watch: Watch) -> None:
        known = watch.share > 0.0
        self._bar.update(
            self._task, total=1.0 if known else None, completed=watch.share, left=self._left(watch)
        )

    def _left(self, watch: Watch) -> str:
        parts = []
        if self._expected is not None:
            number = watch.passes - self._before
            parts.append(f"pass {number}" + (f" of about {self._expected}" * (number <= self._expected)))
        if watch.left is not None and watch.rows:
            about = "" if watch.total is not None else "about "
            parts.append(f"{about}{watch.left:,} rows left")
        return ", ".join(parts)


@contextmanager
def shown(text: str) -> Iterator[Shown]:
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
        yield Shown(bar, text)
