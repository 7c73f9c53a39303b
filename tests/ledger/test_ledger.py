"""A ledger cannot be overdrawn, forgets nothing, and refuses a file that is not what it wrote."""

import io
import math
import pickle
import shutil
import sqlite3

import pytest
from rich.console import Console

import expost
from expost.exceptions import BudgetError, LedgerError, ParameterError
from expost.ledger import Noted, storage
from expost.ledger.entries import histories
from expost.ledger.ledger import Account

CAP = {"epsilon": 3.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def plan():
    return expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-7)


@pytest.fixture
def ledger(tmp_path):
    return expost.Ledger(tmp_path / "ledger.db")


@pytest.fixture
def account(ledger):
    return ledger.account("patients", **CAP)


def fill(account, plan):
    """Enter a plan until it is refused; return how often it was entered."""
    for count in range(1000):
        try:
            account.enter(plan)
        except BudgetError:
            return count
    raise AssertionError("an account without a bottom")


@pytest.mark.long
def test_an_account_takes_what_the_composition_allows_and_no_more(account, plan):
    entered = fill(account, plan)
    assert entered > 3  # adding up would allow three
    assert (
        expost.compose([plan] * entered).delta_at(3.0)
        <= 1e-6
        < expost.compose([plan] * (entered + 1)).delta_at(3.0)
    )
    assert account.spent == expost.compose([plan] * entered)
    assert account.left == pytest.approx(3.0 - account.spent.epsilon_at(1e-6))


def test_the_first_fit_may_take_the_whole_cap(ledger):
    account = ledger.account("all at once", epsilon=1.0, delta=1e-6)
    whole = expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-6)
    account.enter(whole)
    with pytest.raises(BudgetError, match=r"has epsilon .* left of 1 at delta 1e-06.*Nothing was spent"):
        account.enter(whole)
    assert len(account.entries) == 1


def test_a_refusal_says_what_is_left_and_changes_nothing(account, ledger):
    before = ledger.sha256
    large = expost.calibrate(loss="logistic", epsilon=4.0, delta=1e-7)
    with pytest.raises(
        BudgetError, match=r"'patients' has epsilon 3 left of 3 .* epsilon 4 at delta 1e-07, it would"
    ):
        account.enter(large)
    with pytest.raises(BudgetError):
        account.check(large)
    assert ledger.sha256 == before
    assert account.left == 3.0


def test_a_loss_without_a_worst_case_fits_in_no_account(account):
    with pytest.raises(BudgetError, match="would have spent inf"):
        account.enter(expost.calibrate(loss="squared", sigma=1.0, l2=1.0))


@pytest.mark.long
def test_plans_of_all_kinds_are_entered_and_read_back(account):
    plans = [
        expost.calibrate(loss="logistic", epsilon=0.3, delta=1e-8),
        expost.calibrate(loss="pseudo_huber", epsilon=0.2, delta=1e-8),
        expost.calibrate_convex(expost.SmoothedNorm(1), epsilon=0.2, delta=1e-8),
    ]
    for plan in plans:
        account.enter(plan)
    assert account.spent == expost.compose(plans)
    assert [entry.plan["loss"] for entry in account.entries] == ["logistic", "pseudo_huber", "SmoothedNorm"]
    assert [entry.epsilon for entry in account.entries] == [0.3, 0.2, 0.2]


def test_entries_have_states_hashes_times_and_notes(account, plan):
    first = account.noted("model of 2024").enter(plan, note="LogisticRegression")
    second = account.enter(plan, note="LogisticRegression", insecure=True)
    account.finish(second, sha256="ab" * 32)
    one, two = account.entries
    assert (one.number, one.state, one.sha256, one.note) == (first, "unfinished", None, "model of 2024")
    assert (two.state, two.sha256, two.note, two.insecure) == (
        "finished",
        "ab" * 32,
        "LogisticRegression",
        True,
    )
    assert one.time.endswith("+00:00")
    with pytest.raises(ParameterError, match="`number`"):
        account.finish(second)


def test_entries_are_texts_that_a_table_can_show(account, plan):
    for note in (3, "a\nb", "x" * 1001, "\udc80"):
        with pytest.raises(ParameterError, match="`note`"):
            account.noted(note)
        with pytest.raises(ParameterError, match="`note`"):
            account.enter(plan, note=note)
    number = account.enter(plan)
    for sha256 in (3, "", "AB" * 32, "ab" * 31):
        with pytest.raises(ParameterError, match="`sha256`"):
            account.finish(number, sha256=sha256)
    assert [entry.state for entry in account.entries] == ["unfinished"]


def test_plans_that_are_entered_together_have_the_note_of_the_account(account, plan):
    pairs = [("one", expost.ChoicePlan(0.1, 5)), ("other", plan)]
    account.noted("model of 2024").enter_all(pairs)
    account.enter_all(pairs)
    assert [entry.note for entry in account.entries] == ["model of 2024"] * 2 + ["one", "other"]


def test_no_plans_cost_what_is_spent(account, plan):
    assert account.check() == 0.0
    account.enter(plan)
    assert account.enter_all([]) == []
    assert account.check() == account.spent.epsilon_at(account.delta)
    assert len(account.entries) == 1


def test_a_plan_with_an_id_is_entered_once_and_finished_at_once(account, plan):
    choice, name = expost.ChoicePlan(0.1, 5), "ab" * 32
    together = [Noted("choice", choice, name, insecure=True), Noted("fit", plan)]
    before = account.check(*together)
    first = account.enter_all(together)
    assert account.spent.epsilon_at(account.delta) == before
    second = account.enter_all(together)
    assert (first[0], first[1] < second[1]) == (second[0], True)
    assert account.check(Noted("again", choice, name)) == account.check()
    # The hash of a publication is the name of no choice.
    account.enter_all([Noted("published", plan, name)])
    found = [(entry.note, entry.state, entry.sha256, entry.insecure) for entry in account.entries]
    assert found == [
        ("choice", "finished", name, True),
        *[("fit", "unfinished", None, False)] * 2,
        ("published", "finished", name, False),
    ]
    with pytest.raises(ParameterError, match="`sha256`"):
        account.enter_all([Noted("choice", choice, "x")])


def test_an_account_keeps_its_cap(ledger, account):
    assert ledger.account("patients") == account == ledger.account("patients", **CAP)
    with pytest.raises(
        LedgerError, match="has a cap of epsilon 3 at delta 1e-06 and keeps it; got epsilon 4"
    ):
        ledger.account("patients", epsilon=4.0, delta=1e-6)
    ledger.account("pupils", epsilon=1.0, delta=1e-5)
    assert [found.name for found in ledger.accounts] == ["patients", "pupils"]


def test_accounts_do_not_spend_of_each_other(ledger, account, plan):
    other = ledger.account("pupils", epsilon=1.0, delta=1e-5)
    account.enter(plan)
    assert len(other.entries) == 0
    assert other.left == 1.0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"name": ""}, "`name`"),
        ({"name": "a\nb"}, "`name`"),
        ({"name": 3}, "`name`"),
        ({"name": "a", "epsilon": 0.0, "delta": 1e-6}, "`epsilon`"),
        ({"name": "a", "epsilon": 1.0}, "`delta`"),
        ({"name": "a", "epsilon": math.nan, "delta": 1e-6}, "`epsilon`"),
        ({"name": "a", "epsilon": math.inf, "delta": 1e-6}, "`epsilon`"),
        ({"name": "a", "epsilon": 1.0, "delta": math.nan}, "`delta`"),
        ({"name": "a", "epsilon": 1.0, "delta": 1e-12}, "`delta` must be at least 1e-10"),
    ],
)
def test_bad_arguments_are_refused(ledger, arguments, match):
    with pytest.raises(ParameterError, match=match):
        ledger.account(**arguments)
    assert not ledger.path.exists()


def test_what_does_not_exist_is_refused(ledger, account):
    with pytest.raises(LedgerError, match=r"has no account 'pupils'; it has 'patients'"):
        ledger.account("pupils")
    with pytest.raises(LedgerError, match="there is no ledger"):
        expost.Ledger(ledger.path.with_name("other.db")).account("patients")


def test_an_account_survives_pickling(account, plan):
    copy = pickle.loads(pickle.dumps(account))
    copy.enter(plan)
    assert copy == account
    assert len(account.entries) == 1


def change(path, sql):
    connection = sqlite3.connect(path)
    with connection:
        connection.executescript(sql)
    connection.close()


TAMPERED = {
    "a cheaper entry": "UPDATE events SET body = replace(body, '\"epsilon\": 1.0', '\"epsilon\": 0.1')",
    "a new note": "UPDATE events SET body = replace(body, 'secret', 'public') WHERE number = 2",
    "an entry less": "DELETE FROM events WHERE number = 2",
    "the end cut off": "DELETE FROM events WHERE number = 3",
    "two exchanged": "UPDATE events SET number = 10 WHERE number = 2;"
    "UPDATE events SET number = 2 WHERE number = 3; UPDATE events SET number = 3 WHERE number = 10",
    "no head": "DELETE FROM head",
    "no table": "DROP TABLE events",
    "another head": "UPDATE head SET sha256 = 'x'",
    "a trigger that forgets": "CREATE TRIGGER forget AFTER INSERT ON events BEGIN "
    "DELETE FROM events WHERE number = NEW.number; END",
    "a view for a table": "ALTER TABLE events RENAME TO kept; CREATE VIEW events AS SELECT * FROM kept",
    "a number for a text": "UPDATE events SET body = 7 WHERE number = 3",
}


@pytest.mark.parametrize("sql", TAMPERED.values(), ids=TAMPERED)
def test_a_changed_file_is_refused_with_one_sentence(ledger, account, plan, sql):
    account.enter(plan, note="secret")
    account.enter(plan)
    change(ledger.path, sql)
    for attempt in (lambda: account.enter(plan), lambda: account.entries, lambda: ledger.accounts):
        with pytest.raises(
            LedgerError, match=r"was changed by something else than expost: [^\n]*Restore a copy"
        ):
            attempt()


def test_a_chain_made_again_is_still_refused_where_it_makes_no_sense(ledger, account, plan):
    """Whoever computes all hashes again is not noticed, but an entry must still be one."""
    number = account.enter(plan)
    event = storage.read(ledger.path)[0][number - 1]
    bodies = (
        event | {"adding": [[0.0, -0.5]]},
        event | {"removing": [["a", 0.5]]},
        event | {"epsilon": "one"},
        {"kind": "entry", "account": "patients"},
        {"kind": "account", "name": "pupils", "epsilon": -1.0, "delta": 0.1},
        {"kind": "account", "name": "patients", "epsilon": 300.0, "delta": 0.1},
        event | {"account": "nobody"},
        event | {"plan": event["plan"] | {"unit": "person"}},
        event | {"plan": event["plan"] | {"unit": "household"}},
        {"kind": "finished", "entry": 99, "sha256": None},
        {"kind": "refund", "entry": number},
        {},
    )
    for place, body in enumerate(bodies):
        forged = ledger.path.with_name(f"forged-{place}.db")
        shutil.copy(ledger.path, forged)
        with storage.transaction(forged) as chain:
            chain.append(body)
        with pytest.raises(LedgerError, match="has an event that cannot be read"):
            _ = Account(forged, "patients", 3.0, 1e-6).entries


def test_a_newer_file_is_refused(ledger, account, plan):
    change(ledger.path, f"PRAGMA user_version = {storage.VERSION + 1}")
    with pytest.raises(LedgerError, match=r"newer expost; upgrade with pip install --upgrade expost\.$"):
        account.enter(plan)


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\x00" * 5000])
def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        expost.Ledger(path).account("patients", **CAP)
    assert path.read_bytes() == content


def test_another_database_is_refused(tmp_path):
    change(tmp_path / "ledger.db", "CREATE TABLE events (number INTEGER)")
    with pytest.raises(LedgerError, match="is not a ledger of expost"):
        expost.Ledger(tmp_path / "ledger.db").account("patients", **CAP)


def outcome(account):
    try:
        return account.entries
    except LedgerError as error:
        return str(error)


def test_a_flipped_bit_is_noticed_or_harmless(ledger, account, plan):
    account.enter(plan)
    intact, whole = account.entries, ledger.path.read_bytes()
    noticed = 0
    for place in range(0, len(whole), 997):
        ledger.path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = outcome(account)
        noticed += found != intact
        assert found == intact or (isinstance(found, str) and "\n" not in found)
    assert noticed > 5
    ledger.path.write_bytes(whole)
    assert account.entries == intact


def test_another_ledger_in_the_same_place_is_noticed(ledger, account, plan, monkeypatch):
    ledger.path.unlink()
    monkeypatch.setattr(storage, "_seen", {})  # as in another process
    expost.Ledger(ledger.path).account("patients", epsilon=9.0, delta=1e-6)
    with pytest.raises(LedgerError, match="with a cap of epsilon 3 at delta 1e-06"):
        account.enter(plan)


def test_an_older_copy_is_noticed_by_who_has_seen_more(ledger, account, plan, tmp_path):
    account.enter(plan)
    shutil.copy(ledger.path, tmp_path / "copy.db")
    account.enter(plan)
    shutil.copy(tmp_path / "copy.db", ledger.path)
    for attempt in (lambda: account.enter(plan), lambda: account.left, lambda: ledger.accounts):
        with pytest.raises(LedgerError, match="fewer events than this process has seen"):
            attempt()
    # The same number of events, and others.
    forged = expost.Ledger(tmp_path / "copy.db").account("patients")
    forged.enter(expost.calibrate(loss="logistic", epsilon=0.01, delta=1e-8))
    shutil.copy(tmp_path / "copy.db", ledger.path)
    with pytest.raises(LedgerError, match="other events than this process has seen"):
        account.enter(plan)
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="there is no ledger"):
        account.enter(plan)
    with pytest.raises(LedgerError, match="it is gone, and this process has seen events in it"):
        ledger.account("patients", **CAP)
    assert not ledger.path.exists()


def test_a_symbolic_link_is_the_same_ledger(ledger, account, plan, tmp_path):
    (tmp_path / "link.db").symlink_to(ledger.path)
    expost.Ledger(tmp_path / "link.db").account("patients").enter(plan)
    assert len(account.entries) == 1


def test_two_that_make_the_ledger_at_once_share_it(ledger, monkeypatch):
    """The file appears whole, and the one who comes second uses it."""
    storage.create(ledger.path)
    before = ledger.path.read_bytes()
    storage.create(ledger.path)
    assert ledger.path.read_bytes() == before
    assert [file.name for file in ledger.path.parent.iterdir()] == ["ledger.db"]


def test_a_full_disk_is_refused_and_nothing_is_entered(ledger, account, plan, monkeypatch):
    account.enter(plan)
    real = sqlite3.connect

    def full(*arguments, **options):
        connection = real(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 1")  # no page more than there are
        return connection

    before = ledger.sha256
    monkeypatch.setattr(storage.sqlite3, "connect", full)
    with pytest.raises(LedgerError, match=r"cannot write .*full\. Nothing was entered; free some space"):
        account.enter(plan)
    monkeypatch.undo()
    assert ledger.sha256 == before


def test_a_ledger_that_may_not_be_written_is_refused(tmp_path):
    with pytest.raises(LedgerError, match=r"cannot write .*Nothing was entered"):
        expost.Ledger(tmp_path / "no" / "folder.db").account("patients", **CAP)


def test_a_ledger_in_use_is_waited_for_and_then_refused(ledger, account, plan, monkeypatch):
    monkeypatch.setattr(storage, "_PATIENCE", 0.05)
    with storage.transaction(ledger.path):
        with pytest.raises(LedgerError, match="is in use by other processes"):
            account.enter(plan)
        assert account.entries == ()  # reading goes on


def test_an_account_and_a_ledger_are_shown_as_tables(ledger, account, plan):
    account.noted("<b>2024</b>").enter(plan, insecure=True)
    assert "INSECURE: &lt;b" in account._repr_html_()
    assert "&lt;b&gt;2024" in account._repr_html_()
    assert "patients" in ledger._repr_html_()
    assert repr(ledger) == f"Ledger({str(ledger.path)!r})"
    shown = io.StringIO()
    Console(file=shown, width=120, color_system=None).print(account, ledger)
    assert "Account patients (public)" in shown.getvalue()
    assert "INSECURE: <b>2024</b>" in shown.getvalue()
    assert "Ledger (public)" in shown.getvalue()


def test_what_is_no_plan_is_not_entered(account):
    for use in (account.check, account.enter):
        with pytest.raises(ParameterError, match=r"must be a plan of `expost\.calibrate`; got plan='dict'"):
            use({"epsilon": 1.0})
    assert account.entries == ()


def test_two_that_open_an_account_at_once_share_it(ledger, monkeypatch):
    """The second finds the account of the first when its turn comes, and does not open another."""
    monkeypatch.setattr("expost.ledger.ledger.read", lambda path: ((), ""))
    first = ledger.account("clinic", epsilon=2.0, delta=1e-6)
    assert ledger.account("clinic", epsilon=2.0, delta=1e-6) == first
    monkeypatch.undo()
    assert [one.name for one in ledger.accounts].count("clinic") == 1


def test_what_is_left_never_falls_below_zero(ledger, plan):
    account = ledger.account("exact", epsilon=1.0, delta=1e-7)
    account.enter(plan)
    assert 0.0 <= account.left < 1e-3
    assert not math.isnan(account.left)


def test_a_number_that_equals_that_of_an_entry_finishes_it(account, plan):
    """Written as it was given, 2.0 would make the file unreadable."""
    number = account.enter(plan)
    account.finish(float(number))
    assert [entry.state for entry in account.entries] == ["finished"]


def test_an_account_has_one_unit(ledger, plan):
    people = expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-7, unit="person")
    for first, second, each in ((plan, people, "row"), (people, plan, "person")):
        account = ledger.account(each, **CAP)
        account.check(second)  # nothing was entered yet
        account.enter(first)
        for attempt in (account.check, account.enter):
            with pytest.raises(
                LedgerError,
                match=f"'{each}' counts what publications cost each {each}, and this plan is made with "
                f"unit='{second.unit}'.*Nothing was spent",
            ):
                attempt(second)
        account.enter(first)
        assert [entry.unit for entry in account.entries] == [each, each]
        assert account.spent == expost.compose([first, first])
        assert account.spent.unit == each
        assert ("for each person with all of her rows" in account._repr_html_()) == (each == "person")


def test_what_rows_spend_is_written_as_before(ledger, account, plan):
    """A ledger from before there were people reads the same, and gets the same events."""
    account.enter(plan)
    assert "unit" not in storage.read(ledger.path)[0][-1]["plan"]


def test_an_adaptive_account_adds_up_at_one_order(ledger):
    """Its opening event says so; a plan costs more there than in an account of plans that were fixed."""
    account = ledger.account("on the way", epsilon=1.7, delta=1e-6, adaptive=True)
    plan = expost.calibrate(loss="logistic", epsilon=0.5, delta=1e-7)
    assert storage.read(ledger.path)[0][-1]["order"] == account.order
    assert fill(account, plan) == 10
    assert account.adaptive
    assert account == ledger.account("on the way")
    assert expost.compose([plan] * 10).epsilon_at(1e-6) < account.spent.epsilon_at(1e-6) <= 1.7
    assert account.left == pytest.approx(1.7 - account.spent.epsilon_at(1e-6))
    assert "adaptive: plans may be chosen" in account._repr_html_()
    fixed = ledger.account("fixed", **CAP)
    assert "order" not in storage.read(ledger.path)[0][-1]
    assert not fixed.adaptive
    with pytest.raises(LedgerError, match="'fixed' is not adaptive"):
        ledger.account("fixed", adaptive=True)


def test_entries_from_before_there_were_orders_are_read(ledger, account, plan):
    account.enter(plan)
    events = storage.read(ledger.path)[0]
    old = [{k: v for k, v in event.items() if not k.endswith("_orders")} for event in events]
    (entry,) = histories(old, ledger.path)["patients"].entries
    assert entry.curve.adding == account.entries[0].curve.adding
    assert entry.curve.adding_orders == ()
