"""Ranges that nobody knows: chosen by a command, paid for, and counted in every figure."""

import csv
import json

import numpy as np
import pytest
from ward import DOMAIN, NAMES, patients, refused, run, write_csv

import expost
from expost.data.ranges import AskedRanges, choice_losses
from expost.exceptions import ParameterError
from expost.ledger import Account, Noted

PRIVATE = DOMAIN.replace(
    "low = 0.0\nhigh = 100.0", 'low = "private"\nhigh = "private"\ngrid = { from = 0, to = 200, steps = 40 }'
)


@pytest.fixture
def files(tmp_path):
    domain = tmp_path / "domain.toml"
    domain.write_text(PRIVATE)
    return tmp_path, domain, write_csv(tmp_path / "table.csv", patients())


def test_from_a_private_range_to_figures_that_count_it(files):
    folder, domain, table = files
    chosen, file, book = folder / "chosen.toml", folder / "p.json", folder / "l.db"
    assert refused(run("fit", domain, table, "-o", file), "expost choose")
    assert run("ledger", book, "--open", "t", "--epsilon", "3", "--delta", "1e-6").exit_code == 0
    counted = ("--ledger", book, "--account", "t")
    checked = run("check", domain, table)  # the ends of the grid stand in for the range
    assert checked.exit_code == 0, checked.output
    assert "Beyond" not in checked.stdout
    assert f"Next: expost choose {domain} {table} -o chosen.toml" in checked.stdout
    done = run("choose", domain, table, "-o", chosen, "--epsilon", "0.4", "--json", *counted)
    assert done.exit_code == 0, done.output
    # 2 · 0.99 / 0.2 · log(41 / 0.05) people, of whom there are 100 times as many.
    assert "each bound within 66 people of the best candidate, 95% of the time" in done.stderr
    assert "With fewer than about 6,600 people that can be far too wide" in done.stderr
    told = json.loads(done.stdout)
    assert [one["end"] for one in told["choices"]] == ["low", "high"]
    read = expost.Domain.load(chosen)
    assert read.features[0].low < read.features[0].high
    assert [one.epsilon for one in read.choices] == [0.2, 0.2]
    fitted = run("fit", chosen, table, "-o", file, *counted, "--losses", folder / "private.csv")
    assert fitted.exit_code == 0, fitted.output
    assert "were chosen from the table for ε = 0.4" in " ".join(fitted.output.split())
    account = expost.Ledger(book).account("t")
    assert [entry.epsilon for entry in account.entries] == [0.2, 0.2, 1.0]  # and once only
    publication = expost.Publication.load(file)
    X = {name: [row[place] for row in patients()] for place, name in enumerate(["age", "ward", "smoker"])}
    y = [row[3] for row in patients()]
    found = publication.bounds(X, y, member=True)
    np.testing.assert_allclose(found.total, found.upper + 0.4, rtol=1e-12)
    told = run("bounds", file, table, "--json")
    assert json.loads(told.stdout)["promised"] < 1.4
    assert "Every total counts 0.4" in run("bounds", file, table).output
    # The exact losses have those of the choices in them.
    with open(folder / "private.csv", newline="") as lines:
        exact = np.array([float(line[-1]) for line in csv.reader(lines) if line[-1][:1].isdigit()])
    each = choice_losses({"age": X["age"]}, read.choices)
    assert np.all(np.abs(each) <= 0.4)
    again = run("losses", file, table, "--json")
    np.testing.assert_array_equal(json.loads(again.stdout)["losses"], exact)
    assert np.all(exact <= found.total + 1e-12)


def test_a_ledger_counts_choices_that_were_made_without_it(files):
    folder, domain, table = files
    chosen, book = folder / "chosen.toml", folder / "l.db"
    assert run("choose", domain, table, "-o", chosen).exit_code == 0
    assert refused(run("choose", domain, table, "-o", chosen), "exists")
    account = expost.Ledger(book).account("t", epsilon=3.0, delta=1e-6)
    frame = {name: [row[place] for row in patients()] for place, name in enumerate(["age", "ward", "smoker"])}
    model = expost.LogisticRegression(domain=expost.Domain.load(chosen), random_state=0)
    y = [row[3] for row in patients()]
    for _ in range(2):
        model.fit(frame, y, account=account)
    assert [entry.epsilon for entry in account.entries] == [0.05, 0.05, 1.0, 1.0]
    terms = model.ex_post_losses(frame, y, return_terms=True)
    np.testing.assert_array_equal(model.ex_post_losses(frame, y), np.abs(terms.signed))
    np.testing.assert_array_equal(terms.choices, choice_losses(frame, model.domain.choices))
    homes = np.arange(len(y)) // 2
    family = model.ex_post_losses(frame, y, groups=homes, return_terms=True)
    np.testing.assert_array_equal(family.choices, choice_losses(frame, model.domain.choices, person=homes))
    with pytest.raises(ParameterError, match="`member` must be True where ranges"):
        model.ex_post_losses(frame, y, member=False)
    first = model.publication_
    model.set_params(random_state=1).fit(frame, y, account=account)
    both = [first, model.publication_]
    alone = expost.total(both, frame, y) - 0.1  # once, though both have it
    sums = [one.bounds(frame, y).total for one in both]
    assert np.all(alone < sum(sums) - 0.2)
    assert np.all(expost.wallet(both, frame, y) > 0.1)


def test_a_choice_that_is_said_to_have_cost_more_than_its_entry_is_counted(files):
    """Whoever writes a larger price into the file gets figures that count it, and so does the ledger."""
    folder, domain, table = files
    chosen, book = folder / "chosen.toml", folder / "l.db"
    assert run("ledger", book, "--open", "t", "--epsilon", "9", "--delta", "1e-6").exit_code == 0
    counted = ("--ledger", book, "--account", "t")
    assert run("choose", domain, table, "-o", chosen, *counted).exit_code == 0
    text = chosen.read_text()
    assert text.count("epsilon = 0.05") == 2
    chosen.write_text(text.replace("epsilon = 0.05", "epsilon = 2.0"))
    for name in ("p.json", "q.json"):
        done = run("fit", chosen, table, "-o", folder / name, "--json", *counted)
        assert done.exit_code == 0, done.output
    account = expost.Ledger(book).account("t")
    assert [entry.epsilon for entry in account.entries] == [0.05, 0.05, 2.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize("command", ["plan", "rehearse"])
def test_what_comes_before_the_choice_takes_the_whole_grid(files, command):
    _, domain, _ = files
    done = run(command, domain, *(("--rows", "400", "--tables", "1") if command == "rehearse" else ()))
    assert done.exit_code == 0, done.output
    assert (
        "To be chosen, for a budget of its own: the range of age. Here it is the whole grid." in done.stderr
    )


def test_choices_that_another_process_counts_meanwhile_are_counted_once(files, monkeypatch):
    folder, domain, table = files
    chosen, book = folder / "chosen.toml", folder / "l.db"
    assert run("choose", domain, table, "-o", chosen).exit_code == 0
    account = expost.Ledger(book).account("t", epsilon=3.0, delta=1e-6)
    enter, choices = Account.enter_all, expost.Domain.load(chosen).choices

    def enter_after_another(self, noted, **options):
        enter(account, [Noted("theirs", one.plan, one.id) for one in choices])
        return enter(self, noted, **options)

    frame = {name: [row[place] for row in patients()] for place, name in enumerate(["age", "ward", "smoker"])}
    y = [row[3] for row in patients()]
    monkeypatch.setattr(Account, "enter_all", enter_after_another)
    expost.LogisticRegression(domain=expost.Domain.load(chosen), random_state=0).fit(
        frame, y, account=account
    )
    counted = ("--ledger", book, "--account", "t")
    said = run("fit", chosen, table, "-o", folder / "p.json", "--json", *counted)
    assert said.exit_code == 0, said.output
    assert [entry.epsilon for entry in account.entries] == [0.05, 0.05, 1.0, 1.0]


def test_what_a_fit_says_that_it_will_spend_has_its_choices(files):
    folder, domain, table = files
    chosen, book = folder / "chosen.toml", folder / "l.db"
    assert run("choose", domain, table, "-o", chosen, "--epsilon", "0.5").exit_code == 0
    account = expost.Ledger(book).account("t", epsilon=3.0, delta=1e-6)
    counted = ("--ledger", book, "--account", "t")
    said = run("fit", chosen, table, "-o", folder / "p.json", "--json", *counted)
    assert said.exit_code == 0, said.output
    after = json.loads(said.stdout)["spent_after"]
    assert after == account.spent.epsilon_at(1e-6) > 1.2
    assert f"{after:.4g} after this fit" in said.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("grid = { from = 0, to = 200, steps = 40 }", ""), "needs a public `grid`"),
        (
            ("{ from = 0, to = 200, steps = 40 }", "[3, 2, 1]"),
            "must be between 2 and 10,000 numbers that rise",
        ),
        (("{ from = 0, to = 200, steps = 40 }", "[3]"), "must be between 2 and 10,000 numbers that rise"),
        (("{ from = 0, to = 200, steps = 40 }", '["a", "b"]'), "needs a public `grid`"),
        (("{ from = 0, to = 200, steps = 40 }", "[0, nan]"), "needs a public `grid`"),
        (("steps = 40 }", "steps = 40 }\nlevels = [0.9, 0.1]"), "`levels` of 'age'"),
        (
            ('low = "private"', "low = 0"),
            "which starts at 0: let that start above 0, such as from = 5.",
        ),
        (
            ('high = "private"', "high = 200"),
            "which ends at 200: let that end below 200, such as to = 195.",
        ),
        (('low = "private"', "low = 250"), "let that start above 250."),
        (('low = "private"', 'low = "50"'), "outside its `grid`"),
        (('kind = "number"', 'kind = "date"'), "of the kind `number`, without `knots`"),
        (
            (
                'low = "private"\nhigh = "private"\ngrid = { from = 0, to = 200, steps = 40 }',
                "low = 0\nhigh = 9",
            ),
            "no choice",
        ),
    ],
)
def test_what_cannot_be_chosen_is_refused(files, change, words):
    folder, domain, table = files
    domain.write_text(PRIVATE.replace(*change))
    assert refused(run("choose", domain, table, "-o", folder / "chosen.toml"), words)
    assert not (folder / "chosen.toml").exists()


def test_budgets_accounts_and_cells_that_are_none_are_refused(files):
    folder, domain, table = files
    where = (domain, table, "-o", folder / "chosen.toml")
    assert refused(run("choose", *where, "--epsilon", "0"), "epsilon")
    assert refused(run("choose", *where, "--ledger", folder / "l.db"), "add --account: a ledger")
    assert refused(run("choose", domain, domain, "-o", folder / "chosen.toml"), "table")
    write_csv(table, [["x", *row[1:]] for row in patients()])
    assert refused(run("choose", *where), "Nothing was spent.")
    assert refused(run("choose", table, domain), "the domain file comes first")
    assert not (folder / "chosen.toml").exists()


def test_the_ledger_that_counts_choices_is_not_replaced_by_them(files):
    folder, domain, table = files
    book, link = folder / "l.db", folder / "link.toml"
    account = expost.Ledger(book).account("t", epsilon=3.0, delta=1e-6)
    link.symlink_to(book)
    for output in (book, link):
        done = run("choose", domain, table, "-o", output, "--force", "--ledger", book, "--account", "t")
        assert refused(done, "is an input of this command")
    assert account.entries == ()


@pytest.mark.parametrize("person", ["", 'person = "id"\n'])
def test_a_table_without_records_is_refused_and_spends_nothing(files, person):
    folder, domain, table = files
    domain.write_text(person + PRIVATE)
    write_csv(table, [], ["id", *NAMES])
    book = folder / "l.db"
    run("ledger", book, "--open", "t", "--epsilon", "3", "--delta", "1e-6")
    result = run("choose", domain, table, "-o", folder / "chosen.toml", "--ledger", book, "--account", "t")
    assert refused(result, "must have at least one row; got an empty one. Nothing was spent.")
    assert not (folder / "chosen.toml").exists()
    assert expost.Ledger(book).account("t").entries == ()


def test_ends_that_cross_are_put_in_order_and_defaults_are_moved_inside():
    asked = AskedRanges.from_toml(PRIVATE.replace("steps = 40 }", "steps = 40 }\nmissing = 180"), 0.1)
    low, high = asked.ends
    for places, limits in (((30, 10), (50.0, 150.0)), ((10, 10), (45.0, 55.0)), ((40, 40), (195.0, 200.0))):
        ends = [
            one.model_copy(update={"place": place}) for one, place in zip((low, high), places, strict=True)
        ]
        age = asked.resolved(ends).features[0]
        assert (age.low, age.high) == limits
        assert age.low <= age.missing <= age.high
