"""Shared set-up: tests import helpers from this folder, and property tests are reproducible."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
