"""What plans, certificates, releases and reports say cannot be altered afterwards."""

import dataclasses
import importlib
import pkgutil

import pytest

import expost

ROOMS = ("losses", "privacy", "publication", "reports")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(expost.__path__, "expost.")
    if module.name.split(".")[1] in ROOMS
]


@pytest.mark.parametrize("name", MODULES)
def test_records_are_frozen(name):
    ours = [one for one in vars(importlib.import_module(name)).values() if isinstance(one, type)]
    records = [one for one in ours if one.__module__ == name and dataclasses.is_dataclass(one)]
    assert [one.__name__ for one in records if not one.__dataclass_params__.frozen] == []


def test_there_are_records_to_look_at():
    assert {"expost.privacy.plan", "expost.reports.records"} <= set(MODULES)
