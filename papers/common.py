"""What all papers use: the type of their arrays, and files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file of bytes that replaces the one at ``path`` only once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text to a file, all of it or nothing."""
    with whole_file(path) as file:
        file.write(text.encode())
