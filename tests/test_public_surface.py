"""What a user sees of the package: its names, its completions, its arguments."""

import ast
import inspect
import subprocess
import sys

import pytest
from publications import published

import expost

# The names of the product's specification that exist today, and what a user must construct.
# fmt: off
NAMES = [
    "AmountLabel", "BoundedGamma", "BoundedPoisson", "Category", "ChoicePlan", "ClassLabel", "Contact",
    "ConvexLoss",
    "ConvexModel", "CountLabel", "Date", "DerivativeCurve",
    "Dialect", "Domain", "GammaRegression", "GeneralizedLinearModel", "Interaction", "LabelSet",
    "Ledger", "LinearRegression",
    "LipschitzPoisson",     "LocationScale", "LogisticLoss", "LogisticRegression", "Loss",
    "Month", "Number", "NumberLabel", "OrderedLabel", "OrdinalRegression", "Plan", "PoissonRegression",
    "PseudoHuber", "Publication", "PublicationTexts",
    "QuantileRegression",
    "RecordBall", "RecordBox", "SmoothedHinge", "SmoothedHingeClassifier",
    "SmoothedNorm", "SmoothedPinball", "SoftmaxLoss", "SquaredLoss", "SurvivalRegression", "TimeLabel",
    "VectorLoss", "Weekday", "YesNo",
    "audit", "budgets", "calibrate", "calibrate_convex", "check_convex_loss", "check_loss", "choose",
    "compose",
    "exceptions", "gaussian", "goe", "research", "scan", "total", "wallet",
]
# fmt: on
ESTIMATORS = (
    expost.LogisticRegression,
    expost.LinearRegression,
    expost.OrdinalRegression,
    expost.SurvivalRegression,
    expost.QuantileRegression,
    expost.PoissonRegression,
    expost.GammaRegression,
    expost.SmoothedHingeClassifier,
    expost.GeneralizedLinearModel,
)
# Arguments that say which model is fitted, not how private it is.
OF_THE_MODEL = {
    *(
        "loss",
        "level",
        "periods",
        "length",
        "threshold",
        "outcome",
        "scale",
        "cap",
        "recalibrate",
        "classes",
        "class_weight",
    )
}


def test_the_package_shows_public_names_only():
    assert dir(expost) == sorted([*NAMES, "__version__"])
    assert all(getattr(expost, name) is not None for name in NAMES)


def test_editors_and_the_package_find_each_name_in_the_same_module():
    """mypy and editors read the imports under ``TYPE_CHECKING``, the package a table of its own."""
    tree = ast.parse(inspect.getsource(expost))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.col_offset == 4]
    read = {alias.name: node.module for node in imports for alias in node.names if node.module != "expost"}
    assert read == {name: f"expost.{home}" for name, home in expost._HOMES.items()}


# One name from each module that holds public names, and every public module.
FIRST = [
    *(
        f"from expost import {name}"
        for name in ("Category", "Domain", "Loss", "LogisticRegression", "Plan", "Publication")
    ),
    *(f"import expost.{module}" for module in ("gaussian", "goe", "budgets", "audit", "research")),
]


@pytest.mark.long
def test_public_names_and_modules_can_be_imported_first():
    """Names are imported when they are first asked for; none may need another one to have come before.

    Each in an interpreter that has nothing of the package yet; what others wrote is imported once.
    """
    forget = "for name in [n for n in sys.modules if n.partition('.')[0] == 'expost']: del sys.modules[name]"
    lines = ["import sys"]
    for line in FIRST:
        lines += [forget, line]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("line", FIRST)
def test_each_can_be_imported_first_in_an_interpreter_of_its_own(line):
    subprocess.run([sys.executable, "-c", line], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = expost.nothing


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert expost.__version__ == version("expost")


def loaded(module):
    """The names of everything that an import loads."""
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded("expost") & {"numpy", "scipy", "sklearn", "pydantic", "rich"}


def test_the_help_text_loads_nothing_heavy():
    assert not loaded("expost.cli") & {"numpy", "scipy", "sklearn", "pydantic", "opendp"}


def test_a_publication_completes_to_its_own_names():
    shown = {name for name in dir(published()) if not name.startswith("_")}
    assert {"bounds", "predict", "predict_proba", "save", "load", "to_html", "plan", "coefficients"} <= shown
    assert not {name for name in shown if name.startswith(("model_", "parse_", "schema"))}
    assert not {"copy", "dict", "json", "construct", "validate", "from_orm", "update_forward_refs"} & shown


def test_every_estimator_takes_the_same_privacy_arguments():
    arguments = [set(inspect.signature(kind).parameters) - OF_THE_MODEL for kind in ESTIMATORS]
    assert arguments[0] == arguments[1] == arguments[2]
    assert {"epsilon", "delta", "norm", "report", "plan", "domain"} <= arguments[0]
