"""Find, download and check the files of the data sets."""

import io
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from papers.common import whole_file
from papers.datasets.base import DataUnavailable, check_choice
from papers.datasets.parsing import (
    Texts,
    digest_of_bytes,
    digest_of_content,
    parse_adult,
    parse_credit,
    parse_kidney,
    parse_wine,
)

ROOT = Path(__file__).resolve().parents[2]
UCI = "https://archive.ics.uci.edu"
TIMEOUT = 30.0


@dataclass(frozen=True)
class Source:
    """A file of the UCI repository.

    Two of the tables exist in several formats; their digest is that of the content.
    """

    file: str
    path: str
    parse: Callable[[bytes], Texts]
    sha256: str
    of_content: bool = False

    def read(self, raw: bytes) -> Texts | None:
        """The columns of the published file, or nothing where ``raw`` is not that file."""
        try:
            if self.of_content:
                columns = self.parse(raw)
                return columns if digest_of_content(columns) == self.sha256 else None
            return self.parse(raw) if digest_of_bytes(raw) == self.sha256 else None
        except ValueError:
            return None


SOURCES = {
    "credit": Source(
        "credit_default.csv",
        "static/public/350/data.csv",
        parse_credit,
        "dd282931577bb10acbd5dfa3333e3df3f62331a2659c0af67b8354f0f33e22bd",
        of_content=True,
    ),
    "kidney": Source(
        "chronic_kidney_disease.csv",
        "static/public/336/data.csv",
        parse_kidney,
        "43dad9af16bc28263096fdc157c58073d0c0b8b4446497751390a4ea275e82a3",
        of_content=True,
    ),
    "wine, red": Source(
        "winequality-red.csv",
        "ml/machine-learning-databases/wine-quality/winequality-red.csv",
        parse_wine,
        "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
    ),
    "wine, white": Source(
        "winequality-white.csv",
        "ml/machine-learning-databases/wine-quality/winequality-white.csv",
        parse_wine,
        "76c3f809815c17c07212622f776311faeb31e87610d52c26d87d6e361b169836",
    ),
    "adult, train": Source(
        "adult.data",
        "ml/machine-learning-databases/adult/adult.data",
        parse_adult,
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    "adult, test": Source(
        "adult.test",
        "ml/machine-learning-databases/adult/adult.test",
        parse_adult,
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
}


def available(*names: str) -> bool:
    """Whether all files of the named data sets are present, so that they need no network."""
    for name in names:
        check_choice("name", name, ("credit", "kidney", "wine", "adult"))
    sources = [source for key, source in SOURCES.items() if key.partition(",")[0] in names]
    return all(any((place / source.file).is_file() for place in _places()) for source in sources)


def fetch(key: str) -> Texts:
    """The columns of a data set: from the folder, else from the cache, else from UCI into the cache."""
    source = SOURCES[key]
    for place in _places():
        path = place / source.file
        if path.is_file():
            columns = source.read(path.read_bytes())
            if columns is not None:
                return columns
            raise DataUnavailable(
                f"{path} is damaged or not the file that UCI published: its SHA-256 is not the expected one. "
                f"Remove it to have it downloaded, or save {UCI}/{source.path} in its place."
            )
    return _download(source)


def _folder() -> Path:
    """The folder of data sets: the one that ``EXPOST_DATA`` names, or one next to the checkout."""
    return Path(os.environ.get("EXPOST_DATA") or ROOT.parent / "shared" / "data")


def _cache() -> Path:
    """The folder of downloads: in the user's cache, not in the checkout."""
    return Path(_pooch().os_cache("expost"))


def _places() -> list[Path]:
    """Where a file may already be; without pooch nothing has been downloaded."""
    return [_folder(), _cache()] if find_spec("pooch") else [_folder()]


def _download(source: Source) -> Texts:
    """Download a file, check it, and only then keep it."""
    address = f"{UCI}/{source.path}"
    missing = f"{source.file} is neither in {_folder()} nor in {_cache()}"
    way_out = f"Save that address as {source.file} in a folder, and set EXPOST_DATA to the folder."
    try:
        raw = _receive(address)
    except OSError as error:  # any failure of the network, even of a certificate
        raise DataUnavailable(
            f"{missing}, and downloading {address} failed ({type(error).__name__}). {way_out}"
        ) from None
    columns = source.read(raw)
    if columns is None:
        raise DataUnavailable(
            f"{missing}, and what {address} sent does not have the expected SHA-256 and was not kept. "
            f"{way_out}"
        )
    # With a full disk the file is used now and downloaded again next time.
    with suppress(OSError), whole_file(_cache() / source.file) as file:
        file.write(raw)
    return columns


def _receive(address: str) -> bytes:
    """What a server sends, with a progress bar if there is a library to draw it."""
    received = io.BytesIO()
    responses: list[Any] = []  # pooch leaves them open after an error
    downloader = _pooch().HTTPDownloader(
        progressbar=find_spec("tqdm") is not None,
        timeout=TIMEOUT,
        hooks={"response": lambda response, **_: responses.append(response)},
    )
    try:
        downloader(address, received, None)
    finally:
        for response in responses:
            response.close()
    return received.getvalue()


def _pooch() -> Any:
    """The library that downloads; if it is missing, the error says how to install it."""
    try:
        import pooch
    except ImportError:
        raise DataUnavailable(
            "downloading a data set needs pooch, which is not installed: pip install 'expost[paper]', "
            "or set EXPOST_DATA to a folder that holds it."
        ) from None
    return pooch
