"""A worker that dies changes no bit, and a cluster may be encrypted."""

import os
import signal
import sys
import threading
import time

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

import expost
from expost.engines.cluster import DaskEngine
from expost.exceptions import EngineError
from expost.fitting import noise

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]


def table(n=40_000, d=8):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{k}" for k in range(d)])
    return frame.assign(y=rng.integers(0, 2, n))


def slow_frame(delay):
    """Partitions that take a while, so that a pass can be caught in the middle."""

    def wait(part):
        import time

        time.sleep(delay)
        return part

    return dd.from_pandas(table(), npartitions=8).map_partitions(wait, meta=table(1))


def everything(lazy):
    model = expost.LogisticRegression(norm=1.0, classes=[0, 1], report="adaptive", random_state=0)
    model.fit(lazy, "y")
    yield from (model.coef_, model._private.hessian, model._private.gradient)
    yield model.ex_post_losses(lazy, "y")
    yield from model.publication_.bounds(lazy, "y").figures


@pytest.mark.parametrize("after", [0.5, 1.5, 3.0])
def test_a_worker_killed_in_mid_pass_changes_no_bit_and_draws_nothing_again(after, monkeypatch):
    truth = list(everything(expost.scan(slow_frame(0.0))))
    draws = []
    original = noise.SeededNoise.tilt
    monkeypatch.setattr(
        noise.SeededNoise, "tilt", lambda *rest, **more: draws.append(1) or original(*rest, **more)
    )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        victim = min(client.run(os.getpid).values())
        killer = threading.Timer(after, os.kill, (victim, signal.SIGKILL))
        killer.start()
        try:
            found = list(everything(expost.scan(slow_frame(0.1), client=client)))
        finally:
            killer.cancel()
        assert victim not in client.run(os.getpid).values()
    for one, other in zip(truth, found, strict=True):
        np.testing.assert_array_equal(other, one)
    assert draws == [1]


class Fatal:
    """A part that kills whoever reads it."""

    def blocks(self, length):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)


def test_a_part_that_kills_every_worker_ends_the_pass_with_a_sentence():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(EngineError, match=r"did not finish a pass \(KilledWorker\)"),
    ):
        list(DaskEngine(client).map(list, [Fatal()], 1))


def test_a_cluster_may_be_encrypted(tmp_path, monkeypatch):
    """With certificates in Dask's own configuration, as docs/scale.md shows."""
    from ward import run, ward

    security = Security.temporary()
    names = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in names.items():
        (tmp_path / f"{name}.pem").write_text(text)
    domain, records = ward(tmp_path)
    settings = {
        "distributed.comm.tls.ca-file": str(tmp_path / "ca.pem"),
        "distributed.comm.tls.client.cert": str(tmp_path / "cert.pem"),
        "distributed.comm.tls.client.key": str(tmp_path / "key.pem"),
    }
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", security=security, protocol="tls://"
    ) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        refusal = run("fit", domain, records, "-o", tmp_path / "p.json", "--dask", address)
        assert refusal.exit_code == 1
        assert "certificates" in refusal.stderr
        with dask.config.set(settings):
            fitted = run("fit", domain, records, "-o", tmp_path / "p.json", "--dask", address)
        assert fitted.exit_code == 0, fitted.output
    assert expost.Publication.load(tmp_path / "p.json").plan.epsilon <= 1.0


def test_a_slow_worker_delays_results_and_does_not_reorder_them():
    class Sleepy:
        def __init__(self, place):
            self.place = place

        def blocks(self, length):
            import time

            time.sleep(0.3 if self.place % 7 == 0 else 0.0)
            yield self.place

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        start = time.monotonic()
        found = list(DaskEngine(client).map(sum, [Sleepy(k) for k in range(28)], 1))
    assert found == list(range(28))
    assert time.monotonic() - start < 10.0
