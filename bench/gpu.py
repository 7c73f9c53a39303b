"""Measure fits and exact losses of a table that lies on a GPU.

    python -m bench.gpu [--cases doubles,floats,wide] [--repeats 5] [--scale 1.0] [--device cuda]

It needs PyTorch, NumPy, SciPy and scikit-learn. The noise is seeded: nothing here is private. Times are
medians after one run that is not counted. A floor is what one pass would take if it did nothing but read the
table, at the bandwidth of a copy, or nothing but multiply it, at the rate of a matrix product.
"""

import argparse
import statistics
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from expost.data.blocks import ArrayTable
from expost.data.design import Design
from expost.data.encoded import Encoded
from expost.data.placed import PlacedSource
from expost.data.source import ArraySource
from expost.fitting.certified.dyadic import Dyadic
from expost.fitting.certified.placed_residual import PlacedResidual, exact_in
from expost.fitting.certified.point import Point
from expost.fitting.ex_post import ex_post_terms, streamed_terms
from expost.fitting.mechanism import perturb
from expost.fitting.noise import SeededNoise
from expost.fitting.vector_objective import objective_of
from expost.losses import LogisticLoss
from expost.privacy.calibration import calibrate


@dataclass(frozen=True)
class Case:
    """A table of random rows."""

    rows: int
    columns: int
    kind: torch.dtype

    @property
    def size(self):
        """The bytes of the table."""
        return self.rows * self.columns * (8 if self.kind == torch.float64 else 4)


CASES = {
    "doubles": Case(100_000_000, 50, torch.float64),
    "floats": Case(400_000_000, 50, torch.float32),
    "wide": Case(1_000_000, 2000, torch.float64),
}
# So many rows are fitted by NumPy too.
COMPARED = 200_000


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
    """Rows of length about one, some of them longer, and labels that a linear predictor makes likely."""
    random = torch.Generator(device).manual_seed(0)
    X = torch.empty(case.rows, case.columns, dtype=case.kind, device=device)
    y = torch.empty(case.rows, dtype=torch.float64, device=device)
    theta = torch.linspace(-2.0, 2.0, case.columns, dtype=torch.float64, device=device)
    length = max(1, (1 << 26) // case.columns)
    for low in range(0, case.rows, length):
        block = X[low : low + length]
        block.normal_(generator=random).mul_(0.95 / case.columns**0.5)
        chance = torch.sigmoid(block.double() @ theta)
        y[low : low + length] = (torch.rand(len(block), generator=random, device=device) < chance).double()
    return X, y


def encoded(X, y):
    """Records of a tensor, or of a NumPy matrix."""
    design = Design(X.shape[1], 1.0, True)
    if isinstance(X, np.ndarray):
        return Encoded(ArraySource(ArrayTable(X), y), design)
    return Encoded(PlacedSource.of(X).labelled(y, None), design)


def plan_of(rows):
    return calibrate(
        loss=LogisticLoss(), norm=1.0, epsilon=1.0, delta=1e-6, rows_at_most=rows, fit_intercept=True
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


def compare(X, y):
    """How far coefficients, and losses relative to the sizes of their terms, are from NumPy's."""
    X, y = X[:COMPARED], y[:COMPARED]
    plan = plan_of(len(X))
    there = fitted(plan, encoded(X, y), X.device)
    here = fitted(plan, encoded(X.cpu().numpy(), y.cpu().numpy()), X.device)
    mine = torch.cat(losses_of(there[1], encoded(X, y), plan.loss)).cpu().numpy()
    records = encoded(X.cpu().numpy(), y.cpu().numpy())
    terms = ex_post_terms(here[1], records, plan.loss, member=True)
    sizes = np.abs(terms.determinant) + np.abs(terms.quadratic) + np.abs(terms.inner_product)
    coefficients = np.max(np.abs(there[0].coefficients - here[0].coefficients))
    return coefficients, np.max(np.abs(mine - terms.loss) / sizes)


def passes(plan, records, release, device, repeats):
    """Seconds of one pass of each kind."""
    objective = objective_of(records, plan.loss, l2=plan.l2)
    theta = release.coefficients
    point = Point.near(Dyadic.of(theta), 2)
    radius = records.design.radius
    certificate = PlacedResidual(plan.loss, point, radius, hessian=True)
    return {
        "gradient": median(lambda: objective.evaluate(theta), device, repeats),
        "Hessian, single": median(lambda: objective.evaluate(theta, hessian=np.float32), device, repeats),
        "Hessian, double": median(lambda: objective.evaluate(theta, hessian=np.float64), device, repeats),
        "certificate": median(lambda: list(records.sweep(certificate)), device, repeats),
    }


def measure(name, case, device, repeats, rates):
    X, y = table(case, device)
    print(f"\n{name}: {case.rows:,} rows of {case.columns}, {case.size / 1e9:.1f} GB", flush=True)
    print(
        "  off NumPy by: coefficients {:.1e}, losses {:.1e} of the sizes of their terms".format(
            *compare(X, y)
        )
    )
    plan, records = plan_of(case.rows), encoded(X, y)
    print(f"  arithmetic is exact there: {exact_in(records.space)}")
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    runs = [fitted(plan, records, device) for _ in range(repeats + 1)]
    release, private, _ = runs[-1]
    for step in runs[0][2]:
        middle = statistics.median(run[2][step] for run in runs[1:])
        print(f"  {step}: {middle:.3f} s", flush=True)
    whole = statistics.median(sum(run[2].values()) for run in runs[1:])
    certificate = statistics.median(run[2]["Certifying the minimiser"] for run in runs[1:])
    print(f"  fit: {whole:.3f} s, without its certificate {whole - certificate:.3f} s")
    exact = median(lambda: losses_of(private, records, plan.loss), device, repeats)
    print(f"  exact losses: {exact:.3f} s")
    reading, products = case.size / rates[0], 2 * case.rows * case.columns**2 / rates[1]
    print(f"  floors of one pass: reading {reading:.3f} s, products of a Hessian {products:.3f} s")
    for kind, seconds in passes(plan, records, release, device, repeats).items():
        print(f"  one pass, {kind}: {seconds:.3f} s", flush=True)
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device) - before
        print(f"  memory beside the table: {peak / 1e9:.2f} GB, {peak / case.size:.2f} of it")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the rows")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    rates = ceilings(device)
    print(f"copy {rates[0] / 1e12:.2f} TB/s, products of doubles {rates[1] / 1e12:.1f} TF/s")
    for name in arguments.cases.split(","):
        case = CASES[name]
        case = Case(max(1000, int(case.rows * arguments.scale)), case.columns, case.kind)
        measure(name, case, device, arguments.repeats, rates)
        if device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
