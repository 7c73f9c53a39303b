"""Print a data set as the CSV file that ``expost fit`` reads: ``python -m papers.datasets kidney``."""

import argparse
import csv
import math
import os
import sys
from typing import Any

from expost.exceptions import ExpostError
from papers.datasets import DataSet, adult, credit, kidney, wine


def main() -> None:
    """Print the declared features and the outcome; a missing value is an empty cell."""
    parser = argparse.ArgumentParser(prog="python -m papers.datasets", description=__doc__)
    parser.add_argument("name", choices=("credit", "kidney", "wine", "adult"))
    parser.add_argument("part", nargs="?", help="red or white for wine, train or test for adult")
    options = parser.parse_args()
    try:
        if options.name == "wine":
            table = wine(options.part or "red")
        elif options.name == "adult":
            table = adult(options.part or "train")
        elif options.part:
            parser.error(f"{options.name} has no parts")
        else:
            table = credit() if options.name == "credit" else kidney()
    except ExpostError as error:
        sys.exit(str(error))
    try:
        _write(table)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader such as head closed the pipe; Python would report it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(table: DataSet) -> None:
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow([*table.columns, table.domain.label.name])
    columns = [values.tolist() for values in (*table.columns.values(), table.outcome)]
    lines.writerows([_cell(value) for value in row] for row in zip(*columns, strict=True))


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else repr(value)


if __name__ == "__main__":
    main()
