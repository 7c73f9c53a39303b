"""What the fourth round of attacks found about private choices; each test is one line of the list."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ward import refused, run

import expost
from expost._common.strict_json import digest
from expost.data.choices import chosen_cost
from expost.data.ranges import AskedRanges, choice_losses
from expost.exceptions import DomainError, LedgerError, PublicationError
from expost.fitting.choose import choose_ranges, noted_choices

ASKED = """
[[features]]
name = "income"
kind = "number"
low = 0
high = "private"
grid = { from = 1000, to = 100000, steps = 20 }
missing = 500

[label]
name = "ill"
kind = "classes"
classes = ["no", "yes"]
"""
OF_PEOPLE = 'person = "id"\n'
COUNT = 300


@pytest.fixture
def table():
    incomes = np.random.default_rng(0).lognormal(10.0, 0.6, COUNT)
    incomes[::50] = np.nan
    ill = np.where(np.arange(COUNT) % 2, "no", "yes")
    return pd.DataFrame({"id": np.arange(COUNT) // 3, "income": incomes, "ill": ill})


def chosen(table, asked=ASKED, **options):
    declared = AskedRanges.from_toml(asked, 0.5)
    return declared.resolved(choose_ranges(declared.ends, declared.read(table), **options))


def sealed(content):
    """The text of a publication that somebody changed, with the hash that belongs to it."""
    others = {name: field for name, field in content.items() if name != "sha256"}
    return json.dumps(others | {"sha256": digest(others)})


def test_01_a_range_for_rows_is_no_promise_to_a_person(table, tmp_path):
    domain = chosen(table)
    of_people = expost.Domain.from_toml(OF_PEOPLE + domain.to_toml())
    account = expost.Ledger(tmp_path / "l.db").account("t", epsilon=3.0, delta=1e-5)
    for declared, ids in ((of_people, None), (domain, table["id"])):
        model = expost.LogisticRegression(domain=declared, unit="person", random_state=0)
        with pytest.raises(DomainError, match="chosen for each row, and this model promises to each person"):
            model.fit(table, groups=ids, account=account)
    assert account.entries == ()
    path = tmp_path / "chosen.toml"
    path.write_text(of_people.to_toml(), encoding="utf-8")
    assert refused(run("plan", path), "the two do not add up")
    # And a choice for people is none for rows: its promise is another one.
    alone = chosen(table, OF_PEOPLE + ASKED).model_copy(update={"person": None})
    with pytest.raises(DomainError, match="chosen for each person, and this model promises to each row"):
        expost.LogisticRegression(domain=alone, random_state=0).fit(table)


def test_01b_a_file_that_mixes_units_is_refused(table):
    published = expost.LogisticRegression(domain=chosen(table), random_state=0).fit(table).publication_
    content = json.loads(published.to_json())
    content["domain"]["choices"][0]["unit"] = "person"
    with pytest.raises(PublicationError, match="must promise to each row"):
        expost.Publication.from_json(sealed(content))


def test_01c_plans_of_two_units_are_entered_together_by_no_account(tmp_path):
    account = expost.Ledger(tmp_path / "l.db").account("t", epsilon=3.0, delta=1e-5)
    plans = [("one", expost.ChoicePlan(0.1, 5)), ("other", expost.ChoicePlan(0.1, 5, "person"))]
    with pytest.raises(LedgerError, match="the two do not add up"):
        account.enter_all(plans)
    with pytest.raises(LedgerError, match="the two do not add up"):
        account.check(*(plan for _, plan in plans))
    assert account.entries == ()


def test_02_two_choices_of_one_end_are_two_entries(table, tmp_path):
    once = chosen(table)
    finer = ASKED.replace("from = 1000, to = 100000, steps = 20", "from = 20000, to = 90000, steps = 30")
    again = chosen(table, finer)
    domain = once.model_copy(update={"choices": (*once.choices, *again.choices)})
    account = expost.Ledger(tmp_path / "l.db").account("t", epsilon=3.0, delta=1e-5)
    model = expost.LogisticRegression(domain=domain, epsilon=0.5, random_state=0).fit(table, account=account)
    assert len(account.entries) == 3
    whole = expost.compose([*(one.plan for one in domain.choices), model.plan_])
    assert account.spent.epsilon_at(1e-5) == pytest.approx(whole.epsilon_at(1e-5), rel=1e-9)


def test_03_a_seeded_choice_voids_what_it_was_made_for(table):
    domain = chosen(table, random_state=1)
    published = expost.LogisticRegression(domain=domain).fit(table)
    assert published.insecure_
    assert published.publication_.insecure is not None
    content = json.loads(published.publication_.to_json())
    content["insecure"] = None
    with pytest.raises(PublicationError, match="`insecure` must be given with a seeded choice"):
        expost.Publication.from_json(sealed(content))


def test_04_choices_with_one_id_are_refused_and_the_dearer_counts(table):
    domain = chosen(table)
    cheap = domain.choices[0].model_copy(update={"epsilon": 0.01})
    both = {**domain.model_dump(), "choices": (domain.choices[0].model_dump(), cheap.model_dump())}
    with pytest.raises(ValueError, match="different ids"):
        expost.Domain.model_validate(both)
    for order in (both["choices"], both["choices"][::-1]):
        choices = [type(cheap).model_validate(one) for one in order]
        assert chosen_cost(choices) == domain.choices[0].epsilon


def test_04b_a_publication_s_hash_is_no_choice_that_was_counted(table, tmp_path):
    domain = chosen(table)
    account = expost.Ledger(tmp_path / "l.db").account("t", epsilon=3.0, delta=1e-5)
    account.finish(account.enter(expost.calibrate(epsilon=0.5, delta=1e-6)), sha256=domain.choices[0].id)
    account.enter_all(noted_choices(domain.choices))
    assert len(account.entries) == 2


def test_05_entries_of_choices_have_the_time_before_the_table_was_read(table, tmp_path):
    began = datetime.now(UTC) - timedelta(hours=3)
    first, second = (
        expost.Ledger(tmp_path / "l.db").account(name, epsilon=3.0, delta=1e-5) for name in ("a", "b")
    )
    domain = chosen(table, account=first, began=began)
    second.enter_all(noted_choices(domain.choices), began=began)
    stated = began.isoformat(timespec="seconds")
    assert [one.time for one in (*first.entries, *second.entries)] == [stated, stated]


@pytest.mark.long
def test_06_exact_losses_know_how_many_rows_a_person_may_have(table, tmp_path):
    domain, rows = tmp_path / "d.toml", tmp_path / "t.csv"
    domain.write_text(chosen(table, f"{OF_PEOPLE}rows_per_person = 5\n{ASKED}").to_toml(), encoding="utf-8")
    table.to_csv(rows, index=False)
    file, figures = tmp_path / "p.json", [tmp_path / f"private-{name}.csv" for name in ("fit", "again")]
    assert run("fit", domain, rows, "-o", file, "--losses", figures[0]).exit_code == 0
    assert run("losses", file, rows, "--person", "id", "-o", figures[1]).exit_code == 0
    assert figures[0].read_text(encoding="utf-8") == figures[1].read_text(encoding="utf-8")


def test_07_a_column_that_was_chosen_twice_has_the_losses_of_both(table):
    first = chosen(table).choices[0]
    second = first.model_copy(update={"missing": 60_000.0, "place": 12, "id": "1" * 64})
    each = [choice_losses(table, [one]) for one in (first, second)]
    np.testing.assert_allclose(choice_losses(table, [first, second]), sum(each), rtol=1e-12)
    assert np.max(np.abs(each[1])) > 1e-6


@pytest.mark.long
def test_08_a_share_of_the_promise_is_one_of_all_that_was_promised(table, tmp_path):
    domain, rows, file = tmp_path / "d.toml", tmp_path / "t.csv", tmp_path / "p.json"
    domain.write_text(chosen(table).to_toml(), encoding="utf-8")
    table.to_csv(rows, index=False)
    assert run("fit", domain, rows, "-o", file).exit_code == 0
    said = json.loads(run("losses", file, rows, "--json").stdout)
    promised = json.loads(run("bounds", file, rows, "--json").stdout)["promised"]
    assert said["epsilon"] == promised > 1.0


def test_08b_the_terms_of_a_frame_add_up_to_its_loss(table):
    model = expost.LogisticRegression(domain=chosen(table), random_state=0).fit(table)
    frame = model.ex_post_losses(table, return_terms=True).to_frame()
    np.testing.assert_allclose(abs(frame.drop(columns="loss").sum(axis=1)), frame["loss"], rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "epsilon", "words"),
    [
        (("missing = 500", "missing = 500\nlevels = [0.0005, 0.9]"), "1", "at most three decimals"),
        (("steps = 20", "steps = true"), "1", "needs a public `grid`"),
        (("to = 100000", f"to = 1{'0' * 400}"), "1", "needs a public `grid`"),
        (("low = 0", f"low = -1{'0' * 400}"), "1", "must be a number outside its `grid`"),
        (("", ""), "200", "at most 50 for each choice"),
    ],
)
def test_09_what_is_no_grid_level_or_budget_is_refused_in_a_sentence(tmp_path, change, epsilon, words):
    domain, rows = tmp_path / "d.toml", tmp_path / "t.csv"
    domain.write_text(ASKED.replace(*change, 1), encoding="utf-8")
    rows.write_text("income,ill\n1,no\n", encoding="utf-8")
    out = tmp_path / "out.toml"
    assert refused(run("choose", domain, rows, "-o", out, "--epsilon", epsilon), words)
    assert not out.exists()


@pytest.mark.parametrize("option", [("--epsilon", "1e-320"), ("--l2", "1e-300"), ("--l2", "1e-160")])
@pytest.mark.parametrize("person", ["", OF_PEOPLE])
def test_09b_numbers_at_the_edge_of_doubles_are_refused_at_once(tmp_path, option, person):
    domain = tmp_path / "d.toml"
    plain = ASKED.replace('"private"', "100000").replace(
        "grid = { from = 1000, to = 100000, steps = 20 }\n", ""
    )
    domain.write_text(person + plain, encoding="utf-8")
    assert refused(run("plan", domain, *option), option[0].strip("-"))


def test_10_choices_that_cannot_be_written_are_said_to_be_spent(table, tmp_path, monkeypatch):
    domain, rows, book = tmp_path / "d.toml", tmp_path / "t.csv", tmp_path / "l.db"
    domain.write_text(ASKED, encoding="utf-8")
    table.to_csv(rows, index=False)
    account = expost.Ledger(book).account("t", epsilon=3.0, delta=1e-5)
    monkeypatch.setattr(AskedRanges, "resolved", _full_at_the_second_time(AskedRanges.resolved))
    counted = ("--ledger", book, "--account", "t")
    done = run("choose", domain, rows, "-o", tmp_path / "out.toml", *counted)
    said = " ".join(done.stderr.split())
    assert done.exit_code == 1
    assert "the ledger counts these choices all the same" in said
    assert "No space left" in said
    assert "Traceback" not in done.output
    assert len(account.entries) == 1
    assert not (tmp_path / "out.toml").exists()


def _full_at_the_second_time(resolved):
    asked: list[Path] = []

    def of(*arguments):
        asked.append(Path())
        if len(asked) > 1:
            raise OSError(28, "No space left on device")
        return resolved(*arguments)

    return of
