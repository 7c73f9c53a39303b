"""What a publication says of records: predictions, and what it cost them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from numpy.typing import NDArray

from expost._common.typing import FloatArray
from expost.data.domain import Domain
from expost.data.encoded import Encoded
from expost.data.encoding import encode_records, encode_rows
from expost.data.frames import FrameKind
from expost.data.open_lazy import with_columns
from expost.data.weights import Weighting
from expost.exceptions import PublicationError
from expost.fitting.prediction import class_coefficients, linear_predictor, predicted_labels, probabilities
from expost.fitting.release import Release
from expost.losses import AnyLoss, LogisticLoss, SoftmaxLoss, describe
from expost.reports import Bounds, evaluate
from expost.reports.base import CONFIDENCE


class Readable(Protocol):
    """What is read of a publication."""

    @property
    def release(self) -> Release:
        """Coefficients, statistics, scales and guarantee."""

    @property
    def loss(self) -> AnyLoss:
        """The loss."""

    @property
    def domain(self) -> Domain | None:
        """What is publicly known about a record, where it was declared."""

    @property
    def classes(self) -> Sequence[Any] | None:
        """The labels of a classifier."""

    @property
    def feature_names(self) -> Sequence[str] | None:
        """The names of the encoded columns."""

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def weighting(self) -> Weighting:
        """What was declared about weights."""

    def decision_function(self, X: Any) -> FloatArray:
        """The linear predictor of each record, or all scores."""


def encoded_records(publication: Readable, X: Any, y: Any = None, sample_weight: Any = None) -> Encoded:
    """Records as a publication's mechanism saw them, from a table in its units; as private as they are."""
    X, y, sample_weight = with_columns(X, y, sample_weight, publication.domain)
    return encode_records(
        X,
        y,
        publication.release.plan,
        classes=publication.classes,
        domain=publication.domain,
        n_features=publication.n_features,
        feature_names=publication.feature_names,
        weighting=publication.weighting,
        sample_weight=sample_weight,
    )


class Readings:
    """The part of a publication that answers for records; it is not changed and remembers nothing."""

    def decision_function(self: Readable, X: Any) -> FloatArray:
        """The linear predictor of each record, positive for the second class; or all scores.

        Several classes have a column of scores each, and other losses of several linear predictors a column
        for each predictor.

        Privacy
        -------
        As private as ``X``; the publication is not changed and remembers nothing.
        """
        rows = encode_rows(
            X,
            self.release.plan,
            domain=self.domain,
            n_features=self.n_features,
            feature_names=self.feature_names,
        )
        table = class_coefficients(self.release.coefficients, self.loss)
        return linear_predictor(rows, table.T if len(table) > 1 else table[0])

    def predict(self: Readable, X: Any) -> NDArray[Any]:
        """The most likely class of each record, or the predicted label where there are no classes."""
        predictor = self.decision_function(X)
        return predicted_labels(predictor, loss=self.loss, classes=self.classes, domain=self.domain)

    def predict_proba(self: Readable, X: Any) -> FloatArray:
        """The probability of each class: the sigmoid of the decision function, or the softmax of the scores.

        Only for the logistic loss and the softmax loss, which are likelihoods.
        :meth:`expost.LogisticRegression.predict_proba` says what it means under a cap.
        """
        if not isinstance(self.loss, LogisticLoss | SoftmaxLoss):
            raise PublicationError(
                "`predict_proba` needs the logistic loss or the softmax loss but this publication has "
                f"{describe(self.loss)['name']}; use `predict` or `decision_function`."
            )
        return probabilities(self.decision_function(X))

    def bounds(
        self: Readable,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        confidence: float = CONFIDENCE,
        member: bool | None = None,
        simultaneous: int | str | None = None,
        method: str = "tight",
    ) -> Bounds:
        """What the publication cost each record: an interval for the model, the report's cost, the total.

        Parameters
        ----------
        X, y
            Records in the units of the fit. Or a file of them, a folder or a pattern (:func:`expost.scan`),
            with the outcome in a column: the one that the domain declares, or that ``y`` names, or the last.
        sample_weight
            Their weights in the fit, 1 by default; of files the name of their column. Class weights that the
            publication states are counted anyway.
        confidence
            How sure to be; choose it before looking at any figure. It holds for a record that was fixed
            before the publication was made. The interval, the report's cost and the total each hold with it
            on their own, not jointly.
        member
            Whether the records were in the table; ``None`` where that is unknown.
        simultaneous
            ``None`` for each record on its own; a number of such records at once, at least as many as are
            asked about; or ``"all"`` for every record there could be, one chosen after seeing the
            publication included.
        method
            ``"tight"``, or ``"paper"`` for the report of Redberg and Wang (2021), made sound.

        Privacy
        -------
        Reads the publication and the record, and tells about that record only: asking for any number of
        records, in any coalition, reveals nothing beyond the file.

        Examples
        --------
        >>> import numpy as np, expost
        >>> X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 500), np.array([1, 0] * 500)
        >>> publication = expost.LogisticRegression(norm=1.0, classes=[0, 1]).fit(X, y).publication_
        >>> mine = publication.bounds([[0.1, 0.9]], [1], confidence=0.99, member=True)
        >>> bool(0.0 <= mine.lower[0] <= mine.upper[0] <= mine.total[0] < 1.0)
        True
        """
        records = encoded_records(self, X, y, sample_weight)
        bounds = evaluate(
            self.release,
            records,
            confidence=confidence,
            member=member,
            simultaneous=simultaneous,
            method=method,
        )
        return replace(bounds, kind=FrameKind.of(X)).placed(X)
