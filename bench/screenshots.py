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
from expost import ClassLabel, Domain, Number
from expost.cli.demonstration import BOUNDS

HERE = Path(__file__).parent.parent / "docs" / "figures"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
VIEWS = {
    "page-desktop": {"viewport": {"width": 860, "height": 900}},
    "page-phone": {"viewport": {"width": 375, "height": 812}, "device_scale_factor": 2},
    "page-dark": {"viewport": {"width": 860, "height": 1080}, "color_scheme": "dark"},
}


def published() -> tuple[expost.Publication, list[str]]:
    """A model of the breast-cancer data's ten means, a noisy Hessian beside it, and one woman's answers."""
    domain = Domain(
        features=tuple(
            Number(name=f"mean {name}", low=0.0, high=high) for name, (high, *_) in BOUNDS.items()
        ),
        label=ClassLabel(name="diagnosis", classes=("malignant", "benign")),
    )
    X, y = load_breast_cancer(return_X_y=True)
    means = X[:, : len(BOUNDS)]
    labels = [("malignant", "benign")[label] for label in y]
    model = expost.LogisticRegression(epsilon=1.0, delta=1e-6, report="leverage", domain=domain)
    publication = model.fit(pd.DataFrame(means, columns=domain.column_names), labels).publication_
    return publication, [f"{value:g}" for value in means[20]] + [labels[20]]


def answered(page: Page, path: Path, answers: list[str]) -> None:
    page.goto(path.as_uri())
    page.get_by_text("Or paste one line").click()
    page.get_by_label("One line").fill(",".join(answers))
    page.get_by_role("button", name="Fill in").click()
    page.get_by_text("Or paste one line").click()
    page.get_by_label("Yes", exact=True).check()


def shoot(browser: Browser, path: Path, answers: list[str], name: str, view: dict) -> None:
    context = browser.new_context(**view)
    page = context.new_page()
    answered(page, path, answers)
    if name == "page-desktop":
        page.evaluate("scrollTo(0, 0)")
        height = page.locator("#what-if").evaluate("section => section.getBoundingClientRect().bottom")
        clip = {"x": 0, "y": 0, "width": view["viewport"]["width"], "height": height + 24}
        page.screenshot(path=HERE / f"{name}.png", full_page=True, clip=clip)
    else:
        page.locator(".result").evaluate("section => section.scrollIntoView()")
        page.screenshot(path=HERE / f"{name}.png")
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
    publication, answers = published()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        publication.to_html(path)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, view in VIEWS.items():
            shoot(browser, path, answers, name, view)
            print(f"{name}.png: {(HERE / name).with_suffix('.png').stat().st_size / 1e3:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
