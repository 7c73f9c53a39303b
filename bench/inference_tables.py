"""Simulated tables whose model is known, for the coverage of confidence intervals."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

import expost
from expost._common.typing import FloatArray
from expost.data.design import Design
from expost.data.encoding import Encoded
from expost.data.sources import ArraySource
from expost.data.tables import open_table
from expost.exceptions import PublicationError
from expost.fitting.mechanism import perturb
from expost.fitting.noise import noise_source
from expost.inference import Inference
from expost.inference.estimate import model_probabilities
from expost.losses import LogisticLoss, SoftmaxLoss
from expost.losses.records import Lengths
from expost.losses.softmax import centring
from expost.privacy.plan import Plan

CONFIDENCE = 0.95
SPLIT = 0.98
# Records whose probabilities are predicted, the same for every table.
_ASKED = 4
_FEATURES = (
    expost.Number(name="age", low=18.0, high=90.0),
    expost.Number(name="dose", low=0.0, high=200.0, scale="unit"),
    expost.Category(name="ward", categories=("north", "south", "east")),
    expost.YesNo(name="smoker"),
    expost.Category(name="sex", categories=("f", "m")),
)
# In the units of the features: age, dose, south, east, smoker, male, intercept.
_EFFECTS = np.array([0.02, -0.01, 0.5, -0.7, 0.8, 0.4, -0.9])


@dataclass(frozen=True)
class Setting:
    """How tables are made, and what is published of each."""

    rows: int
    epsilon: float
    features: int | None = None
    """Columns of rows uniform in the unit ball; None for records of a domain."""
    scaled: bool = False
    """Whether long records are scaled into the default ball of the domain, or the ball holds all."""
    loss: LogisticLoss | SoftmaxLoss = LogisticLoss()  # noqa: RUF009 -- it is frozen
    plain_labels: bool = True
    """Whether labels follow the plain model, or that of a capped loss."""
    length: float = 2.0
    """Of the coefficients of rows in the unit ball, in log-odds."""
    report: str = "leverage"
    split: float | None = SPLIT
    seed: int = 0

    @property
    def domain(self) -> expost.Domain | None:
        """What is declared of a record."""
        if self.features is not None:
            return None
        label = expost.ClassLabel(name="ill", classes=("no", "yes"))
        norm = None if self.scaled else len(_FEATURES) ** 0.5
        return expost.Domain(features=_FEATURES, label=label, norm=norm)

    @cached_property
    def plan(self) -> Plan:
        """The plan of every table."""
        norm = 1.0 if self.domain is None else self.domain.row_norm
        return expost.calibrate(
            loss=self.loss,
            norm=norm,
            epsilon=self.epsilon,
            delta=1e-6,
            report=self.report,
            split=self.split,
            fit_intercept=True,
        )

    @property
    def outputs(self) -> int:
        """How many linear predictors there are."""
        return 1 if isinstance(self.loss, LogisticLoss) else self.loss.outputs

    @cached_property
    def encoded_truth(self) -> FloatArray:
        """The coefficients of the encoded columns, one row per linear predictor."""
        if self.features is not None:
            drawn = np.random.default_rng(self.seed).normal(size=(self.outputs, self.features + 1))
            return self.length * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        age, dose, south, east, smoker, male, constant = _EFFECTS
        return np.array(
            [[36.0 * age, 200.0 * dose, 0.0, south, east, smoker, 0.0, male, constant + 54.0 * age]]
        )

    @cached_property
    def truth(self) -> FloatArray:
        """What the intervals of coefficients should cover."""
        if self.features is None:
            return _EFFECTS
        table = self.encoded_truth
        return table[0] if self.outputs == 1 else centring(self.outputs + 1) @ table

    def records(self, rng: np.random.Generator, count: int) -> tuple[Encoded, FloatArray]:
        """Encoded rows, and the probability of every class for each."""
        if self.features is not None:
            directions = rng.normal(size=(count, self.features))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            table: Any = directions * rng.uniform(size=(count, 1)) ** (1.0 / self.features)
        else:
            assert self.domain is not None
            table = self.domain.encode(
                {
                    "age": rng.uniform(18.0, 90.0, count),
                    "dose": rng.uniform(0.0, 200.0, count),
                    "ward": rng.choice(["north", "south", "east"], count, p=[0.5, 0.3, 0.2]),
                    "smoker": rng.choice(["yes", "no"], count, p=[0.3, 0.7]),
                    "sex": rng.choice(["f", "m"], count),
                }
            )
        rows = Encoded(ArraySource(open_table(table, None)), Design(table.shape[1], self.plan.norm, True))
        scales = np.minimum(1.0, self.plan.norm / np.linalg.norm(table, axis=1, keepdims=True))
        seen = np.column_stack([scales * table, np.ones(count)])
        scores = seen @ self.encoded_truth.T
        scores = scores @ centring(self.outputs + 1).T if self.outputs > 1 else scores[:, 0]
        if not self.plain_labels:
            return rows, model_probabilities(scores, self.loss.for_rows(Lengths.of(seen)))
        if self.outputs > 1:
            return rows, softmax(scores, axis=1)
        return rows, np.column_stack([expit(-scores), expit(scores)])


class Found(NamedTuple):
    """Which intervals of one table cover the truth; None where the publication supports no inference."""

    coefficients: FloatArray | None
    """1 or 0 for each coefficient, NaN where it is not determined."""
    probabilities: NDArray[np.bool_] | None


def simulate(setting: Setting, tables: int) -> Iterator[Found]:
    """Fit many tables, and compare every interval with the truth."""
    asked, probabilities = setting.records(np.random.default_rng(12), _ASKED)
    rng = np.random.default_rng(setting.seed + 1)
    for seed in range(tables):
        rows, shares = setting.records(rng, setting.rows)
        labels = (rng.uniform(size=(setting.rows, 1)) > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
        release, _ = perturb(setting.plan, rows.labelled(labels.astype(np.float64)), noise=noise_source(seed))
        try:
            inference = Inference(release, setting.domain)
            table = inference.table(CONFIDENCE)
        except PublicationError:
            yield Found(None, None)
            continue
        inside = (table.lower <= setting.truth) & (setting.truth <= table.upper)
        found = inference.probabilities(asked, CONFIDENCE)
        yield Found(
            np.where(np.isnan(table.z), np.nan, inside).ravel(),
            (found.lower <= probabilities) & (probabilities <= found.upper),
        )
