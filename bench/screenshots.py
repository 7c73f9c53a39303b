"""Draw the page's pictures in docs with Debian's Chromium: `make screenshots`."""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.text import Text
from sklearn.datasets import load_breast_cancer

import expost
from expost import ClassLabel, Contact, Domain, Number, PublicationTexts
from expost.cli.demonstration import BOUNDS

DOCS = Path(__file__).parent.parent / "docs"
HERE = DOCS / "figures"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
DESKTOP = {"viewport": {"width": 1120, "height": 900}}
VIEWS = {
    "page-answer": DESKTOP,
    "page-desktop": DESKTOP,
    "page-phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
    "page-dark": DESKTOP | {"color_scheme": "dark"},
}
# Words for the ten measurements, as a clinic would declare them.
HELP = "It is on the report of your biopsy, as the mean of all cells that were measured."
ABOUT = PublicationTexts(
    title="Breast biopsy model",
    publisher="Norrdal University Clinic",
    contact=Contact(email="privacy@norrdal.example"),
    purpose="helps doctors judge a sample of cells",
    population="women who had a biopsy there",
    date="2026-06-03",
    opt_out=True,
)


def published() -> tuple[expost.Publication, list[str]]:
    """A model of the breast-cancer data's ten means, a noisy Hessian beside it, and one woman's answers."""
    domain = Domain(
        features=tuple(
            Number(
                name=f"mean {name}",
                low=0.0,
                high=high,
                title=name.capitalize(),
                question=f"What was the {name}?",
                help=HELP,
                group="Your biopsy",
            )
            for name, (high, *_) in BOUNDS.items()
        ),
        label=ClassLabel(
            name="diagnosis",
            classes=("malignant", "benign"),
            titles=("Malignant", "Benign"),
            title="Diagnosis",
            question="What was the diagnosis?",
        ),
        publication=ABOUT,
    )
    X, y = load_breast_cancer(return_X_y=True)
    means = X[:, : len(BOUNDS)]
    labels = [("malignant", "benign")[label] for label in y]
    model = expost.LogisticRegression(epsilon=1.0, delta=1e-6, report="leverage", domain=domain)
    publication = model.fit(pd.DataFrame(means, columns=domain.column_names), labels).publication_
    return publication, [f"{value:g}" for value in means[20]] + [labels[20]]


def of_the_tutorial(folder: Path) -> tuple[expost.Publication, list[str]]:
    """What a reader of the tutorial has published at its end, and the answers that it suggests."""
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    script, domain = (
        re.search(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
        for kind in ("python", "toml")
    )
    subprocess.run([sys.executable, "-c", script.replace("nroth", "north")], cwd=folder, check=True)
    model = expost.LogisticRegression(domain=Domain.from_toml(domain))
    return model.fit(folder / "patients.csv").publication_, ["70", "north", "yes", "yes"]


def answered(page: Page, path: Path, answers: list[str]) -> None:
    page.goto(path.as_uri())
    page.locator("#from > summary").click()
    page.locator("#paste").fill(",".join(answers))
    page.locator("#check").click()
    page.locator("#from > summary").click()


def shoot(browser: Browser, path: Path, answers: list[str], name: str, view: dict) -> None:
    """The page down to the end of the answer, or to its notes; on a phone as much as it shows of it."""
    context = browser.new_context(**view, reduced_motion="reduce")
    page = context.new_page()
    answered(page, path, answers)
    page.evaluate("scrollTo(0, 0)")
    if name == "page-phone":
        page.locator("#answer").evaluate("section => section.scrollIntoView()")
        page.screenshot(path=HERE / f"{name}.png")
    else:
        end = ".lastElementChild" if name == "page-answer" else ""
        edge = "top" if end else "bottom + 24"
        height = page.locator("#answer").evaluate(f"it => it{end}.getBoundingClientRect().{edge}")
        clip = {"x": 0, "y": 0, "width": view["viewport"]["width"], "height": height}
        page.screenshot(path=HERE / f"{name}.png", full_page=True, clip=clip)
    context.close()


def terminal() -> None:
    """What ``expost demo`` prints, as a picture of a terminal."""
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": "92", "TERM": "xterm-256color"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "expost", "demo", "--out", "demo"]
        run = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, check=True, encoding="utf-8"
        )
    console = Console(record=True, width=92, file=io.StringIO())
    console.print(Text.from_ansi("$ expost demo\n" + run.stdout))
    picture = console.export_svg(title="expost demo")
    # Use the reader's fonts, so that opening the picture fetches nothing.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    (HERE / "terminal.svg").write_text(picture, encoding="utf-8")


def main() -> None:
    terminal()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for (publication, answers), views in (
            (published(), VIEWS),
            (of_the_tutorial(folder), {"page-tutorial": DESKTOP}),
        ):
            publication.to_html(folder / "report.html", overwrite=True)
            for name, view in views.items():
                shoot(browser, folder / "report.html", answers, name, view)
                print(f"{name}.png: {(HERE / name).with_suffix('.png').stat().st_size / 1e3:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
