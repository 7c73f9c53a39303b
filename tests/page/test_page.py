"""The page as a file: self-contained, small, and closed to markup from outside."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from importlib.resources import files
from pathlib import Path

import kidney
import numpy as np
import pages
import pytest

import expost
from expost import Domain
from expost.exceptions import PublicationError
from expost.page import render
from expost.page.assembly import STYLES, modules, script
from expost.page.introduction import LANGUAGES, right_of_hundred
from expost.page.numbers import CONFIDENCES, payload
from expost.privacy.shapes import capped_softmax

STATIC = files("expost.page") / "static"
HOSTILE = "</script><img src=x onerror=alert(1)>"


def numbers_on(page):
    return json.loads(
        re.search(r'<script type="application/json" id="numbers">(.*?)</script>', page, re.DOTALL)[1]
    )


def hashed(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_it_is_one_file_without_addresses():
    page = render([pages.published("logistic", "adaptive")])
    assert not re.search(r"""src\s*=|@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(""", page)
    # Links go to places of the page, and to the mail program.
    assert set(re.findall(r'href="([^"]*)"', page)) == {"#answer"}
    mailed = set(re.findall(r'href="([^"]*)"', render([kidney.published()])))
    assert mailed == {"#answer", "mailto:privacy@norrdal.example"}
    # The only address is the name of SVG's vocabulary, which nothing fetches.
    assert set(re.findall(r"https?://[^\"\s<]+", page)) == {"http://www.w3.org/2000/svg"}


@pytest.mark.long
def test_it_says_what_the_confidence_is_for():
    words = " ".join(re.sub(r"<[^>]*>", " ", render([pages.published("logistic", "leverage")])).split())
    assert "Choose it before looking at any figure." in words
    assert "Interval, cost and total each hold with the stated confidence on their own" in words
    assert "That is for a record fixed beforehand" in words


@pytest.mark.long
def test_the_policy_names_exactly_the_script_and_the_style():
    page = render([pages.published("logistic", "independent")])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1].replace(
        "&#39;", "'"
    )
    code = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{hashed(code)}'; style-src 'sha256-{hashed(style)}'" in policy
    assert "unsafe" not in policy


@pytest.mark.long
def test_it_is_made_the_same_way_every_time():
    publications = [pages.published("hinge", "leverage"), pages.published("logistic", "leverage")]
    assert render(publications) == render(publications)


def test_thirty_features_fit_in_half_a_megabyte():
    domain = kidney.domain_of(**kidney.many_features(30, 2))
    X, y = kidney.drawn(domain, np.random.default_rng(0), 300)
    model = expost.LogisticRegression(domain=domain, report="adaptive", fit_intercept=True, random_state=1)
    assert len(render([model.fit(X, y).publication_], language="de").encode()) < 500_000


@pytest.mark.parametrize(
    ("classes", "reduced"),
    # Up to 100 coefficients the whole Hessian is the default; five classes have 124.
    [
        *(pytest.param(*case, marks=pytest.mark.docs) for case in ((3, None), (5, False))),
        pytest.param(4, None, marks=pytest.mark.slow),
        pytest.param(12, None, marks=pytest.mark.slow),
    ],
)
def test_thirty_features_and_many_classes_fit_too(classes, reduced):
    domain = kidney.domain_of(**kidney.many_features(30, classes))
    X, y = kidney.drawn(domain, np.random.default_rng(0), 300)
    model = expost.LogisticRegression(domain=domain, report="adaptive", random_state=1)
    if reduced is not None:
        loss = capped_softmax(classes, 1.0, 1e-6)
        plan = {"loss": loss, "norm": domain.row_norm, "report": "adaptive", "reduced": reduced}
        model.set_params(plan=expost.calibrate(fit_intercept=True, **plan))
    assert len(render([model.fit(X, y).publication_]).encode()) < 500_000


def test_the_file_on_the_page_is_the_published_one():
    publication = kidney.published()
    packed = re.search(r'<script type="text/plain" id="file-0">(.*?)</script>', render([publication]))[1]
    assert zlib.decompress(base64.b64decode(packed)).decode() == publication.to_json()


@pytest.mark.long
def test_names_cannot_end_the_data():
    release = pages.published("soft", "independent").release
    publication = expost.Publication.from_release(release, feature_names=[HOSTILE, "<!--", "b", "c"])
    page = render([publication])
    assert "<img" not in page
    assert "<!--" not in page
    assert numbers_on(page)["fields"][0]["name"] == HOSTILE


@pytest.mark.long
def test_numbers_survive_bit_for_bit():
    publication = pages.published("logistic", "dependent")
    numbers = numbers_on(render([publication]))["publications"][0]
    assert numbers["coefficients"] == [list(publication.coefficients)]
    assert numbers["gradient"] == [list(publication.statistics.gradient)]
    assert len(numbers["levels"]) == len(CONFIDENCES)


def test_only_an_insecure_publication_shows_a_warning():
    warning = "<strong>Test version: the protection is switched off.</strong>"
    page = render([pages.published("logistic", "independent")])
    assert warning in page
    assert "No limit holds" in page
    assert "At most" not in page.split("<main>")[0]
    X = np.random.default_rng(0).normal(size=(60, 2)) / 3
    secure = (
        expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int)).publication_
    )
    assert warning not in render([secure])


@pytest.mark.long
def test_the_form_asks_once_for_what_several_publications_share():
    first, second = pages.published("logistic", "independent"), pages.published("huber", "leverage")
    numbers = payload([first, second])
    names = [field["name"] for field in numbers["fields"]]
    assert names == [*(feature.name for feature in pages.FEATURES), "ill", "score"]
    assert [one["outcome"] for one in numbers["publications"]] == [5, 6]
    # Questions of one group stand together, whatever is declared between them.
    money = {place: pages.FEATURES[place].model_copy(update={"group": "Money"}) for place in (1, 4)}
    features = [money.get(place, one) for place, one in enumerate(pages.FEATURES)]
    domain = first.domain.model_copy(update={"features": tuple(features)})
    public = {"classes": domain.classes, "feature_names": domain.column_names, "domain": domain}
    numbers = payload([expost.Publication.from_release(first.release, **public)])
    names = [field["name"] for field in numbers["fields"]]
    assert names == ["age", "ward", "smoker", "income", "insured", "ill"]
    assert numbers["publications"][0]["features"] == [0, 3, 1, 2, 4]


def test_conflicting_declarations_of_a_name_are_refused():
    publication = pages.published("huber", "independent")
    age = pages.FEATURES[0].model_copy(update={"high": 120.0})
    domain = Domain(features=(age, *pages.FEATURES[1:]), label=publication.domain.label)
    other = expost.Publication.from_release(
        publication.release, feature_names=domain.column_names, domain=domain
    )
    with pytest.raises(PublicationError, match=r"declare 'age' differently.*make a page for each"):
        render([publication, other])
    with pytest.raises(PublicationError, match="at least one publication"):
        render([])


@pytest.mark.parametrize(
    ("classes", "texts"),
    [([False, True], ["false", "true"]), ([0.0, 1.5], ["0", "1.5"]), (["no", "yes"], ["no", "yes"])],
)
def test_labels_are_shown_as_a_person_types_them(classes, texts):
    X = np.random.default_rng(0).normal(size=(60, 2)) / 3
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], random_state=1).fit(X, np.arange(60) % 2)
    publication = expost.Publication.from_release(model.publication_.release, classes=classes)
    assert payload([publication])["fields"][-1]["classes"] == texts


def test_to_html_writes_the_page_and_nothing_else(tmp_path):
    publication = pages.published("logistic", "independent")
    publication.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render([publication])
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_every_script_is_bundled_in_the_order_of_its_imports():
    ordered = modules()
    names = [path.name.removesuffix(".js") for path in STATIC.iterdir() if path.name.endswith(".js")]
    assert sorted(names) == sorted(ordered)
    for place, name in enumerate(ordered):
        for needed in re.findall(r'from "\./(\w+)\.js"', (STATIC / f"{name}.js").read_text(encoding="utf-8")):
            assert needed in ordered[:place], f"{name} imports {needed}, which comes later"
    bundle = script()
    assert not re.search(r"^(import|export) ", bundle, re.MULTILINE)
    # Whatever a module imports, another one exports.
    for name in ordered:
        source = (STATIC / f"{name}.js").read_text(encoding="utf-8")
        for names, needed in re.findall(r'import \{([^}]*)\} from "\./(\w+)\.js";', source):
            exported = (STATIC / f"{needed}.js").read_text(encoding="utf-8")
            for one in names.replace(" ", "").strip(",").split(","):
                assert re.search(
                    rf"^export (async )?(function|const|class) {one}\b", exported, re.MULTILINE
                ), one
                assert len(re.findall(rf"\b{one}\b", source)) > 1, f"{name} does not use {one}"
    assert "</" not in bundle


def test_scripts_lose_comments_and_blanks_beside_signs_alone():
    bundle = script()
    for name in modules():
        source = (STATIC / f"{name}.js").read_text(encoding="utf-8")
        code = re.sub(r"^ *//.*\n|^import [^;]*;\n|^export (?=[a-z])", "", source, flags=re.MULTILINE)
        assert re.sub(r"\s", "", code) in re.sub(r"\s", "", bundle)
        # Texts keep their blanks: a template stands in one line, which stays as it is.
        assert all(text in bundle for text in re.findall(r'"(?:[^"\\\n]|\\.)*"', code))
        for line in code.splitlines():
            assert line.count("`") % 2 == 0
            assert "`" not in line or line.strip() in bundle


def test_no_script_makes_markup():
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|\.style\b", script()
    )


def test_scripts_styles_and_templates_are_in_the_wheel(tmp_path):
    pytest.importorskip("hatchling", reason="THE WHEEL IS NOT CHECKED: hatchling is missing")
    root, copy = Path(__file__).parent.parent.parent, tmp_path / "copy"
    shutil.copytree(root / "src", copy / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(root / name, copy)
    builder = "import sys; from hatchling.builders.wheel import WheelBuilder as B; " + (
        "print(next(iter(B(sys.argv[1]).build(directory=sys.argv[2], versions=['standard']))))"
    )
    made = subprocess.run(
        [sys.executable, "-c", builder, str(copy), str(tmp_path)],
        env=os.environ | {"CC": "false"},  # without kernels, which take seconds to compile
        capture_output=True,
        text=True,
        check=True,
    )
    held = set(zipfile.ZipFile(made.stdout.strip().splitlines()[-1]).namelist())
    wanted = {f"expost/page/static/{name}.js" for name in modules()}
    wanted |= {f"expost/page/static/{name}.css" for name in STYLES}
    wanted |= {f"expost/page/languages/{code}.toml" for code in LANGUAGES}
    assert wanted | {"expost/page/templates/report.html"} <= held


@pytest.mark.long
def test_a_loss_without_a_worst_case_has_no_limit_for_everyone():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(50, 2))
    plan = expost.calibrate(loss="squared", sigma=1.0, l2=1.0, fit_intercept=True)
    model = expost.LinearRegression(outcome=(-1, 1), plan=plan)
    assert "No limit for everyone" in render([model.fit(X, X[:, 0]).publication_])
    bounded = expost.LinearRegression(norm=1.0, outcome=(-1, 1), l2=50.0)
    assert "No limit for everyone" not in render([bounded.fit(X, X[:, 0]).publication_])


@pytest.mark.long
def test_several_publications_promise_what_they_compose_to():
    """The label and the data have the certified composition, and no sentence is in the singular."""
    two = [kidney.published(), kidney.published(seed=5, title="Second", date="2027-01-01")]
    plans = [one.release.plan for one in two]
    epsilon = expost.compose(plans).epsilon_at(2e-6)
    assert payload(two)["promises"][0] == epsilon < 1.7
    assert payload(two)["promised_delta"] == 2e-6
    text = render(two)
    opening = text[: text.index("</header>")]
    assert f"At most {right_of_hundred(epsilon)} of 100 right" in opening
    assert "Who can see the models?" in opening
    written = text[: text.index('<script type="application/json"')].partition('class="experts"')[0]
    assert not re.search(r"\bthe model\b", written)
