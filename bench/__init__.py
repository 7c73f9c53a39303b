"""Measurements of the library, each run from the root of the repository as ``python -m bench.NAME``."""
