"""Progress: silent by default, one line in a terminal, one output in a notebook, lines in a log."""

import sys
import types

import numpy as np
import pytest
from problems import rows_in_ball

import expost
from expost._common.progress import Watch, shown_steps

rng = np.random.default_rng(0)
X, Y = rows_in_ball(rng, 50, 2), rng.integers(0, 2, 50)
STEPS = [
    "Planning",
    "Checking the table",
    "Drawing the noise and fitting",
    "Certifying the minimiser",
    "Measuring and printing",
    "Verifying the publication",
]


def model(**changes):
    return expost.LogisticRegression(norm=1.0, classes=[0, 1], report="leverage", random_state=0, **changes)


class Notebook:
    """IPython as a notebook has it: a shell with a kernel, and a display whose output can be replaced."""

    def __init__(self, *, kernel=True):
        self.shown = []
        shell = types.SimpleNamespace(**({"kernel": object()} if kernel else {}))
        self.package = types.ModuleType("IPython")
        self.package.get_ipython = lambda: shell
        self.module = types.ModuleType("IPython.display")
        self.module.display = self.display

    def display(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        self.shown.append(bundle)
        return self

    def update(self, bundle, *, raw):
        assert raw
        self.shown.append(bundle)

    def install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "IPython", self.package)
        monkeypatch.setitem(sys.modules, "IPython.display", self.module)
        return self


def test_nothing_is_shown_by_default(capsys, monkeypatch):
    notebook = Notebook().install(monkeypatch)
    model().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    assert notebook.shown == []


def test_a_log_gets_a_line_for_each_step(capsys):
    model(verbose=True).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == STEPS


def test_a_notebook_gets_one_output_that_ends_with_the_time(capsys, monkeypatch):
    notebook = Notebook().install(monkeypatch)
    model(verbose=True).fit(X, Y)
    texts = [bundle["text/plain"] for bundle in notebook.shown]
    assert texts[:-1] == ["Starting", *(f"{step} …" for step in STEPS)]
    assert texts[-1].startswith("Done in ")
    assert all(f">{text}</div>" in b["text/html"] for text, b in zip(texts, notebook.shown, strict=True))
    assert capsys.readouterr() == ("", "")


def test_ipython_in_a_terminal_is_a_terminal(capsys, monkeypatch):
    notebook = Notebook(kernel=False).install(monkeypatch)
    with shown_steps(True) as step:
        step("[bold]one[/bold]")
    assert notebook.shown == []
    assert capsys.readouterr().err == "[bold]one[/bold]\n"


def test_a_failure_passes_through_and_is_not_called_done(monkeypatch):
    notebook = Notebook().install(monkeypatch)
    with pytest.raises(expost.exceptions.DomainError):
        model(verbose=True).fit(X * np.nan, Y)
    assert [bundle["text/plain"] for bundle in notebook.shown[-2:]] == ["Checking the table …", "Stopped."]


def test_progress_changes_nothing_about_the_fit():
    np.testing.assert_array_equal(model(verbose=True).fit(X, Y).coef_, model().fit(X, Y).coef_)


def test_a_watch_counts_passes_and_what_is_left_of_each():
    seen = []
    watch = Watch(lambda one: seen.append((one.passes, one.rows, one.left, round(one.share, 3))))
    watch.begin(100)
    watch.seen(25)
    watch.seen(75)
    watch.begin(None)  # how many rows there are is not known, only how much of the file was read
    watch.seen(30, 0.1)
    watch.seen(30, 0.05)  # another thread was ahead: a share never falls
    watch.seen(540, 1.0)
    assert seen == [
        (1, 0, 100, 0.0),
        (1, 25, 75, 0.25),
        (1, 100, 0, 1.0),
        (2, 0, None, 0.0),
        (2, 30, 270, 0.1),
        (2, 60, 540, 0.1),
        (2, 600, 0, 1.0),
    ]
