"""Tens of thousands of damaged and forged files are refused in one sentence or read as an equal object."""

import copy
import json
import random
import sys

import numpy as np
import pytest
from publications import KINDS, document, published, signed, squared

from expost import Publication
from expost._common import strict_json
from expost.exceptions import PublicationError
from expost.privacy import profile
from expost.publication import checks

ORIGINALS = [published(kind) for kind in KINDS] + [squared()]
TEXTS = [publication.to_json().encode() for publication in ORIGINALS]
TOKENS = [
    *(b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"-0.0", b"5e-324", b"1e-400", b"-", b"e"),
    *(b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"//", b"/* */", b"\r\n"),
    *(b"\\u0000", b"\\ud800", b"\xff", b"\x00", b"\xef\xbb\xbf", b"\xe2\x80\xa8"),
    *(b"9" * 400, b"0." + b"1" * 400, b"[" * 200, b'{"a":' * 200, b'"format"', b"expost-publication/2"),
]
VALUES = [
    *(None, True, False, 0, 1, -1, 2**53 + 1, 10**39, -0.0, 0.5, 1e-320, 1e-12, 1e300, 1.7e308, -1.0),
    *(float("nan"), float("inf"), "", "1", "logistic", "INSECURE: ", "\ud800", "a" * 500),
    *([], [1.0], [0.0] * 3, [0.0] * 6, [[1.0]], ["a", "b"], {}, {"name": "logistic"}, {"name": "squared"}),
    *({"name": "smoothed_hinge", "scale": 1e-9}, {"name": "pseudo_huber", "threshold": 1e20}),
]
# From below the smallest double that has all its digits to near the largest.
EXTREMES = [5e-324, 1e-300, *(10.0**k for k in range(-32, 33, 4)), 1e300, 1.7e308]
# Evaluations of the privacy profile for one file: nearly three times what the hardest of these takes.
MOST_WORK = 20_000_000


def damaged_bytes(rng):
    """Flip bits, cut, splice in part of another file, insert a token, or repeat a stretch."""
    data = bytearray(rng.choice(TEXTS))
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        place, other = rng.randrange(len(data)), rng.randrange(len(data))
        match rng.randrange(6):
            case 0:
                data[place] ^= 1 << rng.randrange(8)
            case 1:
                del data[place:]
            case 2:
                donor = rng.choice(TEXTS)
                start = rng.randrange(len(donor))
                data[place : place + rng.randrange(40)] = donor[start : start + rng.randrange(200)]
            case 3:
                data[place:place] = rng.choice(TOKENS)
            case 4:
                del data[min(place, other) : min(place, other) + rng.randrange(1, 30)]
            case 5:
                low, high = sorted((place, other))
                data[low:low] = data[low:high]
        if not data:
            break
    return bytes(data)


def a_value(rng):
    return copy.deepcopy(rng.choice(VALUES))


def places(node, path=()):
    """Every key and index in a document, as paths."""
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def holder(node, path):
    for key in path[:-1]:
        node = node[key]
    return node


def damaged_document(rng, kind):
    """Replace, swap, delete, nest or scale values, rename or add keys; the JSON stays well formed."""
    fields = document(kind)
    for _ in range(rng.choice([1, 1, 2, 4])):
        paths = [*places(fields)]
        path = rng.choice(paths)
        node, key = holder(fields, path), path[-1]
        match rng.randrange(6):
            case 0:
                node[key] = a_value(rng)
            case 1:
                other = rng.choice(paths)
                if other[: len(path)] != path and path[: len(other)] != other:
                    place = holder(fields, other)
                    node[key], place[other[-1]] = place[other[-1]], node[key]
            case 2:
                del node[key]
            case 3:
                for _ in range(rng.choice([1, 3, 40])):
                    node[key] = [node[key]]
            case 4:
                if isinstance(node[key], float):
                    node[key] *= rng.choice([-1.0, 1e-3, 0.9, 1.0 + 1e-12, 1.1, 10.0, 1e200])
                else:
                    node[key] = rng.choice([[node[key], copy.deepcopy(node[key])], {"a": node[key]}])
            case 5:
                if isinstance(node, dict):
                    node[rng.choice(["x", "n_rows", "name", str(key).upper()])] = a_value(rng)
                else:
                    node.append(a_value(rng))
    return fields


def damaged_text(rng):
    text = json.dumps(damaged_document(rng, rng.choice(KINDS)))
    if rng.random() < 0.2:  # a key twice
        key = rng.choice(['"norm"', '"plan"', '"soft"', '"epsilon"', '"sha256"'])
        text = text.replace(key, f"{key}: {json.dumps(a_value(rng))}, {key}", 1)
    return text


def forged_text(rng):
    """A changed document with a matching hash, so that every check after the hash is reached."""
    fields = damaged_document(rng, rng.choice(["independent", "independent", "independent", *KINDS]))
    try:
        return signed(fields)
    except ValueError:  # not a number, which has no hash
        return json.dumps(fields)


def forged_plan(rng):
    """Public numbers changed a little or to an extreme, with a matching hash: the certificate must notice."""
    kind = rng.choice(KINDS)
    fields = document(kind)
    fields["loss"], fields["classes"] = rng.choice(
        [
            ({"name": "logistic", "soft": False}, [0, 1]),
            ({"name": "logistic", "soft": True}, None),
            ({"name": "smoothed_hinge", "scale": rng.choice(EXTREMES)}, [-1, 1]),
            ({"name": "pseudo_huber", "threshold": rng.choice(EXTREMES)}, None),
            ({"name": "pseudo_huber", "threshold": 1.0}, None),
        ]
    )
    for name in rng.sample(["epsilon", "delta", "sigma", "l2", "norm", "sigma_hessian"], rng.randrange(1, 4)):
        holder = fields if name == "norm" else fields["plan"]
        if holder[name] is not None:
            holder[name] = rng.choice(
                [*EXTREMES, 0.99 * holder[name], 1.01 * holder[name], 2.0 * holder[name]]
            )
    return signed(fields)


def peak_kilobytes():
    """The most memory that this process has held, or 0 on a system that does not say."""
    try:
        import resource
    except ImportError:
        return 0
    # macOS counts bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)


@pytest.fixture
def work(monkeypatch):
    """How many numbers each evaluation of the privacy profile took; nothing else in reading takes long."""
    sizes = []
    bound = profile.WorstSlope.left

    def counted(self, noise, low, high):
        sizes.append(np.broadcast(noise, low, high).size)
        return bound(self, noise, low, high)

    monkeypatch.setattr(profile.WorstSlope, "left", counted)
    return sizes


@pytest.mark.long
@pytest.mark.parametrize(
    ("damage", "cases", "seed"),
    [
        (damaged_bytes, 2_000, 1),
        (damaged_text, 600, 2),
        (forged_text, 250, 3),
        (forged_plan, 150, 4),
        pytest.param(damaged_bytes, 40_000, 5, marks=pytest.mark.slow),
        pytest.param(damaged_text, 25_000, 6, marks=pytest.mark.slow),
        pytest.param(forged_text, 5_000, 7, marks=pytest.mark.slow),
        pytest.param(forged_plan, 3_000, 8, marks=pytest.mark.slow),
    ],
)
def test_a_damaged_file_is_refused_or_read_as_an_equal(damage, cases, seed, work):
    """No other exception, little work and little memory; an accepted file states only what is true."""
    rng = random.Random(seed)
    before = peak_kilobytes()
    most, accepted = 0, 0
    for _ in range(cases):
        text = damage(rng)
        work.clear()
        checks._certified.cache_clear()
        try:
            publication = Publication.from_json(text)
        except PublicationError as error:
            message = str(error)
            assert message.startswith("cannot use this publication: ")
            assert "\n" not in message
            assert len(message) < 500
        else:
            accepted += 1
            if damage in (damaged_bytes, damaged_text):
                assert publication in ORIGINALS
            else:
                assert Publication.from_json(publication.to_json()) == publication
                plan = publication.release.plan
                assert plan.epsilon == float("inf") or plan.delta_at(plan.epsilon) <= plan.delta
        most = max(most, sum(work))
    assert accepted > 0
    assert most > 0
    assert most < MOST_WORK
    assert peak_kilobytes() - before < 300_000


@pytest.mark.parametrize(
    ("start", "unit", "count", "words"),
    [
        ("", "[", 33, "nested deeper than 32 levels"),
        ("[", "[],", 60_000, "or 30000 lists and objects"),
        ("[", "0,", 4_000_001, "more than 4000000 values"),
        ("{", '"k":0,', 200_001, "200000 keys"),
        ("{", " ", strict_json.MAX_BYTES, "longer than 128 MiB"),
    ],
    ids=["depth", "lists", "values", "keys", "length"],
)
def test_files_built_to_exhaust_a_reader_are_refused_unparsed(start, unit, count, words, monkeypatch):
    monkeypatch.setattr(strict_json.json, "loads", lambda *_, **__: pytest.fail("it was parsed"))
    with pytest.raises(PublicationError, match=words):
        Publication.from_json(start + unit * count)
