"""Every example in docs/domain.md is a domain file, and every key has one."""

import datetime
import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from expost import Contact, Dialect, Domain, PublicationTexts
from expost.data.features import Feature
from expost.data.labels import Label
from expost.data.texts import FieldTexts

PAGE = (Path(__file__).parent.parent.parent / "docs" / "domain.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
FEATURES = '[[features]]\nname = "another"\nkind = "yes_no"\n'
LABEL = '[label]\nname = "outcome"\nkind = "classes"\nclasses = ["a", "b"]\n'


def completed(example):
    """An example with the parts that every file needs."""
    content = tomllib.loads(example)
    return example + FEATURES * ("features" not in content) + LABEL * ("label" not in content)


def plain(value):
    """A value of TOML or of a domain, as JSON would have it."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, datetime.date) else value


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_read_and_declares_what_it_says(example):
    domain = Domain.from_toml(completed(example))
    assert Domain.from_toml(domain.to_toml()) == domain
    for key, value in tomllib.loads(example).items():
        declared = getattr(domain, key)
        if key in ("features", "interactions", "choices"):
            pairs = zip(value, declared, strict=True)
        elif isinstance(value, dict):
            pairs = [(value, declared)]
        else:
            assert plain(value) == plain(declared)
            continue
        for part, one in pairs:
            dumped = plain(one.model_dump())
            assert {name: dumped[name] for name in part} == plain(part)


def test_every_key_has_an_example_and_a_word():
    features, labels = (
        {model.model_fields["kind"].default: model for model in get_args(get_args(union)[0])}
        for union in (Feature, Label)
    )
    # Words for the page are the same for all kinds; everything else has an example for each kind.
    shared = set(FieldTexts.model_fields)
    wanted = {("", key) for key in shared}
    for model in (*features.values(), *labels.values(), Dialect, PublicationTexts, Contact, Domain):
        wanted |= {(model.__name__, key) for key in model.model_fields if key not in shared}
    seen = set()
    for example in EXAMPLES:
        content = tomllib.loads(example)
        texts = content.get("publication", {})
        parts = [(Domain, content), (Dialect, content.get("table", {})), (PublicationTexts, texts)]
        parts += [(features[part["kind"]], part) for part in content.get("features", [])]
        parts += [(labels[part["kind"]], part) for part in [content.get("label")] if part]
        parts += [(Contact, texts.get("contact", {}))]
        seen |= {("" if key in shared else model.__name__, key) for model, part in parts for key in part}
    assert wanted <= seen
    for _, key in wanted:
        assert any(spelt in PAGE for spelt in (f"`{key}`", f"`{key} =", f"`[{key}]`", f"`[[{key}]]`")), key
