"""One question of accounting is answered once: the same budgets are asked for again and again."""

from contextlib import contextmanager
from functools import wraps
from types import FunctionType

from expost.privacy.certified_profile import CertifiedProfile

# The fixtures of a test that asks the profiles themselves, but for one that has `remembered` too.
THEMSELVES = {"monkeypatch", "unremembered"}


def exactly(thing):
    """A key that equals another one only if the two things compute the same.

    A function is its code and what it holds: the curve of a loss is made anew whenever it is asked for.
    """
    if isinstance(thing, FunctionType):
        held = [*(cell.cell_contents for cell in thing.__closure__ or ()), *(thing.__defaults__ or ())]
        return thing.__module__, thing.__code__, *map(exactly, held)
    fields = getattr(thing, "__dataclass_fields__", None)
    if fields is None:
        return type(thing), thing
    return type(thing), *(exactly(getattr(thing, name)) for name in fields)


class Memory:
    """What certified profiles have answered, by the exact question.

    A test that replaces something asks the profiles themselves, because its answers are not those of others,
    unless the fixture ``remembered`` says that no profile has to do with it. So does one that has the fixture
    ``unremembered``: it measures how long they take, say.
    """

    def __init__(self):
        self.answers, self.in_use = {}, False

    def serves(self, node):
        """Whether a test, or the module that it stands in, may have the answers."""
        fixtures = getattr(node, "fixturenames", ())
        return "remembered" in fixtures or THEMSELVES.isdisjoint(fixtures)

    @contextmanager
    def used_by(self, node):
        """In use while a test is run or a module is read, if that may be."""
        before, self.in_use = self.in_use, self.serves(node)
        try:
            yield
        finally:
            self.in_use = before

    def of(self, method):
        """The method of a profile, asked once where the memory is in use."""

        @wraps(method)
        def asked(profile, epsilon, **options):
            if not self.in_use:
                return method(profile, epsilon, **options)
            question = (method, exactly(profile), epsilon, *options.items())
            if question not in self.answers:
                self.answers[question] = method(profile, epsilon, **options)
            return self.answers[question]

        return asked

    def install(self):
        for name in ("delta", "directed"):
            setattr(CertifiedProfile, name, self.of(getattr(CertifiedProfile, name)))


MEMORY = Memory()
