"""The file that declares a given domain."""

import datetime

from expost.data.dates import Date
from expost.data.dialect import PLAIN
from expost.data.domain import Domain
from expost.data.features import Category, ClassLabel, Number
from expost.data.texts import quoted, text_lines, toml_value


def to_toml(domain: Domain) -> str:
    """The file that declares a domain; :meth:`expost.Domain.from_toml` reads it back. Public."""
    parts = [] if domain.norm is None else [f"norm = {domain.norm!r}\n"]
    if domain.ignore:
        parts.append(f"ignore = {toml_value(domain.ignore)}\n")
    table = {key: value for key, value in domain.table.model_dump().items() if value != getattr(PLAIN, key)}
    if table:
        lines = [f"{key} = {toml_value(value)}\n" for key, value in table.items()]
        parts.append("".join(["[table]\n", *lines]))
    for feature in domain.features:
        lines = [f"[[features]]\nname = {quoted(feature.name)}\nkind = {quoted(feature.kind)}\n"]
        if isinstance(feature, Number):
            lines.append(f"low = {feature.low!r}\nhigh = {feature.high!r}\n")
            if feature.scale != "symmetric":
                lines.append(f"scale = {quoted(feature.scale)}\n")
        elif isinstance(feature, Date):
            lines.append(f"low = {feature.low}\nhigh = {feature.high}\n")
        elif isinstance(feature, Category):
            lines.append(f"categories = {toml_value(feature.categories)}\n")
        if feature.missing is not None:
            missing = feature.missing
            lines.append(f"missing = {quoted(missing) if isinstance(missing, str) else _plain(missing)}\n")
        parts.append("".join([*lines, text_lines(feature)]))
    label = domain.label
    values = (
        f"classes = {toml_value(label.classes)}\n"
        if isinstance(label, ClassLabel)
        else f"low = {label.low!r}\nhigh = {label.high!r}\n"
    )
    parts.append(
        f"[label]\nname = {quoted(label.name)}\nkind = {quoted(label.kind)}\n{values}{text_lines(label)}"
    )
    if domain.publication is not None:
        parts.append(f"[publication]\n{text_lines(domain.publication)}")
    return "\n".join(parts)


def _plain(value: float | bool | datetime.date) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, datetime.date) else repr(value)
