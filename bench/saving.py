"""Write the files of numbers that the documents quote: one per benchmark, in ``bench/results``."""

import json
from pathlib import Path

from expost._common.files import atomic_write

RESULTS = Path(__file__).parent / "results"
DIGITS = 6


def save(path, document):
    """Write the numbers with enough digits to quote, without date or machine."""
    with atomic_write(Path(path)) as file:
        file.write(json.dumps(_rounded(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _rounded(value):
    if isinstance(value, dict):
        return {str(key): _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value
