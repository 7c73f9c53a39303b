"""What a publication says of records: predictions, how good they are, and what it cost them."""

from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from expost._common.namespaces import on_host
from expost._common.typing import FloatArray
from expost._common.validation import Simultaneous, check_count, check_positive, parameter_error
from expost.data.encoding import Encoded, encode_records, encode_rows
from expost.data.frame_tables import FrameKind
from expost.data.labels import OrderedLabel, RowsLabel, TimeLabel
from expost.data.weights import Declared
from expost.exceptions import PublicationError
from expost.fitting.prediction import (
    concordance,
    explained,
    linear_predictor,
    log_probabilities,
    predicted_labels,
    probabilities,
    scored,
)
from expost.fitting.recalibration import Calibration, CalibrationLine, calibration_of
from expost.inference import CoefficientTable, Inference, ProbabilityIntervals
from expost.inference.inference import published_coefficients
from expost.losses import PseudoHuber, SquaredLoss, describe
from expost.publication.document import PublishedDocument
from expost.reports import Bounds, evaluate
from expost.reports.base import CONFIDENCE


def encoded_records(
    publication: PublishedDocument,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    forgotten: int = 0,
) -> Encoded:
    """Records as a publication's mechanism saw them, from a table in its units; as private as they are.

    Where the publication has sample weights and none are given, they are unknown and count as the largest.
    """
    unknown = sample_weight is None and publication.weighting.max_weight is not None
    declared = _declared(publication)
    if unknown:
        declared = replace(declared, weighting=publication.weighting.unknown)
    records = encode_records(X, y, declared, sample_weight, groups, forgotten)
    return replace(records, weights_at_most=unknown)


def encoded_for(
    publication: PublishedDocument, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
) -> Encoded:
    """Records as a publication's mechanism saw them; their weights count where it declares any."""
    weighted = publication.weighting.max_weight is not None
    return encoded_records(publication, X, y, sample_weight if weighted else None, groups)


def encoded_rows(publication: PublishedDocument, X: Any) -> Encoded:
    """Rows as a publication's mechanism saw them, from a table without labels; as private as they are."""
    return encode_rows(X, _declared(publication))


def _declared(publication: PublishedDocument) -> Declared:
    return Declared.of(
        publication.release.plan,
        classes=publication.classes,
        domain=publication.domain,
        n_features=publication.n_features,
        feature_names=publication.feature_names,
        weighting=publication.weighting,
        outcome=publication.outcome,
    )


def score_coefficients(publication: PublishedDocument) -> FloatArray:
    """One vector, or a column for each class, linear predictor or row of a record."""
    if isinstance(publication.label, RowsLabel):
        return publication.label.by_place(publication.release.coefficients)
    table = publication.loss.by_predictor(publication.release.coefficients)
    return table.T if len(table) > 1 else table[0]


class ReadableDocument(PublishedDocument):
    """A document with what it says about records; it is not changed and remembers nothing."""

    def decision_function(self, X: Any) -> FloatArray:
        """The linear predictor of each record, positive for the second class; or all scores.

        Several classes have a column of scores each, and other losses of several linear predictors a column
        for each predictor. Ordered classes have a column for each class but the last: the logarithm of the
        odds to be above it. Of a recalibrated model it is the logarithm of the odds of the second class, or
        the prediction of a number, by its :attr:`calibration_curve`, in the same order.

        Privacy
        -------
        As private as ``X``; the publication is not changed and remembers nothing.
        """
        predictor = linear_predictor(encoded_rows(self, X), score_coefficients(self))
        scores: FloatArray = self.recalibrated(predictor)
        return scores

    @property
    def calibration_curve(self) -> Calibration | None:
        """How often the second class occurred at each score, with noise; None without ``recalibrate=True``.

        Of a number: the line by which its predictions are corrected.

        Privacy
        -------
        Public: the budget paid for the numbers that it is read from.
        """
        return calibration_of(self.release)

    def recalibrated(self, predictor: Any) -> Any:
        """Linear predictors as the :attr:`calibration_curve` reads them; as they are where there is none."""
        curve = self.calibration_curve
        return predictor if curve is None else curve.corrected(predictor)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of each record, or the predicted label where there are no classes."""
        predictor = self.decision_function(X)
        return predicted_labels(predictor, loss=self.loss, classes=self.classes, label=self.label)

    @overload
    def predict_proba(self, X: Any, *, interval: None = None) -> FloatArray: ...

    @overload
    def predict_proba(self, X: Any, *, interval: float) -> ProbabilityIntervals: ...

    def predict_proba(self, X: Any, *, interval: float | None = None) -> FloatArray | ProbabilityIntervals:
        """The probability of each class: the sigmoid of the decision function, or the softmax of the scores.

        With ``recalibrate=True`` it is read from the published histogram of scores.

        Only for the logistic loss and the softmax loss, which are likelihoods.
        :meth:`expost.LogisticRegression.predict_proba` says what it means under a cap.

        Parameters
        ----------
        X
            Records in the units of the fit.
        interval
            How sure an interval of each probability should be, such as 0.95. Then ``estimate``, ``lower`` and
            ``upper`` are returned, all by the coefficients without shrinkage of :meth:`summary`; it needs
            what that needs. Each interval holds on its own.

        Raises
        ------
        PublicationError
            If the loss is no likelihood, or if no interval can be read from the publication.

        Privacy
        -------
        As private as ``X``; the publication is not changed and remembers nothing.
        """
        if interval is not None:
            return self._inference().probabilities(encoded_rows(self, X), interval)
        if not self.loss.is_likelihood:
            raise PublicationError(
                "`predict_proba` needs the logistic loss or the softmax loss but this publication has "
                f"{describe(self.loss)['name']}; use `predict` or `decision_function`."
            )
        if isinstance(self.label, TimeLabel):
            raise PublicationError(
                "`predict_proba` needs classes but this publication is about a time; use `predict_survival`."
            )
        return self.probabilities(self.decision_function(X))

    def predict_survival(self, X: Any) -> FloatArray:
        """The probability that the event has not happened by the end of each declared period.

        A column for each period, for publications whose outcome is a time (:class:`expost.TimeLabel`).

        Raises
        ------
        PublicationError
            If the outcome is no time.

        Privacy
        -------
        As private as ``X``; the publication is not changed and remembers nothing.
        """
        if not isinstance(self.label, TimeLabel):
            raise PublicationError("`predict_survival` needs an outcome that is a time; use `predict`.")
        return self.label.survival(on_host(self.decision_function(X)))

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """The probability of each class from the decision function of a likelihood."""
        if isinstance(self.label, OrderedLabel):
            return self.label.probabilities(scores)
        return probabilities(scores)

    def summary(self, confidence: float = CONFIDENCE) -> CoefficientTable:
        """The coefficients without the penalty's shrinkage, with intervals that count the privacy noise.

        In the features' own units where there is a domain, each category compared with the first one of its
        feature. Each interval holds with the confidence on its own. docs/inference.md derives the figures and
        says what they assume: the logistic or the softmax loss, a released Hessian with little enough noise,
        no weights and no recalibration, which corrects predictions and not coefficients. Those of any
        other publication are shown as published, without intervals, and the last note says why. With an L1
        penalty or bounds, zeros are "not used".

        Privacy
        -------
        Public: computed from the file alone, and costs nothing.

        Examples
        --------
        >>> import numpy as np, expost
        >>> X, y = np.array([[0.1, 0.9], [0.8, -0.2]] * 500), np.array([1, 0, 1, 0, 1, 1, 0, 0] * 125)
        >>> plan = expost.calibrate(epsilon=8.0, fit_intercept=True, report="leverage", split=0.98)
        >>> summary = expost.LogisticRegression(plan=plan, classes=[0, 1]).fit(X, y).publication_.summary()
        >>> summary.terms
        ('x0', 'x1', 'intercept')
        """
        check_positive("confidence", confidence, below=1.0)
        try:
            return replace(self._inference().table(confidence), alarm=self.insecure)
        except PublicationError as error:
            known = self.release.corners is not None and self.release.recalibration is None
            why = [] if known else [f"No error bars: {error}"]
        table = published_coefficients(
            self.release, self.domain, self.feature_names, self.classes, self.label
        )
        if isinstance(self.calibration_curve, CalibrationLine):
            why.append(
                "Predictions are corrected by published sums; coefficients are those before the correction."
            )
        return replace(table, notes=(*table.notes, *why), alarm=self.insecure)

    def _inference(self) -> Inference:
        if isinstance(self.label, RowsLabel):
            raise PublicationError(
                "intervals are not known for a model in which a record is several rows. The coefficients "
                "have noise and shrinkage of unknown size, and a sign may be wrong."
            )
        return Inference(self.release, self.domain, self.feature_names, self.classes, self.weighting)

    def bounds(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        forgotten: int = 0,
        confidence: float = CONFIDENCE,
        member: Any = None,
        simultaneous: Simultaneous = None,
    ) -> Bounds:
        """What the publication cost each record: an interval for the model, the report's cost, the total.

        Where its promise is to people, ask with *all* rows of a person: a figure for some of them is one of
        somebody else, and can be smaller or larger than hers.

        Parameters
        ----------
        X, y
            Records in the units of the fit. Or a file of them, a folder or a pattern (:func:`expost.scan`),
            with the outcome in a column: the one that the domain declares, or that ``y`` names, or the last.
        sample_weight
            Their weights in the fit; of files the name of their column. Where the publication has weights and
            none are given, they are not known: every figure then holds whatever they were, up to the largest
            that it states. Class weights that it states are counted anyway.
        groups
            Whose each row is, as in the fit; figures are then one for each person, in the order in which
            people first appear. They must be given where the promise is to people. Where it is to rows, they
            are those of families: all records of one group, who all were in the table or all were not.
        forgotten
            How many more rows each person has, of which nothing is known but that they were fixed before the
            publication. The figures hold whatever they were, and the lower end is 0
            (:class:`expost.reports.forgotten.Forgotten`). Who does not know their number has no figure.
        confidence
            How sure to be; choose it before looking at any figure. It holds for a record that was fixed
            before the publication was made. The interval, the report's cost and the total each hold with it
            on their own, not jointly.
        member
            Whether the records were in the table; ``None`` where that is unknown. With ``groups``, of a table
            in memory, it may be one truth value for each row: what a change is worth in which those rows of a
            group leave for whom it is true, and the others enter.
        simultaneous
            ``None`` for each record on its own; a number of such records at once, at least as many as are
            asked about; or ``"all"`` for every record there could be, one chosen after seeing the
            publication included.

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
        if forgotten != 0:
            check_count("forgotten", forgotten)
            if groups is None:
                raise parameter_error("forgotten", "0 where no `groups` say whose the rows are", forgotten)
        records = encoded_records(self, X, y, sample_weight, groups, forgotten)
        bounds = evaluate(
            self.release, records, confidence=confidence, member=member, simultaneous=simultaneous
        )
        return replace(bounds, kind=FrameKind.of(X)).placed(X)


@dataclass(frozen=True)
class Quality:
    """Figures of held-out records, None where one does not apply.

    Privacy
    -------
    Private: computed from people's records without noise. No budget pays for publishing them, nor for
    choosing what to publish by them.
    """

    auc: float | None = None
    """The chance that, of two records of different classes, the model ranks the right one higher; of several
    classes the mean over each against the others."""
    log_loss: float | None = None
    """The mean of minus the logarithm of the probability that the model gives to what happened."""
    guess_log_loss: float | None = None
    """The log loss of someone who knows only how often each class is in these records."""
    r2: float | None = None
    """The share of the outcome's variance that the model explains, within the declared bounds."""
    d2: float | None = None
    """The same of the deviance: of the pinball loss of a quantile, the Poisson or the Gamma deviance."""
    concordance: float | None = None
    """Of times: how often, of two records, the model says rightly which one had the event first."""


def held_out_quality(publication: ReadableDocument, records: Encoded) -> Quality:
    r"""How well a publication predicts labelled records that were not fitted, encoded as it says and checked.

    .. math:: R^2 = 1 - \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}, \qquad
              \mathrm{logloss} = -\frac{1}{n}\sum_i\log\hat p_{y_i}(x_i)

    The area under the curve is scikit-learn's. Every record counts once. Predictions and labels of all
    records are held in memory.

    Privacy
    -------
    The result is private, see :class:`Quality`. Nothing is spent.
    """
    scores, labels, _ = scored(records, score_coefficients(publication))
    curve = calibration_of(publication.release)
    scores = scores if curve is None else curve.corrected(scores)
    if isinstance(publication.label, TimeLabel):
        expected = publication.label.predicted(scores)
        return Quality(concordance=concordance(expected, labels, np.ones(len(labels))))
    if publication.classes is None:
        spread = float(np.sum((labels - labels.mean()) ** 2))
        share = explained(scores, labels, publication.loss) if spread > 0.0 else None
        mean = isinstance(publication.loss, PseudoHuber | SquaredLoss)
        return Quality(r2=share) if mean else Quality(d2=share)
    return _class_quality(publication, scores, labels)


def _class_quality(publication: ReadableDocument, scores: FloatArray, labels: FloatArray) -> Quality:
    """How well classes are told apart, and if the loss is a likelihood, how likely they were."""
    ordered = publication.label if isinstance(publication.label, OrderedLabel) else None
    values = (publication.loss.labels if ordered is None else ordered.codes).values
    assert values is not None
    places = np.argmax(labels[:, None] == np.array(values), axis=1)
    shares = np.bincount(places, minlength=len(values)) / len(places)
    auc = None
    if np.all(shares > 0.0):
        from sklearn.metrics import roc_auc_score

        ranked = publication.probabilities(scores) if scores.ndim == 2 else scores
        auc = float(roc_auc_score(places, ranked, multi_class="ovr"))
    if not publication.loss.is_likelihood:
        return Quality(auc=auc)
    likely = log_probabilities(scores) if ordered is None else ordered.log_probabilities(scores)
    given = likely[np.arange(len(places)), places]
    known = shares[shares > 0.0]
    return Quality(auc, -float(np.mean(given)), float(known @ -np.log(known)))
