"""Debian's Chromium, driven by Playwright; without it tests are skipped with a reason."""

import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pages

from expost.page import render

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
MISSING = [
    name
    for name, there in (
        ("chromium (apt-get install chromium)", CHROMIUM),
        ("playwright (pip install playwright)", find_spec("playwright")),
    )
    if not there
]


@contextmanager
def launched():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """A page opened from disk, with a record of everything that it does wrong."""

    def __init__(self, browser, folder: Path, publications, **view):
        self.publications = publications
        self.path = folder / "report.html"
        self.path.write_text(render(publications), encoding="utf-8")
        self.context = browser.new_context(**view)
        self.requests, self.stopped, self.complaints = [], {}, []
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", lambda failed: self.stopped.update({failed.url: failed.failure}))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self.dismiss)
        self.page.goto(self.path.as_uri())

    def dismiss(self, dialog):
        """Close a box that the page opened, which it never should."""
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def fill(self, fields, answers):
        """Answer by label, as a person would."""
        for field, answer in zip(fields, answers, strict=True):
            control = self.page.get_by_label(field["name"], exact=True)
            if control.evaluate("control => control.tagName") == "SELECT":
                control.select_option(answer)
            else:
                control.fill(answer)

    def figure(self, key):
        """The exact values behind a figure that is shown."""
        shown = self.page.locator(f"[data-figure={key}] data")
        return [float(value) for value in shown.evaluate_all("all => all.map((one) => one.value)")]

    @property
    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    def close(self):
        self.context.close()
        return self.requests, self.complaints


def plain_people(rng, count, publication):
    """People whose answers a menu can hold."""
    words = {"TRUE": "yes", "0": "no", "No": "no", " y": "yes", "f": "no"}
    drawn = pages.people(rng, count, publication.domain, publication.loss)
    return [[words.get(answer, answer) for answer in person] for person in drawn]
