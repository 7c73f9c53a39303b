"""A small table of texts that is shown alike in a terminal and in a notebook."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from expost.exceptions import printable

if TYPE_CHECKING:
    from rich.table import Table

# Colours are the page's own, and lines are grey with half their opacity: this suits light and dark themes.
_STYLE = (
    ".expost-summary{overflow-x:auto;font-size:.9em;line-height:1.5}"
    ".expost-summary table{border-collapse:collapse;margin:0;color:inherit;background:none}"
    ".expost-summary caption{caption-side:top;text-align:left;font-weight:bold;padding:.3em 0;color:inherit}"
    ".expost-summary tr{background:none!important}"
    ".expost-summary :is(th,td){text-align:left!important;vertical-align:top;padding:.2em 1.2em .2em 0;"
    "border:0;border-top:1px solid rgba(128,128,128,.5)}"
    ".expost-summary tbody th{font-weight:normal;white-space:pre-wrap}"
    ".expost-summary .figure{text-align:right!important;font-variant-numeric:tabular-nums}"
    ".expost-summary p{margin:.3em 0}"
    ".expost-summary .alarm{border-left:.3em solid #c62828;padding-left:.6em;font-weight:bold}"
)
# What is left of a column of words in a narrow terminal, in characters.
_NARROWEST = 8
# That of a table in letters alone, in characters.
_WIDTH = 100


@dataclass(frozen=True)
class Summary:
    """A title, rows of texts, and sentences below them."""

    title: str
    rows: Sequence[Sequence[str]]
    """The cells of each row; the first one names it."""
    columns: Sequence[str] = ()
    notes: Sequence[str] = ()
    alarm: str | None = None
    """A sentence above everything, for what voids a guarantee."""
    figures: bool = False
    """Whether all cells but the first of each row are figures, which line up on the right."""
    dense: bool = False
    """Whether there are so many columns that a terminal has no room for lines between them."""

    def terminal(self) -> "Table":
        """The table for a terminal; what a terminal would obey is escaped."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        def plain(text: str, style: str = "") -> Text:
            return Text(printable(text), style=style)

        table = Table(
            title=plain(self.title),
            title_justify="left",
            show_header=bool(self.columns),
            box=box.SIMPLE_HEAD if self.dense else box.HEAVY_HEAD,
            show_edge=not self.dense,
            pad_edge=not self.dense,
            padding=(0, 1, 0, int(not self.dense)),
        )
        for heading, *cells in zip(self.columns, *self.rows, strict=False):
            layout: Any = {"min_width": min(_NARROWEST, max(map(len, cells), default=1))}
            if table.columns and self.figures:  # a name may be broken, a figure may not
                layout = {"justify": "right", "no_wrap": True}
            table.add_column(plain(heading), overflow="fold", **layout)
        if self.alarm is not None and self.figures:  # a sentence does not fit a column of figures
            table.title = Text("\n").join([plain(self.alarm, "bold red"), plain(self.title)])
        elif self.alarm is not None:
            word, _, sentence = self.alarm.partition(": ")
            table.add_row(plain(word, "bold red"), plain(sentence, "bold red"))
        for row in self.rows:
            table.add_row(*map(plain, row))
        if self.notes:
            table.caption = Text("\n").join(map(plain, self.notes))
            table.caption_justify = "left"
        return table

    def text(self) -> str:
        """The table in letters alone, of one width wherever it is printed."""
        from rich.console import Console

        console = Console(file=StringIO(), width=_WIDTH, color_system=None, force_terminal=False)
        with console.capture() as captured:  # sentences are as wide as the text, not as the table
            console.print(replace(self, title="", notes=(), alarm=None).terminal(), highlight=False)
        lines = [line.rstrip() for line in captured.get().splitlines()]
        whole = [*filter(None, (self.alarm, self.title)), None, *self.notes]
        return "\n".join(
            line for one in whole for line in (lines if one is None else wrap(printable(one), _WIDTH)) if line
        )

    def html(self) -> str:
        """The table for a notebook: every text is escaped, and nothing is loaded."""
        figure = ' class="figure"' if self.figures else ""
        head = "".join(
            f'<th scope="col"{figure if place else ""}>{_shown(heading)}</th>'
            for place, heading in enumerate(self.columns)
        )
        body = "".join(
            f'<tr><th scope="row">{_shown(first)}</th>'
            + "".join(f"<td{figure}>{_shown(cell)}</td>" for cell in others)
            + "</tr>"
            for first, *others in self.rows
        )
        return (
            f'<div class="expost-summary"><style>{_STYLE}</style>'
            + (f'<p class="alarm">{_shown(self.alarm)}</p>' if self.alarm is not None else "")
            + f"<table><caption>{_shown(self.title)}</caption>"
            + (f"<thead><tr>{head}</tr></thead>" if head else "")
            + f"<tbody>{body}</tbody></table>"
            + "".join(f"<p>{_shown(note)}</p>" for note in self.notes)
            + "</div>"
        )


def _shown(text: str) -> str:
    """A text as a notebook may show it: no markup, and nothing that changes the direction of writing."""
    return escape(printable(text))


class Summarized:
    """What is shown as one summary, in a terminal and in a notebook."""

    def _summary(self) -> Summary:
        raise NotImplementedError

    def __rich__(self) -> "Table":
        return self._summary().terminal()

    def _repr_html_(self) -> str:
        return self._summary().html()
