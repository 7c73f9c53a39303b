"""Confidence intervals for the probabilities of a record's classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from expost._common.typing import FloatArray
from expost.data.blocks import Block
from expost.inference.estimate import Estimate
from expost.inference.working_model import Likelihood, model_probabilities
from expost.losses import LogisticLoss
from expost.losses.softmax import centring

# The step of the differences that follow a probability along its predictors.
_STEP = 1e-4


class ProbabilityIntervals(NamedTuple):
    """The probability of each class with its interval; one row per record and one column per class.

    Privacy
    -------
    As private as the records.
    """

    estimate: FloatArray
    """By the coefficients without shrinkage, which :meth:`expost.Publication.summary` shows."""
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Intervals:
    r"""The pass that finds the intervals of every record.

    The linear predictor of a record is a linear function of the coefficients, with a standard error of
    :math:`s = \sqrt{x^\top B\,\mathrm{Cov}(\varphi)B^\top x}`. Two classes have the probabilities at both
    ends, :math:`\eta \pm zs`; of several, each has an interval for its log-odds, by the delta method.
    """

    estimate: Estimate
    basis: FloatArray
    """Coefficients of one linear predictor, from its contrasts."""
    loss: Likelihood
    quantile: float

    def __call__(self, blocks: Iterator[Block]) -> ProbabilityIntervals:
        """The intervals of the part's records, in their order."""
        classes = 2 if isinstance(self.loss, LogisticLoss) else self.loss.classes
        none = ProbabilityIntervals(*(np.empty((0, classes)) for _ in range(3)))
        found = [none, *(self._read(rows @ self.basis) for rows, _, _ in blocks)]
        return joined(found)

    def _read(self, rows: FloatArray) -> ProbabilityIntervals:
        outputs = len(self.estimate.values) // rows.shape[1]
        predictors = rows @ self.estimate.values.reshape(outputs, -1).T
        blocks = self.estimate.covariance.reshape(outputs, rows.shape[1], outputs, rows.shape[1])
        spread = np.einsum("ni,aibj,nj->nab", rows, blocks, rows, optimize=True)
        if outputs == 1 and isinstance(self.loss, LogisticLoss):
            eta, margin = predictors[:, 0], self.quantile * np.sqrt(spread[:, 0, 0])
            low, high = (model_probabilities(end, self.loss) for end in (eta - margin, eta + margin))
            return ProbabilityIntervals(
                model_probabilities(eta, self.loss),
                np.column_stack([high[:, 0], low[:, 1]]),
                np.column_stack([low[:, 0], high[:, 1]]),
            )
        probabilities = self._of(predictors)
        slopes = np.stack(
            [
                (logit(self._of(predictors + step)) - logit(self._of(predictors - step))) / (2.0 * _STEP)
                for step in _STEP * np.eye(outputs)
            ],
            axis=2,
        )
        margin = self.quantile * np.sqrt(np.einsum("nka,nab,nkb->nk", slopes, spread, slopes))
        middle = logit(probabilities)
        return ProbabilityIntervals(probabilities, expit(middle - margin), expit(middle + margin))

    def _of(self, predictors: FloatArray) -> FloatArray:
        assert not isinstance(self.loss, LogisticLoss)
        return model_probabilities(predictors @ centring(self.loss.classes).T, self.loss)


def joined(parts: list[ProbabilityIntervals]) -> ProbabilityIntervals:
    """The intervals of several runs of records, one after the other."""
    return ProbabilityIntervals(*map(np.concatenate, zip(*parts, strict=True)))
