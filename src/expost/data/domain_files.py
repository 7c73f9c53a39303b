"""Write domain files: a skeleton to fill in, or the file that declares a given domain."""

from collections.abc import Mapping

from expost.data.domain import PLACEHOLDER, Domain
from expost.data.features import Category, ClassLabel, Number
from expost.data.texts import quoted, text_lines
from expost.exceptions import DomainError

_OPENING = f"""\
# What is publicly known about a record, before anyone looks at the table.
#
# Replace every "{PLACEHOLDER}". Take the values from what the columns mean: a codebook, a law, common sense.
# Never compute them from the table: the privacy guarantee does not cover what is learnt that way.
# Only the names of the columns (and, from Parquet, their types) were taken from the table, and no value.
#
# Each feature is one of three kinds; change `kind` and the lines below it where the guess is wrong:
#   kind = "number"     low = 0.0, high = 120.0              values beyond the bounds are clipped to them
#   kind = "category"   categories = ["north", "south"]      any other value is refused
#   kind = "yes_no"                                          yes/no, true/false or 1/0
# A missing value is refused unless the feature says what it counts as: missing = 40.0 (or "north", or true).
# Delete the features that the model should not use. Order does not matter; other columns are ignored.
# Optional, on a line before the first feature: norm = 2.0 caps the length of an encoded record. Longer
# ones are scaled down to it, and the noise grows with it. The default is the root of half the number of
# features; the root of their number is the longest that a record can be, and scales nothing.
"""

_FEATURES = {
    "number": f'low = "{PLACEHOLDER}"\nhigh = "{PLACEHOLDER}"\n',
    "category": f'categories = ["{PLACEHOLDER}", "{PLACEHOLDER}"]\n',
    "yes_no": "",
}
_CLASSES = f'kind = "classes"\nclasses = ["{PLACEHOLDER}", "{PLACEHOLDER}"]\n'
_NUMBER = f'kind = "number"\n{_FEATURES["number"]}'


def skeleton(kinds: Mapping[str, str | None], label: str | None = None) -> str:
    """A domain file with the names of the columns and everything else still to be declared.

    Parameters
    ----------
    kinds
        Each column's name and its kind, if a schema states it; columns of unknown kind start as numbers.
    label
        The outcome; by default the last column.

    Privacy
    -------
    Public: names and types only. :meth:`expost.Domain.from_toml` refuses the text until it is filled in.
    """
    if len(kinds) < 2:
        raise DomainError("a table must have at least two columns: a feature and the outcome.")
    label = list(kinds)[-1] if label is None else label
    if label not in kinds:
        raise DomainError(f"the table has no column {label!r} to be the outcome. Check `--label`.")
    parts = [_OPENING]
    for name, kind in kinds.items():
        if name != label:
            chosen = kind if kind in _FEATURES else "number"
            parts.append(f'[[features]]\nname = {quoted(name)}\nkind = "{chosen}"\n{_FEATURES[chosen]}')
    numeric = kinds[label] == "number"
    parts.append(
        "# The outcome: two classes or more, or a number. Write classes as texts, codes too:\n"
        '# classes = ["0", "1", "2"]. Of two classes, positive scores predict the second.\n'
        f"[label]\nname = {quoted(label)}\n{_NUMBER if numeric else _CLASSES}"
        "# For "
        + ("classes" if numeric else "a number")
        + " write instead:\n"
        + "".join(f"# {line}\n" for line in (_CLASSES if numeric else _NUMBER).splitlines())
    )
    return "\n".join(parts)


def to_toml(domain: Domain) -> str:
    """The file that declares a domain; :meth:`expost.Domain.from_toml` reads it back. Public."""
    parts = [] if domain.norm is None else [f"norm = {domain.norm!r}\n"]
    for feature in domain.features:
        lines = [f"[[features]]\nname = {quoted(feature.name)}\nkind = {quoted(feature.kind)}\n"]
        if isinstance(feature, Number):
            lines.append(f"low = {feature.low!r}\nhigh = {feature.high!r}\n")
            if feature.scale != "symmetric":
                lines.append(f"scale = {quoted(feature.scale)}\n")
        elif isinstance(feature, Category):
            lines.append(f"categories = {_list(feature.categories)}\n")
        if feature.missing is not None:
            missing = feature.missing
            lines.append(f"missing = {quoted(missing) if isinstance(missing, str) else _plain(missing)}\n")
        parts.append("".join([*lines, text_lines(feature)]))
    label = domain.label
    values = (
        f"classes = {_list(label.classes)}\n"
        if isinstance(label, ClassLabel)
        else f"low = {label.low!r}\nhigh = {label.high!r}\n"
    )
    parts.append(
        f"[label]\nname = {quoted(label.name)}\nkind = {quoted(label.kind)}\n{values}{text_lines(label)}"
    )
    if domain.publication is not None:
        parts.append(f"[publication]\n{text_lines(domain.publication)}")
    return "\n".join(parts)


def _plain(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _list(texts: tuple[str, ...]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"
