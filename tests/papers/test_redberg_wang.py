"""The paper's experiments: a quick run must reach the verdicts of the full run that is committed."""

import json
import re
from dataclasses import asdict

import pytest
from at_hand import need

from papers.redberg_wang_2021 import plotting
from papers.redberg_wang_2021.__main__ import QUICK, main
from papers.redberg_wang_2021.catalogue import EXPERIMENTS
from papers.redberg_wang_2021.experiment import HERE, Effort, load_document, save_numbers
from papers.redberg_wang_2021.results import render

# Claims that the numbers contradict (False) or support in part (None); all other claims hold.
OTHERWISE = {
    "01_rotation": {"leverage-first": None},
    "03_credit": {
        "orders-of-magnitude": None,
        "reasonably-accurate": None,
        "dependent-sharper": None,
        "sum-comparable": None,
        "edge-lost-in-sum": None,
    },
    "04_sizes": {"dependent-free-of-d": False},
    "05_allocations": {"little-better": None, "worse-in-sum": None},
    "07_wine": {"especially-kidney": False},
    "08_linear": {"squared-level": False},
    "09_comparison": {"independent-sharper": False, "dependent-sharper": False, "at-every-quality": False},
    "10_errata": dict.fromkeys(
        (
            "noise-formula",
            "rank-one",
            "determinant",
            "inner-product",
            "leverage-estimate",
            "goe-quantile",
            "cube",
            "budgets",
            "eigenvalue",
            "no-condition",
        ),
        False,
    ),
}
# Verdicts that only the full run reaches: a quick one has fewer sizes of tables.
IN_FULL = {"08_adaptive": {"wins-in-the-window": False}}
NAMES = [experiment.name for experiment in EXPERIMENTS]


def otherwise(claims):
    return {claim.name: claim.holds for claim in claims if claim.holds is not True}


# Even the quick runs of the others take seconds or more.
FAST = {"06_kidney"}
QUICK_RUNS = [
    pytest.param(experiment, id=experiment.name, marks=[pytest.mark.slow] * (experiment.name not in FAST))
    for experiment in EXPERIMENTS
]


@pytest.mark.long
@pytest.mark.parametrize("experiment", QUICK_RUNS)
def test_a_quick_run_reaches_every_verdict(experiment, tmp_path):
    need(*experiment.needs)
    effort = Effort(quick=True)
    ticks = []
    numbers = experiment.run(effort, lambda: ticks.append(1))
    assert len(ticks) == experiment.steps(effort)
    assert otherwise(experiment.claims(numbers)) == OTHERWISE.get(experiment.name, {})
    save_numbers(experiment, numbers, effort, tmp_path)
    numbers = load_document(experiment.name, tmp_path)["numbers"]  # all that figure and text may use
    with plotting.styled():
        plotting.save(experiment.draw(numbers), tmp_path / experiment.name)
    assert (tmp_path / f"{experiment.name}.svg").read_text().startswith("<?xml")
    assert (tmp_path / f"{experiment.name}.png").read_bytes().startswith(b"\x89PNG")
    assert "nan" not in experiment.text(numbers)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=NAMES)
def test_the_committed_verdicts_follow_from_the_committed_numbers(experiment):
    document = load_document(experiment.name)
    assert document["effort"] == "full"
    claims = experiment.claims(document["numbers"])
    assert document["claims"] == [asdict(claim) for claim in claims]
    assert otherwise(claims) == OTHERWISE.get(experiment.name, {}) | IN_FULL.get(experiment.name, {})
    assert len({claim.name for claim in claims}) == len(claims)


def test_the_page_follows_from_the_committed_numbers():
    documents = [load_document(name) for name in NAMES]
    assert (HERE / "RESULTS.md").read_text(encoding="utf-8") == render(EXPERIMENTS, documents)


def test_every_link_and_figure_of_the_page_is_there():
    page = (HERE / "RESULTS.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)\)", page)
    assert len(targets) > 30
    assert [target for target in targets if not (HERE / target).exists()] == []
    headings = {
        "".join(sign for sign in line[3:].lower() if sign.isalnum() or sign in " -").replace(" ", "-")
        for line in page.splitlines()
        if line.startswith("## ")
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


@pytest.mark.long
def test_a_run_writes_numbers_figures_and_page(tmp_path, capsys):
    assert main(["--quick", "--only", "01", "--out", str(tmp_path)]) == 0
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert found == [
        "RESULTS.md",
        "figures/01_rotation.png",
        "figures/01_rotation.svg",
        "results/01_rotation.json",
    ]
    assert "A quick run" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    before = (tmp_path / "figures/01_rotation.svg").read_bytes()
    assert main(["--redraw", "--only", "01", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "figures/01_rotation.svg").read_bytes() == before
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.long
def test_a_quick_run_never_writes_over_the_committed_results(tmp_path, capsys, monkeypatch, remembered):
    kept = tmp_path / "results" / "01_rotation.json"
    kept.parent.mkdir()
    kept.write_text("the full run", encoding="utf-8")
    monkeypatch.setattr("papers.redberg_wang_2021.__main__.HERE", tmp_path)
    monkeypatch.setattr("papers.redberg_wang_2021.__main__.QUICK", tmp_path / "quick")
    assert main(["--quick", "--only", "01"]) == 0
    assert kept.read_text(encoding="utf-8") == "the full run"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quick", "results"]
    assert load_document("01_rotation", tmp_path / "quick" / "results")["effort"] == "quick"
    assert main(["--quick", "--only", "01", "--out", f"{tmp_path}/results/.."]) == 1
    assert "holds the full run's results" in " ".join(capsys.readouterr().err.split())
    assert kept.read_text(encoding="utf-8") == "the full run"


def test_git_ignores_what_a_quick_run_writes():
    ignored = (HERE.parents[1] / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert f"/{QUICK.relative_to(HERE.parents[1]).as_posix()}/" in ignored


def test_an_unknown_experiment_is_refused_in_one_sentence(tmp_path, capsys):
    assert main(["--only", "77", "--out", str(tmp_path)]) == 1
    assert "`--only` must begin the name of an experiment" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_without_data_it_stops_first_and_says_what_to_do(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("EXPOST_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr("papers.datasets.files._cache", lambda: tmp_path / "nothing")
    monkeypatch.setattr("papers.datasets.files.UCI", "http://127.0.0.1:9")
    assert main(["--quick", "--only", "01", "06", "--out", str(tmp_path / "out")]) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert "EXPOST_DATA" in message
    assert message.endswith("--only 01_rotation 02_regularization 04_sizes 08_adaptive 10_errata.")
    assert not (tmp_path / "out" / "results").exists()


def test_an_interrupted_run_keeps_finished_experiments(tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("papers.redberg_wang_2021.e02_regularization.Regularization.run", interrupt)
    assert main(["--quick", "--only", "01", "02", "--out", str(tmp_path)]) == 1
    assert json.loads((tmp_path / "results/01_rotation.json").read_text())["effort"] == "quick"
    assert not (tmp_path / "results/02_regularization.json").exists()
    assert "stopped" in capsys.readouterr().err
