"""Downloads of data sets from a local server: checked, kept complete, or refused."""

import hashlib
import re
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from at_hand import need

from papers.datasets import DataUnavailable, available, credit, files, kidney
from papers.datasets.files import SOURCES, Source, fetch
from papers.datasets.parsing import CREDIT_CODES, parse_wine

TINY = b'"acid";"quality"\n1.5;6\n2.5;7\n'
FILE = "tiny.csv"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A data folder and a cache, both empty, and one small data set that is in neither."""
    folder, cache = tmp_path / "folder", tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("EXPOST_DATA", str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(files, "_cache", lambda: cache)
    source = Source(FILE, f"ml/{FILE}", parse_wine, hashlib.sha256(TINY).hexdigest())
    monkeypatch.setitem(SOURCES, "tiny", source)
    return folder, cache


@pytest.fixture
def server(monkeypatch):
    """What a local server sends, by path; it announces more bytes than it sends where a text is cut off."""
    pages, asked = {}, []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body, promised = pages.get(self.path, (None, 0))
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(promised))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setattr(files, "UCI", f"http://127.0.0.1:{serving.server_port}")
        yield lambda path, body, promised=None: pages.update({path: (body, promised or len(body))}) or asked
        serving.shutdown()
        thread.join()


def refusal(words):
    with pytest.raises(DataUnavailable, match=re.escape(words)) as caught:
        fetch("tiny")
    return str(caught.value)


def test_a_file_is_downloaded_once_and_kept(places, server, capsys):
    _, cache = places
    asked = server(f"/ml/{FILE}", TINY)
    for _ in range(2):
        assert fetch("tiny") == {"acid": ["1.5", "2.5"], "quality": ["6", "7"]}
    assert asked == [f"/ml/{FILE}"]
    assert [path.name for path in cache.iterdir()] == [FILE]
    assert (cache / FILE).read_bytes() == TINY
    assert "100%" in capsys.readouterr().err  # the progress bar


def test_the_folder_comes_before_the_cache_and_the_cache_before_the_network(places, server):
    folder, cache = places
    asked = server(f"/ml/{FILE}", TINY)
    cache.mkdir()
    (folder / FILE).write_bytes(TINY)
    (cache / FILE).write_bytes(b"damaged")
    fetch("tiny")
    (folder / FILE).unlink()
    assert str(cache / FILE) in refusal("SHA-256")
    assert asked == []


@pytest.mark.parametrize("body", [TINY.replace(b"6", b"8642"), TINY[:-3], b"<html>moved</html>", b"\xff"])
def test_a_file_with_another_digest_is_not_kept(places, server, body):
    folder, cache = places
    server(f"/ml/{FILE}", body)
    message = refusal("does not have the expected SHA-256 and was not kept. Save that address as tiny.csv")
    assert FILE in message
    assert str(folder) in message
    assert "8642" not in message
    assert not cache.exists()


def test_a_broken_connection_leaves_no_file(places, server):
    server(f"/ml/{FILE}", TINY[:10], promised=len(TINY))
    refusal("and downloading")
    assert not places[1].exists()


def test_an_address_that_does_not_exist_is_named(places, server):
    server("/elsewhere", b"")
    assert f"/ml/{FILE} failed (HTTPError). Save" in refusal("tiny.csv is neither in")


def test_without_a_network_one_sentence_says_where_it_looked_and_what_to_do(places, monkeypatch):
    folder, cache = places
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(files, "UCI", closed)
    assert refusal(FILE) == (
        f"{FILE} is neither in {folder} nor in {cache}, and downloading {closed}/ml/{FILE} failed "
        f"(ConnectionError). Save that address as {FILE} in a folder, and set EXPOST_DATA to the folder."
    )


def test_without_pooch_the_error_says_how_to_install_it(places, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert "pip install 'expost[paper]'" in refusal("needs pooch")


def test_without_a_writable_cache_every_use_downloads_again(places, server):
    places[1].write_text("a file where the folder should be")
    asked = server(f"/ml/{FILE}", TINY)
    assert fetch("tiny") == fetch("tiny")
    assert len(asked) == 2


def test_available_looks_in_the_folder_and_the_cache_and_for_every_part(places):
    folder, cache = places
    cache.mkdir()
    assert not available("wine")
    (folder / "winequality-red.csv").touch()
    assert not available("wine")
    (cache / "winequality-white.csv").touch()
    assert available("wine")
    assert not available("wine", "adult")


def at_hand(name):
    need(name)
    paths = [place / SOURCES[name].file for place in files._places()]
    return next(path.read_bytes() for path in paths if path.is_file())


@pytest.mark.slow
def test_ucis_csv_of_the_credit_data_is_the_same_table(request):
    raw = at_hand("credit")
    table = credit()
    served = ",".join(CREDIT_CODES).encode() + b"\n" + raw.partition(b"\n")[2]
    served = served.replace(b"\n", b"\r\n")
    # Public repositories record this SHA-256 for the CSV that UCI serves.
    recorded = "45bcf4df62ff2e237a74eb155cabfb4bbbc171219a0637daef44fdad07503dd0"
    assert hashlib.sha256(served).hexdigest() == recorded
    request.getfixturevalue("places")
    request.getfixturevalue("server")("/static/public/350/data.csv", served)
    assert np.array_equal(credit().rows(), table.rows())


def test_spaces_decimals_and_empty_cells_do_not_change_the_kidney_digest(request):
    """UCI's CSV has tabs around some cells, whole numbers with decimals, and nothing where one is missing."""
    raw = at_hand("kidney")
    table = kidney()
    served = raw.replace(b"?", b"").replace(b",yes,", b",\tyes,").replace(b",ckd\n", b",ckd\t\n")
    served = re.sub(rb"^(\d+),(\d+),", rb"\1.0,\2.0,", served, flags=re.MULTILINE)
    assert served != raw
    request.getfixturevalue("places")
    request.getfixturevalue("server")("/static/public/336/data.csv", served)
    assert np.array_equal(kidney().rows(), table.rows())
    assert np.array_equal(kidney().outcome, table.outcome)
