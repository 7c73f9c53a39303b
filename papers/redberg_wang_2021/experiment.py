"""The base class of the experiments: numbers, claims checked against them, a figure and a section of text."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from papers.common import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
Numbers = dict[str, Any]
T = TypeVar("T")
Tick = Callable[[], None]


@dataclass(frozen=True)
class Effort:
    """How much work a run does: all of it, or enough to see every verdict."""

    quick: bool

    def pick(self, full: T, quick: T) -> T:
        """The first for a full run, the second for a quick one."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Claim:
    """One statement, and whether the numbers support it."""

    name: str
    statement: str
    holds: bool | None
    """None if it holds in part, or under one interpretation of the paper and not under another."""
    measured: str
    whose: str = "paper"
    """``"paper"`` for what the paper says, ``"extension"`` for the same where the paper has no experiment,
    ``"ours"`` for what we say. A formula of the paper that does not hold is an ``"erratum"`` if it is wrong
    as printed, or ``"loose"`` if it is looser than necessary."""

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        return verdict(self.holds, self.whose)


def verdict(holds: bool | None, whose: str) -> str:
    """The outcome of a claim in words."""
    if holds is None:
        return "holds in part"
    if holds:
        return "holds"
    against = {"erratum": "does not stand as printed", "loose": "looser than need be"}
    return against.get(whose, "does not hold")


def agreed(*verdicts: bool) -> bool | None:
    """True or False if all interpretations agree, None if they do not."""
    return all(verdicts) if len(set(verdicts)) == 1 else None


class Experiment(ABC):
    """One experiment; its figure, claims and text are functions of its numbers only.

    So they can be made again from the file of numbers, without running the experiment.
    """

    number: ClassVar[str]
    """Its place in the list of experiments, as on the page."""
    name: ClassVar[str]
    """The name of its files."""
    title: ClassVar[str]
    caption: ClassVar[str]
    """What to see in the figure."""
    needs: ClassVar[tuple[str, ...]] = ()
    """The data sets without which it cannot run."""

    @abstractmethod
    def steps(self, effort: Effort) -> int:
        """How often :meth:`run` will call ``tick``."""

    @abstractmethod
    def run(self, effort: Effort, tick: Tick) -> Numbers:
        """Compute everything that is shown; plain lists and numbers."""

    @abstractmethod
    def claims(self, numbers: Numbers) -> list[Claim]:
        """The statements that the numbers decide."""

    @abstractmethod
    def draw(self, numbers: Numbers) -> "Figure":
        """The figure."""

    @abstractmethod
    def text(self, numbers: Numbers) -> str:
        """What was done and what the numbers show, in Markdown."""


def save_numbers(experiment: Experiment, numbers: Numbers, effort: Effort, folder: Path) -> None:
    """Write the numbers and the verdicts they lead to."""
    document = {
        "experiment": experiment.name,
        "title": experiment.title,
        "effort": effort.pick("full", "quick"),
        "claims": [asdict(claim) for claim in experiment.claims(numbers)],
        "numbers": numbers,
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(folder / f"{experiment.name}.json", text)


def load_document(name: str, folder: Path = HERE / "results") -> dict[str, Any]:
    """A file that :func:`save_numbers` wrote."""
    document: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return document
