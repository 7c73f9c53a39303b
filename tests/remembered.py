"""One question of calibration is answered once: the same budgets are asked for again and again."""

from functools import wraps
from pathlib import Path

from expost.privacy import calibration

PRIVACY = Path(__file__).parent / "privacy"


class Memory:
    """The answers of the calibration's searches, by the exact question.

    The tests of privacy ask the searches themselves. So does a test that replaces something, because its
    answers are not those of others.
    """

    def __init__(self):
        self.answers, self.in_use = {}, False

    def serves(self, item):
        """Whether a test may have the answers."""
        return "monkeypatch" not in item.fixturenames and PRIVACY not in item.path.parents

    def of(self, search):
        """The search, asked once where the memory is in use."""

        @wraps(search)
        def asked(target, *arguments):
            if not self.in_use:
                return search(target, *arguments)
            question = (
                search,
                target,
                repr(arguments),
            )  # a list cannot be a key; texts are exact
            if question not in self.answers:
                self.answers[question] = search(target, *arguments)
            return self.answers[question]

        return asked

    def install(self):
        for name, search in calibration.CALIBRATIONS.items():
            calibration.CALIBRATIONS[name] = self.of(search)
        calibration._explicit = self.of(calibration._explicit)


MEMORY = Memory()
