"""Files are written completely or not at all, with and without files that have no name."""

import os
import stat
from contextlib import suppress

import pytest

from expost._common import files
from expost._common.files import atomic_write, atomic_write_bytes, check_writable


@pytest.fixture(params=[True, False], ids=["nameless", "named"])
def folder(request, tmp_path, monkeypatch):
    if not request.param:
        monkeypatch.setattr(files, "_nameless", lambda folder, mode: None)
    return tmp_path / "new" / "folder"


def test_a_file_appears_at_the_end_and_replaces_the_old(folder):
    path = folder / "file.txt"
    for text in ("one\né\r\n", "two"):
        with atomic_write(path) as file:
            file.write(text)
            assert not path.exists() or path.read_bytes() == "one\né\r\n".encode()
        assert path.read_bytes() == text.encode()
    with atomic_write_bytes(path) as file:
        file.write(b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert list(folder.iterdir()) == [path]


def test_only_its_owner_can_read_a_private_file(folder):
    for private, mode in ((True, 0o600), (False, 0o644)):
        before = os.umask(0o022)
        try:
            with atomic_write(folder / "file.txt", private=private) as file:
                file.write("text")
        finally:
            os.umask(before)
        assert stat.S_IMODE((folder / "file.txt").stat().st_mode) == mode


def test_an_interruption_leaves_only_the_old_file(folder):
    path = folder / "file.txt"
    with atomic_write(path) as file:
        file.write("old")
    with suppress(KeyboardInterrupt), atomic_write(path) as file:
        file.write("new" * 10_000)
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(folder.iterdir()) == [path]


def test_check_writable_finds_a_folder_in_the_way(folder):
    folder.mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        check_writable(folder)
    check_writable(folder / "file.txt")
    assert not list(folder.iterdir())
