"""Files are written completely or not at all, with and without files that have no name."""

import os
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import expost
from expost._common import files
from expost._common.files import atomic_write, atomic_write_bytes, check_output, same_file
from expost.exceptions import FileError


def named(name, mode):
    """A new file on a system that has none without a name."""
    return os.open(name, files._NEW, mode), True


@pytest.fixture(params=[True, False], ids=["nameless", "named"])
def folder(request, tmp_path, monkeypatch):
    if not request.param:
        monkeypatch.setattr(files, "_create", named)
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


@pytest.mark.skipif(os.name != "posix", reason="files have no modes")
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


def test_check_output_finds_a_folder_in_the_way_and_makes_none(folder):
    check_output(folder / "file.txt")
    assert not folder.parent.exists()
    folder.mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        check_output(folder)
    (folder / "file.txt").touch()
    for below in (folder / "file.txt" / "more.txt", folder / ("x" * 300)):
        with pytest.raises(OSError, match=r"Not a directory|too long"):
            check_output(below)
    assert [path.name for path in folder.iterdir()] == ["file.txt"]


def test_a_failure_removes_the_folders_made_for_the_file(folder):
    with suppress(KeyboardInterrupt), atomic_write(folder / "file.txt") as file:
        file.write("some")
        raise KeyboardInterrupt
    assert not folder.parent.exists()
    with pytest.raises(OSError, match="too long"), atomic_write(folder / ("x" * 300) / "file.txt"):
        pass
    assert not folder.parent.exists()


def test_a_name_that_was_taken_meanwhile_is_left_alone_and_nothing_is_lost(folder):
    path = folder / "file.txt"
    for number in (2, 3):
        writing = atomic_write(path, overwrite=False)
        writing.__enter__().write(f"mine {number}")
        path.write_text("theirs")
        with pytest.raises(FileError, match=rf"complete, in .*file-{number}\.txt"):
            writing.__exit__(None, None, None)
        assert path.read_text() == "theirs"
        assert (folder / f"file-{number}.txt").read_text() == f"mine {number}"
        path.unlink()
    assert len(list(folder.iterdir())) == 2


def test_without_links_a_name_is_still_taken_only_once(folder, monkeypatch):
    monkeypatch.setattr(files, "_create", named)

    def no_links(*_, **__):
        raise PermissionError("this file system has no links")

    monkeypatch.setattr(os, "link", no_links)
    path = folder / "file.txt"
    with atomic_write(path, overwrite=False) as file:
        file.write("first")
    with pytest.raises(FileError, match="exists"), atomic_write(path, overwrite=False):
        pass
    assert path.read_text() == "first"
    assert list(folder.iterdir()) == [path]


def test_room_is_reserved_and_given_back(folder):
    with atomic_write_bytes(folder / "file", room=1 << 20) as file:
        assert os.fstat(file.fileno()).st_size >= (1 << 20) * hasattr(os, "posix_fallocate")
        file.write(b"short")
    assert (folder / "file").read_bytes() == b"short"


def test_one_file_is_one_file_however_it_is_spelt(tmp_path):
    (tmp_path / "sub").mkdir()
    one = tmp_path / "one.txt"
    assert same_file(one, tmp_path / "sub" / ".." / "one.txt")
    assert same_file(one, tmp_path / "ONE.txt")  # neither exists: some file systems make no difference
    assert not same_file(one, tmp_path / "two.txt")
    one.touch()
    (tmp_path / "hard").hardlink_to(one)
    (tmp_path / "soft").symlink_to(one)
    (tmp_path / "folder").symlink_to(tmp_path)
    for other in ("hard", "soft", "folder/one.txt", "sub/../one.txt"):
        assert same_file(one, tmp_path / other)
    (tmp_path / "two.txt").write_text("")
    assert not same_file(one, tmp_path / "two.txt")


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_the_system_refuses_at_the_end_is_kept_beside(folder, overwrite, monkeypatch):
    """A name that cannot be given, such as a mounted or immutable file, must not cost the content."""
    path = folder / "file.txt"
    link, replace = os.link, os.replace

    def refusing(real):
        def call(source, target, **options):
            if Path(target) == path:
                raise OSError(16, "Device or resource busy")
            real(source, target, **options)

        return call

    monkeypatch.setattr(os, "link", refusing(link))
    monkeypatch.setattr(os, "replace", refusing(replace))
    if overwrite:
        folder.mkdir(parents=True)
        path.write_text("old")
    writing = atomic_write(path, overwrite=overwrite)
    writing.__enter__().write("dear")
    with pytest.raises(FileError, match=r"busy\)\. What was made is complete, in .*file-2\.txt"):
        writing.__exit__(None, None, None)
    assert (folder / "file-2.txt").read_text() == "dear"
    assert not list(folder.glob(".expost*"))


def test_a_name_too_long_in_a_new_folder_is_refused_at_once(folder):
    with pytest.raises(OSError, match="too long"), atomic_write(folder / ("x" * 300)):
        pytest.fail("it was opened")
    assert not folder.parent.exists()


def test_a_ledger_is_never_replaced_and_another_database_may_be(tmp_path):
    book = tmp_path / "ledger.db"
    expost.Ledger(book).account("t", epsilon=1.0, delta=1e-6)
    before = book.read_bytes()
    for write in (atomic_write, check_output):
        with pytest.raises(FileError, match="is a ledger, which nothing replaces"), ExitStack() as stack:
            stack.enter_context(write(book, overwrite=True))
    assert book.read_bytes() == before
    other = tmp_path / "other.db"
    other.write_bytes(before[:68] + b"\0\0\0\0" + before[72:])
    with atomic_write(other) as file:
        file.write("new")
    assert other.read_text() == "new"
