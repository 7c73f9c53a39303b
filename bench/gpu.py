"""Measure fits and exact losses of a table that lies on a GPU, or is sent there.

    python -m bench.gpu [--cases doubles,floats,wide,softmax,sent] [--repeats 5] [--host] [--scale 1.0]

It needs PyTorch, NumPy and SciPy. The noise is seeded: nothing here is private. Times are
medians after one run that is not counted. A floor is what a pass would take if it did nothing but read the
table, at the bandwidth of a copy, or nothing but multiply, at the rate of a matrix product. ``--host`` fits
the same rows with NumPy on all cores too, once.
"""

import argparse
import statistics
import time
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

import bench.bare  # noqa: F401
from expost._common.namespaces import Space
from expost.data.blocks import ArrayTable
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.placed import PlacedSource
from expost.data.sources import ArraySource
from expost.fitting.certified.pairs import exact_in
from expost.fitting.ex_post import ex_post_terms, streamed_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.objective import Objective
from expost.losses import LogisticLoss, SoftmaxLoss
from expost.privacy.calibration import calibrate


@dataclass(frozen=True)
class Case:
    """A table of random rows."""

    rows: int
    columns: int
    kind: torch.dtype = torch.float64
    classes: int = 2
    compared: int = 200_000
    """So many of its rows are fitted by NumPy too, to compare."""
    most_on_host: int = 1 << 62
    """No more rows than this are fitted by NumPy on all cores, to measure it."""

    @property
    def size(self):
        """The bytes of the table."""
        return self.rows * self.columns * self.kind.itemsize

    @property
    def products(self):
        """The flops of the Hessian of its rows, and of everyone's determinant."""
        outputs = self.classes - 1
        return self.rows * self.columns**2 * outputs * (outputs + 1)

    @property
    def loss(self):
        """The logistic loss, or softmax where there are more classes."""
        return LogisticLoss() if self.classes == 2 else SoftmaxLoss(self.classes)


CASES = {
    "doubles": Case(100_000_000, 50),
    "floats": Case(400_000_000, 50, torch.float32),
    "wide": Case(1_000_000, 2000, compared=20_000, most_on_host=250_000),
    "softmax": Case(1_000_000, 768, classes=10, compared=4000, most_on_host=50_000),
    "sent": Case(20_000_000, 50),
}


def waited(device):
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def median(work, device, repeats):
    """The median of the seconds that some work takes, after one run that is not counted."""
    seconds = []
    for _ in range(repeats + 1):
        waited(device)
        start = time.perf_counter()
        work()
        waited(device)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def ceilings(device):
    """Bytes per second of a copy, read and written, and flops per second of products of doubles."""
    small = device.type != "cuda"
    source = torch.randn(1 << (22 if small else 29), dtype=torch.float64, device=device)
    target = torch.empty_like(source)
    copy = median(lambda: target.copy_(source), device, 5)
    size = 512 if small else 8192
    square = torch.randn(size, size, dtype=torch.float64, device=device)
    product = median(lambda: square @ square, device, 5)
    return 16 * len(source) / copy, 2 * size**3 / product


def table(case, device):
    """Rows of length about one, some of them longer, and labels that linear predictors make likely."""
    random = torch.Generator(device).manual_seed(0)
    X = torch.empty(case.rows, case.columns, dtype=case.kind, device=device)
    y = torch.empty(case.rows, dtype=torch.float64, device=device)
    theta = torch.linspace(-2.0, 2.0, case.columns, dtype=torch.float64, device=device)
    scores = torch.stack([theta.roll(7 * k) for k in range(case.classes)], dim=1)
    scores[:, 0] = 0.0
    length = max(1, (1 << 26) // case.columns)
    for low in range(0, case.rows, length):
        block = X[low : low + length]
        block.normal_(generator=random).mul_(0.95 / case.columns**0.5)
        luck = torch.rand(len(block), case.classes, generator=random, dtype=torch.float64, device=device)
        y[low : low + length] = torch.argmax(block.double() @ scores - torch.log(-torch.log(luck)), dim=1)
    return X, y


def encoded(X, y, device=None):
    """Records of a tensor, or of a NumPy matrix, whose rows may be sent to a device."""
    design = Design(X.shape[1], 1.0, True)
    if isinstance(X, np.ndarray):
        space = None if device is None else Space.named(device)
        return Encoded(ArraySource(ArrayTable(X), y), design, device=space)
    return Encoded(PlacedSource.of(X).labelled(y, None), design)


def plan_of(case):
    return calibrate(
        loss=case.loss, norm=1.0, epsilon=1.0, delta=1e-6, rows_at_most=case.rows, fit_intercept=True
    )


def fitted(plan, records, device):
    """A fit and the seconds of its steps."""
    times = []

    def step(name):
        waited(device)
        times.append((name, time.perf_counter()))

    release, private = perturb(plan, records, noise=SeededNoise(0), step=step)
    step("end")
    steps = {name: after - before for (name, before), (_, after) in pairwise(times)}
    return release, private, steps


def losses_of(private, records, loss):
    return [terms.loss for terms in streamed_terms(private, records, loss, member=True)]


def compare(case, X, y):
    """Print how far coefficients and losses of some rows are from NumPy's."""
    case = replace(case, rows=min(case.rows, case.compared))
    X, y = X[: case.rows], y[: case.rows]
    plan = plan_of(case)
    there = fitted(plan, encoded(X, y), X.device)
    mine = torch.cat(losses_of(there[1], encoded(X, y), plan.loss)).cpu().numpy()
    X, y = X.cpu().numpy(), y.cpu().numpy()
    here = fitted(plan, encoded(X, y), torch.device("cpu"))
    terms = ex_post_terms(here[1], encoded(X, y), plan.loss, member=True)
    gap = np.abs(mine - terms.loss)
    sizes = np.abs(terms.determinant) + np.abs(terms.quadratic) + np.abs(terms.inner_product)
    apart = np.max(np.abs(there[0].coefficients - here[0].coefficients))
    relative = gap / terms.loss
    print(
        f"  off NumPy by: coefficients {apart:.1e}; losses {np.max(gap / sizes):.1e} of their terms' sizes;"
    )
    print(
        f"    relative {np.median(relative):.1e} at the median, {np.max(relative):.1e} at most; "
        f"{np.mean(relative > 1e-8):.5%} of {case.rows:,} rows beyond 1e-8",
        flush=True,
    )


def passes(plan, records, release, device, repeats):
    """Seconds of one pass of each kind."""
    objective = Objective(records.checked_for(plan.loss, 1.0), plan.loss, l2=plan.l2)
    theta = release.coefficients
    kinds = {"gradient": None, "Hessian, single": np.float32, "Hessian, double": np.float64}
    return {
        name: median(lambda kind=kind: objective.evaluate(theta, hessian=kind), device, repeats)
        for name, kind in kinds.items()
    }


def shown(runs):
    """Print the medians of the steps of some fits, the first not counted, and return that of the whole."""
    for step in runs[0][2]:
        print(f"  {step}: {statistics.median(run[2][step] for run in runs[1:]):.3f} s", flush=True)
    whole = statistics.median(sum(run[2].values()) for run in runs[1:])
    certificate = statistics.median(run[2]["Certifying the minimiser"] for run in runs[1:])
    print(f"  fit: {whole:.3f} s, without its certificate {whole - certificate:.3f} s", flush=True)
    return whole


def on_the_host(case, X, y, fit, exact):
    """Print what the same rows, or as many as fit, take with NumPy on all cores."""
    rows = min(case.rows, case.most_on_host, (40 << 30) // (case.columns * case.kind.itemsize))
    some = replace(case, rows=rows)
    X, y = X[:rows].cpu().numpy(), y[:rows].cpu().numpy()
    _, private, steps = fitted(plan_of(some), encoded(X, y), torch.device("cpu"))
    whole = sum(steps.values()) * case.rows / rows
    start = time.perf_counter()
    losses_of(private, encoded(X, y), case.loss)
    seconds = (time.perf_counter() - start) * case.rows / rows
    print(
        f"  NumPy on the host, {rows / case.rows:.0%} of the rows in proportion: fit {whole:.1f} s, "
        f"{whole / fit:.0f} times as long; exact losses {seconds:.1f} s, {seconds / exact:.0f} times",
        flush=True,
    )


def measure(name, case, device, arguments, rates):
    X, y = table(case, device)
    print(
        f"\n{name}: {case.rows:,} rows of {case.columns}, {case.classes} classes, {case.size / 1e9:.1f} GB",
        flush=True,
    )
    if name == "sent":
        return measure_sent(case, X.cpu().numpy(), y.cpu().numpy(), device, arguments)
    compare(case, X, y)
    plan, records = plan_of(case), encoded(X, y)
    print(f"  arithmetic is exact there: {exact_in(records.kernels_in)}")
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    fit = shown(runs := [fitted(plan, records, device) for _ in range(arguments.repeats + 1)])
    release, private, _ = runs[-1]
    exact = median(lambda: losses_of(private, records, plan.loss), device, arguments.repeats)
    print(f"  exact losses: {exact:.3f} s")
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device) - before
        print(f"  memory beside the table: {peak / 1e9:.2f} GB, {peak / case.size:.2f} of it")
    reading, products = case.size / rates[0], case.products / rates[1]
    print(f"  floors of one pass: reading {reading:.3f} s, products of a Hessian {products:.3f} s")
    for kind, seconds in passes(plan, records, release, device, min(arguments.repeats, 3)).items():
        print(f"  one pass, {kind}: {seconds:.3f} s", flush=True)
    if arguments.host:
        on_the_host(case, X, y, fit, exact)
    return None


def measure_sent(case, X, y, device, arguments):
    """Rows in the host's memory, sent to the device in every pass."""
    plan, records = plan_of(case), encoded(X, y, device)
    repeats = min(arguments.repeats, 2)
    runs = [fitted(plan, records, device) for _ in range(repeats + 1)]
    fit, private = shown(runs), runs[-1][1]
    exact = median(lambda: losses_of(private, records, plan.loss), device, repeats)
    gradient = passes(plan, records, runs[-1][0], device, repeats)["gradient"]
    print(f"  exact losses: {exact:.3f} s")
    print(f"  one pass, gradient: {gradient:.3f} s, {case.size / gradient / 1e9:.1f} GB/s", flush=True)
    if arguments.host:
        on_the_host(case, torch.from_numpy(X), torch.from_numpy(y), fit, exact)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the rows")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--host", action="store_true", help="fit with NumPy too, once")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    rates = ceilings(device)
    print(f"copy {rates[0] / 1e12:.2f} TB/s, products of doubles {rates[1] / 1e12:.1f} TF/s")
    for name in arguments.cases.split(","):
        case = CASES[name]
        measure(
            name, replace(case, rows=max(1000, int(case.rows * arguments.scale))), device, arguments, rates
        )
        if device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
