"""What a hostile reviewer found, item by item; each test is one line of the list.

Files:     1 unreadable publications   2 overwritten inputs   3 races   4 devices and pipes
           5 folders left behind       6 one file for public and private
Messages:  7 escape sequences          8 cells in contexts    9 errors that are not ours
           10 Ctrl-C at the start      11 spelling of numbers
Claims:    12 labels far out           13 the best bracket    14 the paper's signs and floors
           15 what confidence covers
Supply:    16 the oldest versions that are declared

The third round goes on in test_third_round_*.py, by what was attacked.
"""

import ast
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from packaging.requirements import Requirement
from ward import DOMAIN, NAMES, patients, refused, run, ward, write_csv

import expost
from expost.audit import hockey_stick
from expost.exceptions import (
    CalibrationError,
    DomainError,
    ExpostError,
    LossError,
    ParameterError,
    PublicationError,
)
from expost.fitting import mechanism as fitting
from expost.privacy.profile import PrivacyProfile
from expost.publication.trial import try_publication

SOURCE = Path(expost.__file__).parent
DOCS = Path(__file__).parent.parent.parent / "docs"
posix = pytest.mark.skipif(os.name != "posix", reason="there are no devices, pipes or signals")


def wide_domain(features):
    numbers = tuple(expost.Number(name=f"x{place}", low=0.0, high=1.0) for place in range(features))
    return expost.Domain(features=numbers, label=expost.ClassLabel(name="y", classes=("no", "yes")))


@pytest.fixture
def no_noise(monkeypatch):
    """Fail where noise is drawn."""
    monkeypatch.setattr(fitting, "perturb", lambda *_, **__: pytest.fail("noise was drawn"))


# Files


@pytest.mark.long
def test_01a_a_domain_of_8400_features_is_published_and_read(tmp_path):
    domain = wide_domain(8400)
    plan = expost.calibrate(loss="logistic", norm=domain.row_norm, epsilon=1.0)
    release = expost.fitting.release.Release(plan=plan, coefficients=np.zeros(8400))
    publication = expost.Publication.from_release(
        release, classes=domain.classes, feature_names=domain.column_names, domain=domain
    )
    publication.save(tmp_path / "p.json")
    assert expost.Publication.load(tmp_path / "p.json") == publication


@pytest.mark.parametrize(("features", "report"), [(3000, "leverage"), (60_000, "dependent")])
def test_01b_a_fit_whose_file_nobody_could_read_is_refused_before_noise(features, report, no_noise):
    rows, labels = np.zeros((2, features)), np.array([0, 1])
    model = expost.LogisticRegression(classes=[0, 1], report=report, norm=1.0)
    with pytest.raises(PublicationError, match="more numbers than a file may have"):
        model.fit(rows, labels)


def test_01c_what_a_trial_accepts_can_be_read_with_the_longest_numbers(monkeypatch):
    plan = expost.calibrate(loss="logistic", norm=1.0, epsilon=1.0, report="leverage")
    size = try_publication(plan, 20, classes=["no", "yes"], feature_names=None, domain=None)
    longest = "-1.2345678901234567e-300"
    published = expost.LogisticRegression(report="leverage", classes=[0, 1], norm=1.0)
    text = published.fit(np.zeros((2, 20)), [0, 1]).publication_.to_json()
    assert len(text) <= size
    document = json.loads(text)
    numbers = len(document["coefficients"]) + len(document["statistics"]["hessian"])
    assert size <= len(text) + numbers * len(longest)
    monkeypatch.setattr("expost._common.strict_json.MAX_BYTES", size - 1)
    with pytest.raises(PublicationError, match="more numbers than a file may have"):
        try_publication(plan, 20, classes=["no", "yes"], feature_names=None, domain=None)


def test_01d_names_that_cannot_be_published_are_refused_before_noise(no_noise):
    frame = pd.DataFrame({"x" * 10_001: [0.1, 0.2], "b": [0.3, 0.4]})
    with pytest.raises(PublicationError, match="at most 10000 bytes"):
        expost.LogisticRegression(classes=[0, 1], norm=1.0).fit(frame, [0, 1])


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    domain, table = ward(folder)
    publication, losses = folder / "p.json", folder / "private.csv"
    assert run("fit", domain, table, "-o", publication, "--losses", losses).exit_code == 0
    assert run("page", publication, "-o", folder / "report.html").exit_code == 0
    return folder


@pytest.fixture
def place(original, tmp_path):
    """A folder with a domain, a table, a publication, a page and private losses."""
    return shutil.copytree(original, tmp_path / "place")


def spellings(path):
    """The same file by a detour, a symbolic and a hard link."""
    (path.parent / "detour").mkdir(exist_ok=True)
    soft, hard = path.parent / f"soft-{path.name}", path.parent / f"private-hard-{path.name}"
    soft.symlink_to(path)
    hard.hardlink_to(path)
    return [path, path.parent / "detour" / ".." / path.name, soft, hard]


def commands(place, target):
    """Every command that writes, told to write to ``target``."""
    domain, table, publication = place / "domain.toml", place / "table.csv", place / "p.json"
    return {
        "fit": ("fit", domain, table, "-o", target),
        "losses": ("losses", publication, table, "-o", target),
        "fit --losses": ("fit", domain, table, "-o", place / "new.json", "--losses", target),
        "page": ("page", publication, "-o", target),
    }


INPUTS = [
    ("fit", "domain.toml"),
    ("fit", "table.csv"),
    ("fit --losses", "table.csv"),
    ("losses", "table.csv"),
    ("page", "p.json"),
]


@pytest.mark.parametrize(("command", "name"), INPUTS)
def test_02a_no_command_writes_over_its_inputs_even_by_force(command, name, place):
    path = place / name
    before = path.read_bytes()
    for spelling in spellings(path):
        target = spelling
        if command in ("losses", "fit --losses"):  # such a file needs "private" in its name
            target = place / "private" / spelling.name
            target.parent.mkdir(exist_ok=True)
            if not target.exists():
                target.symlink_to(spelling)
        assert refused(run(*commands(place, target)[command], "--force"), "is an input of this command")
    assert path.read_bytes() == before
    assert not (place / "new.json").exists()


@pytest.mark.parametrize("command", ["fit", "losses", "fit --losses", "page"])
@pytest.mark.parametrize("name", ["p.json", "report.html", "private.csv", "other.csv"])
def test_02b_nothing_is_overwritten_without_force(command, name, place):
    path = place / name
    if name == "other.csv":
        path.write_text("a table of somebody else")
    before = path.read_bytes()
    result = run(*commands(place, path)[command])
    assert result.exit_code == 1
    assert path.read_bytes() == before
    if command == "page" and name == "report.html":
        assert refused(result, "exists")
        assert run(*commands(place, path)[command], "--force").exit_code == 0


def test_02c_the_demo_overwrites_nothing_without_force(tmp_path):
    (tmp_path / "publication.json").write_text("a budget was spent on this")
    assert refused(run("demo", "--out", tmp_path), "publication.json exists")
    assert [path.name for path in tmp_path.iterdir()] == ["publication.json"]


@pytest.mark.long
@posix
def test_03_of_three_fits_to_one_name_one_has_it_and_no_publication_is_lost(tmp_path):
    domain, table = ward(tmp_path)
    arguments = [sys.executable, "-m", "expost", "fit", domain, table, "-o", tmp_path / "p.json"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE.parent)}
    started = [subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    said = [fit.communicate()[1].decode() for fit in started]
    codes = [fit.returncode for fit in started]
    assert codes.count(0) == 1
    written = sorted(tmp_path.glob("p*.json"))
    spent = [text for text in said if "What was made is complete" in text]
    assert len(written) == 1 + len(spent)  # every budget that was spent left its file
    assert len({expost.Publication.load(path).sha256 for path in written}) == len(written)
    refusals = [text for text, code in zip(said, codes, strict=True) if code]
    assert all("exists" in text or text in spent for text in refusals)


@posix
@pytest.mark.parametrize("kind", ["device", "pipe", "broken link"])
@pytest.mark.parametrize("command", ["fit", "fit --losses", "losses", "page"])
def test_04_devices_pipes_and_broken_links_stay_what_they_are(kind, command, place):
    target = place / "private" / "out.csv"
    target.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to("/dev/null" if kind == "device" else place / "nothing")
    before = os.lstat(target)
    # Not when it was last read: looking at a link counts as reading it.
    same = ("st_mode", "st_ino", "st_dev", "st_size", "st_mtime_ns", "st_ctime_ns")
    words = "a link to nothing" if kind == "broken link" else "a device or a pipe"
    for force in ((), ("--force",)):
        assert refused(run(*commands(place, target)[command], *force), words)
    assert all(getattr(os.lstat(target), name) == getattr(before, name) for name in same)
    assert not (place / "nothing").exists()
    assert not (place / "new.json").exists()


def test_05_dry_runs_and_refusals_leave_no_folder(tmp_path, monkeypatch):
    domain, table = ward(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    target = ("-o", tmp_path / "a" / "b" / "p.json", "--losses", tmp_path / "c" / "private.csv")
    assert run("fit", domain, table, *target, "--dry-run").exit_code == 0
    assert sorted(tmp_path.rglob("*")) == before
    with monkeypatch.context() as terminal:
        terminal.setattr("expost.cli.fit._someone_is_there", lambda: True)
        assert run("fit", domain, table, *target, input="n\n").exit_code == 1
    assert run("fit", domain, table, *target, "--epsilon", "-1").exit_code == 1
    bad = write_csv(tmp_path / "table.csv", [["x", "north", "yes", "no"]])
    assert run("fit", domain, bad, *target).exit_code == 1
    ward(tmp_path)

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_space, raising=False)
    monkeypatch.setattr(fitting, "perturb", lambda *_, **__: pytest.fail("noise was drawn"))
    assert refused(run("fit", domain, table, *target), "No space left")  # found before the noise is drawn
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("spelling", ["private-p.csv", "sub/../private-p.csv", "PRIVATE-p.csv"])
def test_06_public_and_private_are_never_one_file(spelling, tmp_path):
    domain, table = ward(tmp_path)
    (tmp_path / "sub").mkdir()
    public = tmp_path / "private-p.csv"
    result = run("fit", domain, table, "-o", public, "--losses", tmp_path / spelling)
    assert refused(result, "must be another file than the publication")
    assert not public.exists()


# Messages

ESCAPE = "\x1b[2J\x9b31m\u202e\n\a"


def unsafe(text):
    return [letter for letter in text if not letter.isprintable() and letter != "\n"]


def test_07_names_from_files_never_reach_the_terminal_raw(tmp_path):
    name = json.dumps("age" + ESCAPE)
    (tmp_path / "domain.toml").write_text(DOMAIN.replace('"age"', name))
    table = write_csv(tmp_path / "table.csv", patients(), ["age" + ESCAPE, *NAMES[1:]])
    publication = tmp_path / "p.json"
    said = [run("fit", tmp_path / "domain.toml", table, "-o", publication)]
    assert said[0].exit_code == 0, said[0].output
    said += [run(command, publication, table) for command in ("bounds", "losses")]
    said += [run("page", publication, "-o", tmp_path / "r.html"), run("init", table)]
    bad = write_csv(tmp_path / "bad.csv", [["x", "north", "yes", "no"]], ["age" + ESCAPE, *NAMES[1:]])
    said += [run("bounds", publication, bad), run("losses", publication, bad)]
    lacking = write_csv(tmp_path / "lacking.csv", patients(3), NAMES)
    said += [run("bounds", publication, lacking), run("bounds", tmp_path / f"no{ESCAPE}.json", lacking)]
    said += [run("fit", tmp_path / "domain.toml", bad, "-o", tmp_path / "q.json", "--json")]
    for result in said:
        assert not unsafe(result.stdout + result.stderr), result.output
    assert all("age\\x1b[2J" in result.stderr for result in said[5:8])
    loaded = expost.Publication.load(publication)
    with pytest.raises(DomainError) as caught:
        loaded.bounds({"age": [1.0]}, ["yes"])
    assert not unsafe(str(caught.value))
    assert "\n" not in str(caught.value)
    assert not unsafe(repr(loaded) + repr(loaded.domain))


class Raising:
    """A cell that raises whatever it is asked."""

    def _fail(self, *_):
        raise RuntimeError("SECRET")

    __float__ = __str__ = __eq__ = _fail
    __hash__ = object.__hash__


class RaisingArray:
    """Labels that raise when they are read."""

    def __array__(self, *_, **__):
        raise RuntimeError("SECRET")


def attached(error):
    """Every error that hangs on an error."""
    found, waiting = [], [error]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
    return found[1:]


def test_08a_refusals_carry_no_other_error(tmp_path):
    domain = expost.Domain.from_toml(DOMAIN)
    columns = {"age": ["1"], "ward": ["north"], "smoker": ["yes"]}
    for name in columns:
        for cell in ("SECRET", Raising()):
            records = {**columns, name: np.array([cell], dtype=object)}
            with pytest.raises(DomainError) as caught:
                domain.encode(records)
            assert not attached(caught.value)
    for content in (b"age,ward,smoker,ill\nSECRET\xff,1\n", b'age,ward,smoker,ill\n"SECRET" x,1,2,3\n'):
        (tmp_path / "table.csv").write_bytes(content)
        with pytest.raises(ExpostError) as caught:
            expost.LogisticRegression(domain=domain).fit(tmp_path / "table.csv")
        assert not attached(caught.value)


def test_08b_no_room_that_touches_rows_raises_inside_a_handler():
    # What is parsed there is public: the domain file and the seed.
    public = {SOURCE / "data" / "domain.py", SOURCE / "fitting" / "noise.py"}
    for room in ("data", "fitting", "reports", "estimators"):
        for path in sorted((SOURCE / room).rglob("*.py")):
            for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(handler, ast.ExceptHandler) and path not in public:
                    raised = [node for node in ast.walk(handler) if isinstance(node, ast.Raise) and node.exc]
                    assert not raised, f"{path.name}:{handler.lineno} raises with another error attached"


rows, labels = np.linspace(-0.5, 0.5, 20).reshape(10, 2), np.arange(10) % 2
BROKEN = scipy.sparse.csr_array(rows)
BROKEN.indices[3] = 7  # SciPy reads beyond the row here
OBJECTS = scipy.sparse.csr_array(rows)
OBJECTS.data = OBJECTS.data.astype(object)  # it makes none itself
ODD = {
    "sparse objects": (OBJECTS, labels, "sparse `X` .* real numbers"),
    "sparse complex": (scipy.sparse.csc_array(rows + 1j), labels, "sparse `X` .* real numbers"),
    "sparse vector": (scipy.sparse.coo_array(rows[0]), labels, "sparse vector"),
    "sparse, broken": (BROKEN, labels, "valid sparse matrix"),
    "np.matrix": (np.asarray(rows).view(np.matrix), labels, "np.matrix"),
    "one name twice": (pd.DataFrame(rows, columns=["a", "a"]), labels, "different names"),
    "mixed names": (pd.DataFrame(rows, columns=["a", 1]), labels, "named by texts"),
    "raising cells": (np.array([[Raising(), 1.0]] * 10, dtype=object), labels, "matrix of numbers"),
    "raising labels": (rows, np.array([Raising()] * 10, dtype=object), "outside the declared classes"),
    "labels that raise": (rows, RaisingArray(), "1d array"),
}


@pytest.mark.parametrize("kind", ODD)
def test_09_every_refusal_is_ours(kind):
    table, answers, words = ODD[kind]
    with pytest.raises(ExpostError, match=words) as caught:
        expost.LogisticRegression(classes=[0, 1], norm=1.0).fit(table, answers)
    assert "SECRET" not in str(caught.value)
    assert not attached(caught.value)
    assert str(caught.value).endswith((".", "]"))


@posix
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.15, 0.4])
def test_10_ctrl_c_ends_with_the_sentence_from_the_first_moment(delay, tmp_path):
    domain, table = ward(tmp_path)
    # Tells when the package's own code begins; before that, only Python itself is there to answer.
    begin = (
        "import os, runpy, sys; import expost._common.progress as p; p.stop_quietly(); os.write(1, b'on');"
    )
    begin += "sys.argv = sys.argv[1:]; runpy.run_module('expost', run_name='__main__')"
    fit = subprocess.Popen(
        [sys.executable, "-c", begin, "expost", "fit", domain, table, "-o", tmp_path / "p.json"],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert fit.stdout.read(2) == b"on"
    time.sleep(delay)
    fit.send_signal(signal.SIGINT)
    said = fit.communicate()[1].decode()
    if fit.returncode == 0:  # a fast machine was done
        assert expost.Publication.load(tmp_path / "p.json")
        return
    assert fit.returncode == 1
    assert said.splitlines()[-1] == "expost: stopped before the end; no partial file was left behind."
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["domain.toml", "table.csv"]


@pytest.mark.parametrize("spelling", ["4_0", "٤٠", "４０", "0x28"])
def test_11_numbers_are_spelt_alike_everywhere(spelling, tmp_path):
    domain, table = ward(tmp_path, [[spelling, "north", "yes", "no"]])
    assert refused(run("fit", domain, table, "-o", tmp_path / "p.json"), "`age` must be a number")
    result = run("plan", domain, "--epsilon", spelling)
    assert result.exit_code == 2  # wrong usage
    golden = json.loads((Path(__file__).parent.parent / "golden" / "encodings.json").read_text())
    refusals = {text for text, columns in golden["wide"]["features"]["age"] if columns is None}
    assert {"4_0", "٤٠", "0x10"} <= refusals  # the page reads the same vectors


# Claims


@dataclass(frozen=True)
class Weighted(expost.Loss):
    """A logistic loss whose label carries a weight, declared for labels within 3 and used up to 10."""

    name = "weighted"
    labels = expost.LabelSet(-10.0, 10.0)
    curve = expost.DerivativeCurve(
        max_slope=3.0, curvature=lambda m: m * (1.0 - m / 3.0), peak=1.5, sign_fixed=True
    )

    def value(self, eta, y):
        return np.abs(y) * np.logaddexp(0.0, -np.sign(y) * eta)

    def derivatives(self, eta, y):
        p = 0.5 * (1.0 - np.tanh(0.5 * np.sign(y) * eta))
        return -y * p, np.abs(y) * p * (1.0 - p)


def test_12_a_slope_that_only_far_labels_exceed_is_found():
    with pytest.raises(LossError, match="exceeds the declared max_slope=3"):
        expost.calibrate(loss=Weighted(), epsilon=1.0, delta=1e-6)


def test_13_a_finer_bracket_is_never_wider():
    plan = expost.calibrate(loss="logistic", epsilon=1.0, report="dependent")
    scales = plan.scales
    profile = PrivacyProfile(plan.loss.curve, norm=plan.radius, l2=plan.l2, scales=scales)
    widths = [
        (found.upper - found.lower) / found.upper
        for found in (profile.delta(1.0, rtol=rtol) for rtol in (1e-2, 1e-3, 1e-4, 1e-5))
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[2] < 1e-3
    tiny = profile.delta(profile.epsilon(1e-30))
    assert tiny.upper - tiny.lower < 1e-3 * tiny.upper


def test_14_the_documents_claim_what_is_proved():
    mathematics = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    assert "one sign of the determinant term" not in mathematics
    assert "This certificate has a floor" in mathematics
    with pytest.raises(CalibrationError, match=r"this certificate has no noise scale .* its floor is"):
        expost.calibrate(loss="logistic", epsilon=1.0, l2=0.1)
    plan = expost.calibrate(loss="pseudo_huber", epsilon=1.0, delta=1e-6, l2=1.164)
    pair = hockey_stick(plan.loss, [[0.0]], [0.0], [1.0], 0.0, epsilon=1.0, sigma=plan.sigma, l2=plan.l2)
    assert pair.delta / plan.delta_at(1.0) == pytest.approx(0.971, abs=0.001)


def test_15_confidence_is_chosen_before_looking_and_covers_what_it_says(original):
    publication = expost.Publication.load(original / "p.json")
    records = {"age": [30.0, 40.0], "ward": ["north", "south"], "smoker": ["yes", "no"]}
    with pytest.raises(ParameterError, match="records that are asked about"):
        publication.bounds(records, ["no", "yes"], simultaneous=1)
    page = (original / "report.html").read_text(encoding="utf-8")
    assert "before looking at any figure" in page
    for text in (expost.Publication.bounds.__doc__, run("bounds", "--help").output):
        assert "before looking" in " ".join(text.replace("\u2502", " ").split())


# Supply chain


def test_16_what_is_installed_is_at_least_what_is_declared():
    """`make check-oldest` runs this suite with the lowest versions; here the bounds must at least hold."""
    for line in importlib.metadata.requires("expost"):
        requirement = Requirement(line)
        if requirement.marker is None:
            assert requirement.specifier.contains(importlib.metadata.version(requirement.name)), line
    assert "check-oldest" in (DOCS.parent / "Makefile").read_text(encoding="utf-8")
