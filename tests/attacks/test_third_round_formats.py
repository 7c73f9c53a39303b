"""What the third round of attacks found in ledgers and in the format of publications, item by item.

Ledgers:       8a texts from a file in a terminal   8b deep and ambiguous JSON   8c curves that cost nothing
               8d clocks on private data            8e ledgers of before          8f any field, changed
               8g a curve without noise does not hide the others: tests/privacy/test_composition.py
Publications:  9a no precision                      9b one format                9c real arithmetic is said
               9d precisions of other plans
"""

import copy
import io
import json
import math
import pickle
import random
import shutil
import sqlite3
from datetime import UTC, datetime

import numpy as np
import pytest
from own_losses import LogCosh
from publications import KINDS, X, Y, document, published, signed, squared
from rich.console import Console
from rich.table import Table
from ward import run, ward

import expost
from expost._common.summary import Summary
from expost.cli.base import legible
from expost.data.encoding import Encoded
from expost.exceptions import LedgerError, PublicationError
from expost.ledger import storage
from expost.ledger.ledger import Account
from expost.page.numbers import payload
from expost.privacy.profile_curve import ProfileCurve

CAP = {"epsilon": 3.0, "delta": 1e-6}
ESCAPES = "\x1b]0;owned\x07\x1b[2J"
FREE = [[0.0, 0.0]]


@pytest.fixture(scope="module")
def plan():
    return expost.calibrate(loss="logistic", epsilon=1.0, delta=1e-7)


@pytest.fixture(scope="module")
def honest(plan, tmp_path_factory):
    """A ledger of an account, a finished entry and an unfinished one."""
    account = expost.Ledger(tmp_path_factory.mktemp("honest") / "ledger.db").account("patients", **CAP)
    account.finish(account.noted("model of 2024").enter(plan), sha256="ab" * 32)
    account.enter(plan)
    return account


@pytest.fixture
def bodies(honest):
    return [copy.deepcopy(event) for event in storage.read(honest.path)[0]]


def chained(path, texts):
    """A ledger with these events, all hashes right: what whoever has the file can make of it."""
    storage.create(path)
    connection, last = sqlite3.connect(path), ""
    with connection:
        for number, text in enumerate(texts, start=1):
            last = storage._link(last, text)
            connection.execute("INSERT INTO events VALUES (?, ?, ?)", (number, text, last))
        connection.execute("UPDATE head SET number = ?, sha256 = ?", (len(texts), last))
    connection.close()
    return path


def forged(path, bodies):
    return chained(path, [json.dumps(body, sort_keys=True) for body in bodies])


def refused(path):
    """The one sentence with which Python and the command line refuse a ledger."""
    with pytest.raises(LedgerError) as found:
        _ = Account(path, "patients", **CAP).entries
    sentence = str(found.value)
    ended = run("ledger", path)
    assert ended.exit_code == 1
    assert "Traceback" not in ended.output
    assert sentence.isprintable()
    assert " ".join(ended.output.split()).endswith(" ".join(sentence.split()))
    return sentence


# Ledgers


@pytest.mark.parametrize("hostile", [ESCAPES, "[/x]", "[red]2026[/red]", "2026-01-01T00:00:00+00:00\n"])
@pytest.mark.parametrize("field", ["time", "sha256"])
def test_08a_times_and_hashes_of_a_file_are_times_and_hashes(tmp_path, bodies, field, hostile):
    for body in bodies:
        if field in body:
            body[field] = hostile
    assert "cannot be read" in refused(forged(tmp_path / "l.db", bodies))


def test_08a_names_and_notes_of_a_file_are_printable(tmp_path, bodies):
    for kind, field in (("account", "name"), ("entry", "note"), ("entry", "account")):
        changed = copy.deepcopy(bodies)
        next(body for body in changed if body["kind"] == kind)[field] = ESCAPES
        assert "cannot be read" in refused(forged(tmp_path / f"{kind}-{field}.db", changed))


def test_08a_markup_in_a_ledger_is_shown_as_it_is(tmp_path, plan):
    account = expost.Ledger(tmp_path / "l.db").account("[/x] :bomb:", **CAP)
    account.noted("[bold]a[/bold] [/x] \\[b] :bomb:").enter(plan)
    ended = run("ledger", account.path)
    assert ended.exit_code == 0
    assert "[/x] :bomb:: ε = 3" in ended.output
    assert all(word in ended.output.split() for word in ("[bold]a[/bold]", "[/x]", "\\[b]", ":bomb:"))


def test_08a_every_cell_of_every_table_is_escaped():
    """Titles, headings, cells, notes and alarms, in the tables of the library; cells of the command line."""
    hostile = f"[/x]{ESCAPES}"
    for figures in (True, False):
        shown = io.StringIO()
        summary = Summary(hostile, [(hostile, hostile)], (hostile, hostile), [hostile], hostile, figures)
        table = Table(hostile and legible(hostile))
        table.add_row(legible(hostile))
        Console(file=shown, width=200, emoji=False).print(summary.terminal(), table)
        assert "\x1b" not in shown.getvalue()
        assert "\x07" not in shown.getvalue()
        assert shown.getvalue().count("[/x]\\x1b]0;owned\\x07\\x1b[2J") >= 8
        assert "\x1b" not in summary.html()


def test_08b_deep_json_is_refused_with_a_sentence(tmp_path, bodies):
    texts = [json.dumps(body) for body in bodies]
    deep = texts[1].replace('"plan": {', '"plan": {"deep": ' + "[" * 100_000 + "]" * 100_000 + ", ")
    assert "event 2 is not what was written" in refused(chained(tmp_path / "l.db", [texts[0], deep]))


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "account", "name": "patients", "name": "x", "epsilon": 3.0, "delta": 1e-6, "time": "%s"}',
        '{"kind": "account", "name": "patients", "epsilon": NaN, "delta": 1e-6, "time": "%s"}',
        '{"kind": "account", "name": "patients", "epsilon": 1e999, "delta": 1e-6, "time": "%s"}',
        '{"kind": "account", "name": "patients", "epsilon": 3%s, "delta": 1e-6}' % ("0" * 5000),
        '["account"]',
        '"account"',
        "",
        "{",
    ],
)
def test_08b_ambiguous_json_is_refused_with_a_sentence(tmp_path, text):
    text = text.replace("%s", "2026-01-01T00:00:00+00:00")
    assert "event 1 is not what was written" in refused(chained(tmp_path / "l.db", [text]))


def test_08b_bytes_that_are_no_text_are_refused_with_a_sentence(tmp_path, bodies):
    path = forged(tmp_path / "l.db", bodies)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE events SET body = CAST(x'ff80' AS TEXT) WHERE number = 1")
    connection.close()
    assert "was changed by something else" in refused(path)


def curves(plan):
    """Curves that are not what a plan of ε = 1 costs."""
    curve = ProfileCurve.of(plan)
    half = ProfileCurve.of(expost.calibrate(loss="logistic", epsilon=0.5, delta=1e-7))
    double = ProfileCurve.of(expost.calibrate(loss="logistic", epsilon=2.0, delta=1e-7))
    bent = [list(knot) for knot in curve.adding]
    bent[1][1] = 0.5 * (bent[0][1] + bent[1][1])
    bent[2][1] = bent[1][1] * (1.0 - 1e-9)
    return {
        "free": (FREE, FREE),
        "nearly free": ([[0.0, 1e-9], [1.0, 0.0]], [[0.0, 1e-9]]),
        "half": (half.adding, half.removing),
        "double": (double.adding, double.removing),
        "none": ([[0.0, 1.0]], [[0.0, 1.0]]),
        "not convex": (bent, curve.removing),
        "empty": ([], []),
    }


@pytest.mark.long
def test_08c_a_curve_says_what_the_entry_states(tmp_path, plan, bodies):
    for place, (adding, removing) in enumerate(curves(plan).values()):
        changed = copy.deepcopy(bodies)
        changed[1] |= {"adding": adding, "removing": removing}
        assert "cannot be read" in refused(forged(tmp_path / f"{place}.db", changed))


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.5},
        {"epsilon": 1.5},
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": True},
        {"delta": 1e-6},
        {"delta": 1e-8},
        {"delta": 0.0},
        {"plan": {}},
        {"plan": {"epsilon": 0.5, "delta": 1e-7}},
        {"plan": {"epsilon": 1.0, "delta": 1e-6}},
        {"plan": {"epsilon": "1", "delta": 1e-7}},
        {"refund": 1.0},
    ],
)
def test_08c_a_stated_budget_is_that_of_curve_and_plan(tmp_path, bodies, changes):
    bodies[1] |= changes
    assert "cannot be read" in refused(forged(tmp_path / "l.db", bodies))


@pytest.mark.long
@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0.01, "delta": 1e-9},
        {"epsilon": 2.5, "delta": 1e-8, "report": "adaptive"},
        {"epsilon": 0.1, "delta": 0.1},
        pytest.param({"epsilon": 1e-3, "delta": 1e-2}, marks=pytest.mark.slow),
        {"epsilon": 1.0, "delta": 1e-7, "calibration": "kifer2012"},
        pytest.param({"epsilon": 1e-4, "delta": 0.01, "calibration": "kifer2012"}, marks=pytest.mark.slow),
        {"sigma": 1e9, "l2": 1e9, "delta": 1e-6},
        pytest.param({"sigma": 10.0, "l2": 3.0, "delta": 1e-8}, marks=pytest.mark.slow),
        {"epsilon": 0.7, "delta": 1e-7, "loss": LogCosh(2.0)},
        {"epsilon": 0.7, "delta": 1e-7, "loss": expost.SoftmaxLoss(3)},
    ],
)
def test_08c_honest_entries_of_every_kind_are_read(tmp_path, parameters):
    """The classical recipe and a large δ too, whose certificates cost less than the plans promise."""
    made = expost.calibrate(**({"loss": "logistic"} | parameters))
    account = expost.Ledger(tmp_path / "l.db").account("patients", epsilon=30.0, delta=0.5)
    account.enter(made)
    (entry,) = account.entries
    certified = ProfileCurve.of(made).epsilon(made.delta)
    assert entry.delta == made.delta
    assert certified <= entry.epsilon <= min(1.01 * certified, made.epsilon)
    if made.calibration == "tight" and made.delta < 1e-3:
        assert entry.epsilon == made.epsilon


def test_08d_a_ledger_does_not_say_when_a_fit_finished(tmp_path, honest, monkeypatch):
    kinds = {event["kind"]: set(event) for event in storage.read(honest.path)[0]}
    assert kinds["finished"] == {"kind", "entry", "sha256"}


@pytest.mark.long
def test_08d_the_time_of_an_entry_is_before_the_table_is_read(tmp_path, monkeypatch):
    account = expost.Ledger(tmp_path / "l.db").account("patients", **CAP)

    class Clock(datetime):
        year_now = 2031

        @classmethod
        def now(cls, zone=None):
            return datetime(cls.year_now, 5, 6, 7, 8, 9, tzinfo=UTC)

    read = Encoded.checked_for

    def slow(*arguments):
        """Reading a table takes years."""
        Clock.year_now = 2040
        return read(*arguments)

    for module in ("estimators.planned", "cli.fit", "ledger.ledger"):
        monkeypatch.setattr(f"expost.{module}.datetime", Clock)
    monkeypatch.setattr(Encoded, "checked_for", slow)
    X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 50), np.array([1, 0] * 50)
    model = expost.LogisticRegression(epsilon=0.5, delta=1e-8, norm=1.0, classes=[0, 1])
    model.fit(X, y, account=account)
    assert Clock.year_now == 2040
    Clock.year_now = 2032
    domain, table = ward(tmp_path)
    options = ("--epsilon", "0.5", "--delta", "1e-8", "--ledger", account.path, "--account", "patients")
    ended = run("fit", domain, table, "-o", tmp_path / "p.json", *options)
    assert ended.exit_code == 0, ended.output
    assert Clock.year_now == 2040
    times = ["2031-05-06T07:08:09+00:00", "2032-05-06T07:08:09+00:00"]
    assert [entry.time for entry in account.entries] == times


def test_08e_a_ledger_of_before_is_refused_with_a_sentence(honest, tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(honest.path, path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert "was written by an expost that was never released. Open a new ledger" in refused(path)


def mutants(value, seed):
    """Values that may stand in a file in the place of this one."""
    chance = random.Random(seed)
    yield from (None, True, -1, 0, 0.5, 2**70, 1e308, "", "x", ESCAPES, "[/x]", "\ud800", [], {}, FREE)
    if isinstance(value, str):
        yield value[:-1]
        yield value + "\n"
    if isinstance(value, float):
        yield from (-value, value * 10 ** chance.uniform(-3, 3), math.nextafter(value, 2.0))
    if isinstance(value, list):
        yield value[:-1]
        yield value[::-1]
        place = chance.randrange(len(value))
        yield [*value[:place], [chance.uniform(0, 5), chance.random()], *value[place + 1 :]]
        yield [[epsilon, delta * 0.5] for epsilon, delta in value]


def what_is_spent(path):
    """What an account has spent; infinite where the ledger is refused with one sentence."""
    found = Account(path, "patients", **CAP)
    try:
        spent = found.spent.epsilon_at(1e-6)
    except LedgerError as error:
        return math.inf if str(error).isprintable() else -math.inf
    assert found._summary().terminal().row_count == 2
    return spent


@pytest.mark.long
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_08f_every_field_that_is_changed_ends_in_a_sentence_or_costs_no_less(tmp_path, honest, bodies, every):
    """What was spent never falls, whatever one field says; each so many changes are tried."""
    spent, seen, read = honest.spent.epsilon_at(1e-6), 0, 0
    fields = [(place, name) for place, body in enumerate(bodies) for name in body]
    fields += [(1, "plan", name) for name in bodies[1]["plan"]]
    for seed, (place, *path) in enumerate(fields):
        value = bodies[place]
        for name in path:
            value = value[name]
        for number, mutant in list(enumerate([*mutants(value, seed), ...]))[seed % every :: every]:
            changed = copy.deepcopy(bodies)
            inner = changed[place]
            for name in path[:-1]:
                inner = inner[name]
            if mutant is ...:
                del inner[path[-1]]
            else:
                inner[path[-1]] = mutant
            file = forged(tmp_path / f"{seed}-{number}.db", changed)
            found = what_is_spent(file)
            assert found >= spent * (1.0 - 1e-9), (path, mutant)
            file.unlink()
            seen, read = seen + 1, read + math.isfinite(found)
    assert seen > 500 / every
    assert read < 0.4 * seen


# Publications


def softmax():
    model = expost.LogisticRegression(norm=1.0, classes=["a", "b", "c"], epsilon=2.0, random_state=5)
    return model.fit(X, np.array(["a", "b", "c"] * 20)).publication_


LIBRARY = {kind: lambda kind=kind: published(kind) for kind in KINDS} | {
    "squared": squared,
    "softmax": softmax,
    "hinge": lambda: expost.SmoothedHingeClassifier(norm=1.0, classes=[0, 1]).fit(X, Y).publication_,
    "huber": lambda: expost.LinearRegression(norm=1.0, outcome=(-1, 1)).fit(X, X[:, 0]).publication_,
}


def real(report="independent"):
    """A publication in real arithmetic: of a loss of one's own."""
    model = expost.GeneralizedLinearModel(loss=LogCosh(), norm=1.0, report=report)
    return model.fit(X, X[:, 0]).publication_


@pytest.mark.long
@pytest.mark.parametrize("made", LIBRARY.values(), ids=LIBRARY)
def test_09a_a_library_loss_without_its_precision_is_refused(made):
    publication = made()
    fields = json.loads(publication.to_json())
    assert expost.Publication.from_json(signed(fields)) == publication
    absent = {key: value for key, value in fields.items() if key != "precision"}
    for stripped, words in (
        (absent, "the field `precision` is missing"),
        (absent | {"precision": None}, "`precision` must be an object for the loss"),
        (absent | {"format": "expost-publication/1"}, "`format` must be 'expost-publication/2'"),
        (fields | {"format": "expost-publication/1"}, "`format` must be 'expost-publication/2'"),
    ):
        with pytest.raises(PublicationError, match=words):
            expost.Publication.from_json(signed(stripped))
        # A reader's own classes open no door.
        with pytest.raises(PublicationError, match=words):
            expost.Publication.from_json(signed(stripped), losses=[LogCosh])


@pytest.mark.parametrize("report", KINDS)
def test_09b_a_loss_of_ones_own_has_the_one_format_and_no_precision(report):
    publication = real(report)
    fields = json.loads(publication.to_json())
    assert (fields["format"], fields["precision"]) == ("expost-publication/2", None)
    again = expost.Publication.from_json(publication.to_json(), losses=[LogCosh])
    assert again == publication == pickle.loads(pickle.dumps(publication))
    assert again.release.plan.precision is None
    claimed = fields | {"precision": document(report)["precision"]}
    with pytest.raises(PublicationError, match="`precision` must be null for the loss log_cosh"):
        expost.Publication.from_json(signed(claimed), losses=[LogCosh])


def test_09c_real_arithmetic_is_said_where_a_publication_is_shown():
    printed, own = published(), real()
    assert "real arithmetic" in str(own)
    assert "real arithmetic" not in str(printed)
    for publication, words in ((own, "real: rounding is not counted"), (printed, "and rounding is counted")):
        shown = io.StringIO()
        Console(file=shown, width=200).print(publication)
        assert words in shown.getvalue()
        assert words in publication._repr_html_()


def test_09c_a_page_is_of_printed_numbers_and_says_so(tmp_path):
    with pytest.raises(PublicationError, match="there is no page for LogCosh"):
        real().to_html(tmp_path / "own.html")
    for language, words in (("en", "rounding is counted"), ("de", "Rundung ist mitgezählt")):
        published().to_html(tmp_path / "page.html", language=language)
        page = json.dumps(words)[1:-1]
        assert page in (tmp_path / "page.html").read_text(encoding="utf-8")
    numbers = payload([published()])["publications"][0]
    assert numbers["plan"]["grid"] == published().release.plan.grid


FORGED = {
    "negative": {"output_noise": -(2.0**-40)},
    "zero": {"grid": 0.0},
    "no power of two": {"grid": 3e-17},
    "text": {"noise": "none"},
    "a coarse solver": {"solver_radius": 2.0**-30},
    "large output noise": {"output_noise": 2.0, "solver_radius": 2.0**-17, "grid": 2.0**-26},
    "no rows": {"rows_at_most": 0},
    "half a row": {"rows_at_most": 0.5},
    "many rows": {"rows_at_most": 10**38},
    "another error": {"statistics_error": 2.0**-10},
    "elsewhere": {"statistics_at": "printed coefficients"},
    "a grid too many": {"hessian_grid": 2.0**-40},
    "more": {"rounding": "none"},
}


@pytest.mark.parametrize("changes", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("made", [published, squared], ids=["logistic", "squared"])
def test_09d_a_forged_precision_is_refused(made, changes):
    fields = json.loads(made().to_json())
    if "hessian_grid" in changes and fields["precision"]["hessian_grid"] is not None:
        changes = {"hessian_grid": None}  # it has one, so that none is the forgery
    with pytest.raises(PublicationError):
        expost.Publication.from_json(signed(fields | {"precision": fields["precision"] | changes}))


@pytest.mark.parametrize("report", KINDS)
def test_09d_a_precision_of_another_plan_is_refused(report):
    fields = document(report)
    other = expost.LogisticRegression(norm=1e6, classes=[0, 1], report=report, epsilon=0.01, random_state=5)
    (tiny,) = [json.loads(other.fit(X, Y).publication_.to_json())["precision"]]
    for precision in (tiny, document("adaptive" if report == "independent" else "independent")["precision"]):
        with pytest.raises(PublicationError):
            expost.Publication.from_json(signed(fields | {"precision": precision}))
