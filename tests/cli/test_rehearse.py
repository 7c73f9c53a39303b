"""What a fit would be good for, from invented tables."""

import json
import math

import numpy as np
import pytest
from ward import DOMAIN, NAMES, patients, refused, run, ward, write_csv

import expost
from expost.cli import rehearse
from expost.cli.options import PlanOptions
from expost.cli.plan import make_plan
from expost.cli.rehearse import invented, rehearsed, verdict

FEATURES = (
    expost.Number(name="age", low=18.0, high=90.0),
    expost.Category(name="ward", categories=("north", "south")),
    expost.YesNo(name="smoker"),
)
LABELS = {
    "classes": expost.ClassLabel(name="y", classes=("no", "yes")),
    "number": expost.NumberLabel(name="y", low=0.0, high=60.0),
    "count": expost.CountLabel(name="y", high=52.0),
    "amount": expost.AmountLabel(name="y", low=10.0, high=1000.0),
}


def domain_of(kind):
    return expost.Domain(features=FEATURES, label=LABELS[kind])


def options(**others):
    plain = {"epsilon": 1.0, "delta": 1e-6, "report": "independent", "rows_at_most": 10**7, "max_weight": 1.0}
    plain |= {"recalibrate": False, "models": 1}
    absent = dict.fromkeys(["l2", "l1", "cap", "split", "loss", "level", "threshold"])
    return PlanOptions(**absent | plain | others)


def share_of(quality):
    return next(value for value in (quality.r2, quality.d2, quality.auc) if value is not None)


@pytest.mark.parametrize("kind", LABELS)
def test_invented_people_are_inside_what_is_declared_and_depend_on_the_generator_alone(kind):
    domain = domain_of(kind)
    columns, outcomes = invented(domain, 300, "medium", np.random.default_rng(0))
    again = invented(domain, 300, "medium", np.random.default_rng(0))[1]
    assert np.array_equal(outcomes, again)
    assert np.all((columns["age"] >= 18.0) & (columns["age"] <= 90.0))
    assert set(columns["ward"]) == {"north", "south"}
    if kind == "classes":
        assert set(outcomes) == {"no", "yes"}
    else:
        assert domain.label.low <= np.min(outcomes) < np.max(outcomes) <= domain.label.high
    assert kind != "count" or np.array_equal(outcomes, np.rint(outcomes))


def test_the_largest_counts_are_invented_too():
    domain = expost.Domain(features=FEATURES, label=expost.CountLabel(name="y", high=1e308))
    outcomes = invented(domain, 50, "medium", np.random.default_rng(0))[1]
    assert np.all(np.isfinite(outcomes))


def test_more_rows_than_memory_holds_are_refused(tmp_path):
    (tmp_path / "domain.toml").write_text(DOMAIN)
    done = run("rehearse", tmp_path / "domain.toml", "--rows", "99999999999999999999999")
    assert refused(done, "`rows` must be at most 10,000,000")


def test_invented_counts_and_amounts_scatter_as_real_ones_do():
    """Counts vary more than a Poisson law's around their means, and amounts by a factor around theirs."""
    count, amount = (
        invented(domain_of(kind), 4000, "none", np.random.default_rng(0))[1] for kind in ("count", "amount")
    )
    assert np.var(count) > 3.0 * np.mean(count)
    assert np.min(count) == 0.0
    assert 0.8 < np.std(np.log(amount)) < 1.2


@pytest.mark.long
@pytest.mark.parametrize("kind", LABELS)
def test_a_strong_effect_is_found_and_none_is_not(kind):
    """Without an effect a score is chance: an AUC of 0.5, an R² or D² of 0 at most, but for 4,000 draws."""
    domain = domain_of(kind)
    plan = make_plan(domain, options(epsilon=3.0))
    strong, none = (rehearsed(domain, plan, 2000, effect, 3) for effect in ("strong", "none"))
    chance = 0.5 if kind == "classes" else 0.0
    assert share_of(strong.quality) > chance + 0.2
    assert share_of(none.quality) < chance + 0.03
    assert not strong.useless
    assert 0.0 < none.told <= none.told_most < plan.epsilon


@pytest.mark.long
def test_people_are_told_more_with_a_larger_budget(tmp_path):
    path = tmp_path / "domain.toml"
    domain_of("count").save(path)
    found = json.loads(run("rehearse", path, "--rows", 300, "--tables", 1, "--json").stdout)
    assert [one["epsilon"] for one in found["budgets"]] == pytest.approx([1 / 3, 1.0, 3.0])
    assert np.all(np.diff([one["told"] for one in found["budgets"]]) > 0.0)
    shown = run("rehearse", path, "--rows", 300, "--tables", 1).stdout
    assert shown.startswith("One invented table of 300 rows, with a medium effect of the features.\n")
    assert "nothing was spent" in shown
    assert "D²: how much" in shown
    guesses = max(51, math.ceil(100.0 / (1.0 + math.exp(-found["budgets"][1]["told"]))))
    assert f"at most {guesses} of 100 guesses" in " ".join(shown.split())
    assert refused(run("rehearse", path, "--rows", 0), "`rows` must be")


OTHERS = {
    "ordered": expost.OrderedLabel(name="y", classes=("none", "mild", "severe")),
    "time": expost.TimeLabel(name="y", event="died", periods=6),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", [*LABELS, *OTHERS])
def test_an_invented_record_weighs_1_of_what_it_may_weigh(kind, tmp_path):
    """The noise grows with the largest weight, and the records do not: members are told less."""
    path = tmp_path / "domain.toml"
    expost.Domain(features=FEATURES, label=(LABELS | OTHERS)[kind]).save(path)
    arguments = ("rehearse", path, "--rows", 200, "--tables", 1)
    result = run(*arguments, "--max-weight", 3)
    assert result.exit_code == 0, result.output
    assert "Each weighs 1, of the 3 that it may weigh." in result.stdout
    plain = run(*arguments)
    assert "weighs" not in plain.stdout
    told = [float(one.stdout.splitlines()[4].split()[-1]) for one in (result, plain)]
    assert told[0] < told[1]


def test_a_rehearsal_of_amounts_on_the_command_line(tmp_path):
    path = tmp_path / "domain.toml"
    domain_of("amount").save(path)
    found = json.loads(run("rehearse", path, "--rows", 100, "--tables", 1, "--json").stdout)
    assert [one["quality"]["d2"] is None for one in found["budgets"]] == [False] * 3
    assert found["budgets"][0]["quality"]["r2"] is None


@pytest.mark.long
def test_a_fit_with_weights_ends_with_a_verdict(tmp_path):
    domain = tmp_path / "domain.toml"
    domain.write_text(DOMAIN)
    rows = [[*row, 3 * (number % 2)] for number, row in enumerate(patients(40))]
    table = write_csv(tmp_path / "table.csv", rows, [*NAMES, "w"])
    told = ("--epsilon", 0.05, "--rows-at-most", 40, "--weight", "w", "--max-weight", 3, "--json")
    result = run("fit", domain, table, "-o", tmp_path / "p.json", *told)
    assert result.exit_code == 0, result.output
    assert "40 invented rows of weight 1" in json.loads(result.stdout)["verdict"]


def test_a_verdict_that_cannot_be_found_does_not_fail_a_fit(tmp_path, monkeypatch):
    def fail(*_):
        raise expost.DomainError("something is wrong")

    monkeypatch.setattr(rehearse, "rehearsed", fail)
    result = run("fit", *ward(tmp_path), "-o", tmp_path / "p.json", "--rows-at-most", 40)
    assert result.exit_code == 0, result.output
    assert "The fit is complete. Whether so many rows" in " ".join(result.stdout.split())
    assert "What next" in result.stdout


@pytest.mark.long
def test_a_fit_ends_with_a_verdict_where_so_few_rows_cannot_give_a_useful_model(tmp_path):
    domain, table = tmp_path / "domain.toml", write_csv(tmp_path / "table.csv", patients(40))
    domain.write_text(DOMAIN)
    told = ("--epsilon", 0.05, "--rows-at-most", 40)
    result = run("fit", domain, table, "-o", tmp_path / "p.json", *told, "--json")
    assert "predicts no better than no features" in json.loads(result.stdout)["verdict"]
    quiet = run("fit", domain, table, "-o", tmp_path / "q.json", "--json")
    assert json.loads(quiet.stdout)["verdict"] is None
    useful = domain_of("classes")
    assert verdict(useful, make_plan(useful, options(epsilon=8.0)), 5000) is None
