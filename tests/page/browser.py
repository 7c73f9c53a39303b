"""Debian's Chromium, driven by Playwright; without it tests are skipped with a reason."""

import re
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pages

from expost.page import render
from expost.page.numbers import payload

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


def title_of(field):
    """What the English page calls a field that has no question."""
    if "unnamed" in field:
        return f"Value {field['unnamed']}" if field["role"] == "feature" else "Outcome"
    return field.get("title", field["name"])


class Visit:
    """A page opened from disk, with a record of everything that it does wrong."""

    def __init__(self, browser, folder: Path, publications, *, language="en", **view):
        self.publications, self.language = publications, language
        self.fields = payload(publications)["fields"]
        self.path = folder / "report.html"
        self.path.write_text(render(publications, language=language), encoding="utf-8")
        # Without motion nobody waits for a scroll to end, and the page shows the same.
        self.context = browser.new_context(**{"reduced_motion": "reduce"} | view)
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

    def fill(self, answers):
        """Answer the questions, as a person would; an empty answer was not recorded."""
        for place, (field, answer) in enumerate(zip(self.fields, answers, strict=True)):
            question = field.get("question", title_of(field))
            if answer == "":
                self.page.locator(f"#field-{place}-missing").check()
            elif field["kind"] == "number":
                # A count is asked for as one: "score: how many?"
                self.page.get_by_label(re.compile(rf"^{re.escape(question)}(: how many\?)?$")).fill(answer)
            else:
                values = field.get("categories") or field.get("classes") or ["yes", "no"]
                spoken = {"en": ["Yes", "No"], "de": ["Ja", "Nein"]}[self.language]
                words = field.get("titles") or (spoken if field["kind"] == "yes_no" else values)
                word = words[values.index(answer)]
                if len(values) > 6:
                    self.page.get_by_label(question, exact=True).select_option(label=word)
                else:
                    self.page.get_by_role("group", name=question, exact=True).get_by_label(
                        word, exact=True
                    ).check()

    def options(self, *, confidence, member, every):
        """Open the experts' part and choose how to read."""
        self.open_details()
        self.page.get_by_label("Confidence", exact=True).select_option(index=confidence)
        words = {True: "Yes", False: "No", None: "Unknown"}
        group = self.page.get_by_role("group", name="Was the record in the data?")
        group.get_by_label(words[member], exact=True).check()
        self.page.get_by_label("Hold for every record").set_checked(every)

    def open_details(self):
        self.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    def figure(self, key):
        """The exact values behind a figure of the experts' table."""
        self.open_details()
        shown = self.page.locator(f"[data-figure={key}] data")
        return [float(value) for value in shown.evaluate_all("all => all.map((one) => one.value)")]

    def text(self, selector):
        """What can be read at a place, in one line."""
        return " ".join(self.page.locator(selector).inner_text().split())

    @property
    def headline(self):
        return self.text("#headline")

    @property
    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    def close(self):
        self.context.close()
        return self.requests, self.complaints


def plain_people(rng, count, publication):
    """People whose answers a form can hold."""
    words = {"TRUE": "yes", "0": "no", "No": "no", " y": "yes", "f": "no"}
    drawn = pages.people(rng, count, publication.domain, publication.loss)
    return [[words.get(answer, answer) for answer in person] for person in drawn]
