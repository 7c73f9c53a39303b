"""The weights of records: what is declared about them, and one number for each record."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import Space, is_foreign, namespace_of, on_host
from expost._common.typing import FloatArray
from expost._common.validation import check_positive, parameter_error
from expost.data.values import plain_class, untold
from expost.exceptions import DomainError
from expost.losses import AnyLoss
from expost.privacy.calibration import LARGEST_WEIGHT


@dataclass(frozen=True)
class Weighting:
    r"""How records are weighed: declared, never learnt from a table.

    A record of class :math:`y` and sample weight :math:`s` has the weight :math:`\omega = c_y s`, and the
    loss :math:`\omega f`. Weight 0 is the same as no record.

    Parameters
    ----------
    max_weight
        The largest sample weight; None where records have none of their own.
    class_weight
        The weight of each class, in the order of the classes; None where there are none.
    otherwise
        The sample weight of records for which none is given.

    Privacy
    -------
    Public. The weight of a record is as private as the record, of which it is a part.
    """

    max_weight: float | None = None
    class_weight: tuple[float, ...] | None = None
    otherwise: float = 1.0

    @classmethod
    def declared(cls, max_weight: Any, class_weight: Any, *, of_records: bool) -> Self:
        """Check what was declared; ``class_weight`` maps each class to its weight.

        ``of_records`` says whether records have weights of their own. Which class has which weight is
        settled by :meth:`for_classes`, once the classes are known.
        """
        most = check_positive("max_weight", max_weight)
        if not 1.0 <= most <= LARGEST_WEIGHT:
            limits = f"between 1 and {LARGEST_WEIGHT:g}"
            raise parameter_error("max_weight", limits, max_weight, "Scale the weights by a constant.")
        kept = most if of_records or most > 1.0 else None
        return cls(kept, None if class_weight is None else _class_weights(class_weight))

    def for_classes(self, class_weight: Any, classes: Sequence[Any] | NDArray[Any]) -> "Weighting":
        """The same with the weight of each class in the order of the classes, which must all be named."""
        if class_weight is None:
            return self
        labels = [plain_class(label) for label in classes]
        lacking = [repr(label) for label in labels if label not in class_weight]
        strange = [repr(label) for label in class_weight if label not in labels]
        if lacking or strange:
            problems = [f"it lacks {', '.join(lacking)}"] if lacking else []
            problems += [f"{', '.join(strange)} {'is no class' if len(strange) == 1 else 'are no classes'}"]
            wanted = "a weight for each class and for nothing else"
            way_out = f"Of these, {' and '.join(problems[: bool(lacking) + bool(strange)])}."
            raise parameter_error("class_weight", wanted, dict(class_weight), way_out)
        return Weighting(self.max_weight, tuple(float(class_weight[label]) for label in labels))

    @property
    def largest(self) -> float:
        """The largest weight that a record can have."""
        return (self.max_weight or 1.0) * max(self.class_weight or (1.0,))

    @property
    def used(self) -> bool:
        """Whether anything was declared."""
        return self.max_weight is not None or self.class_weight is not None

    @property
    def unknown(self) -> "Weighting":
        """The same for records whose sample weights nobody knows: they count as the largest.

        No smaller weight has a larger bound (docs/mathematics.md, section 14).
        """
        return replace(self, otherwise=self.max_weight or 1.0)

    def of(self, sample_weight: Any, labels: FloatArray, loss: AnyLoss) -> FloatArray | None:
        """The weight of each record, from its sample weight and its label; None where all are one.

        Parameters
        ----------
        sample_weight
            One number per record, or None where none is given.
        labels
            As :func:`expost.data.encoding.encode_labels` returns them.
        loss
            The loss that the labels are for. Its curve must cover weights below the largest.

        Privacy
        -------
        As private as the records. An error names the largest weight and nothing of the table.
        """
        xp = namespace_of(labels)
        weights = None
        if sample_weight is not None:
            weights = self._checked(sample_weight, labels.shape[0])
            if is_foreign(labels):
                weights = Space.of(labels).put(weights)
        elif self.otherwise != 1.0:
            weights = xp.full_like(labels, self.otherwise)
        if self.class_weight is not None:
            values = loss.labels.values
            assert values is not None
            by_class = xp.zeros_like(labels)
            for value, weight in zip(values, self.class_weight, strict=True):
                by_class = xp.where(labels == value, xp.full_like(labels, weight), by_class)
            weights = by_class if weights is None else weights * by_class
        if weights is not None and not loss.curve.ratio_falls:
            raise DomainError(
                f"{type(loss).__name__} does not take weights: its curvature(m)/m rises, so the certificate "
                "does not cover weights below 1. Fit without weights."
            )
        return weights

    def _checked(self, sample_weight: Any, rows: int) -> FloatArray:
        most = self.max_weight or 1.0
        weights: FloatArray | None = None
        with untold():
            given = on_host(sample_weight)
            if given.dtype.kind in "fiubO" and given.ndim == 1:
                weights = given.astype(np.float64)
        if weights is None or len(weights) != rows:
            raise DomainError("`sample_weight` must be a vector of numbers, one weight per row.")
        if not np.all((weights >= 0.0) & (weights <= most)):
            raise DomainError(
                f"`sample_weight` must be numbers from 0 to max_weight={most:g}, none of them missing. Scale "
                "them by a public constant, or declare a larger `max_weight`."
            )
        return weights


def _class_weights(class_weight: Any) -> tuple[float, ...]:
    """The declared weights in any order, or ParameterError."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise parameter_error(
            "class_weight",
            "a mapping from each class to its weight",
            class_weight,
            "Balanced weights count the table's labels, which no budget pays for: declare weights.",
        )
    if not isinstance(class_weight, Mapping) or not class_weight:
        raise parameter_error("class_weight", "None or a mapping from each class to its weight", class_weight)
    for weight in class_weight.values():
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not number or not (math.isfinite(weight) and 0.0 <= weight <= LARGEST_WEIGHT):
            limits = f"weights between 0 and {LARGEST_WEIGHT:g}"
            raise parameter_error("class_weight", limits, dict(class_weight))
    if not any(class_weight.values()):
        raise parameter_error("class_weight", "above 0 for one class at least", dict(class_weight))
    return tuple(float(weight) for weight in class_weight.values())


UNWEIGHTED = Weighting()
"""Every record counts once."""
