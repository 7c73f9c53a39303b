"""How well a publication predicts records that were not fitted; private."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._common.typing import FloatArray
from expost.data.encoded import Encoded
from expost.fitting.prediction import class_coefficients, log_probabilities, probabilities, scored
from expost.losses import AnyLoss, LogisticLoss, SoftmaxLoss
from expost.publication.readings import Readable


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


def held_out_quality(publication: Readable, records: Encoded) -> Quality:
    r"""How well a publication predicts labelled records.

    .. math:: R^2 = 1 - \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}, \qquad
              \mathrm{logloss} = -\frac{1}{n}\sum_i\log\hat p_{y_i}(x_i)

    The area under the curve is scikit-learn's. Every record counts once. Predictions and labels of all
    records are held in memory.

    Parameters
    ----------
    publication
        What was published.
    records
        Records that were not fitted, encoded as the publication says; they were checked.

    Privacy
    -------
    The result is private, see :class:`Quality`. Nothing is spent.
    """
    table = class_coefficients(publication.release.coefficients, publication.loss)
    scores, labels, _ = scored(records, table.T if len(table) > 1 else table[0])
    if publication.classes is None:
        rest, spread = float(np.sum((labels - scores) ** 2)), float(np.sum((labels - labels.mean()) ** 2))
        return Quality(r2=1.0 - rest / spread if spread > 0.0 else None)
    values = publication.loss.labels.values
    assert values is not None
    places = np.argmax(labels[:, None] == np.array(values), axis=1)
    return _of_classes(publication.loss, scores, places, len(values))


def _of_classes(loss: AnyLoss, scores: FloatArray, places: Any, classes: int) -> Quality:
    from sklearn.metrics import roc_auc_score

    shares = np.bincount(places, minlength=classes) / len(places)
    auc = None
    if np.all(shares > 0.0):
        ranked = probabilities(scores) if scores.ndim == 2 else scores
        auc = float(roc_auc_score(places, ranked, multi_class="ovr"))
    if not isinstance(loss, LogisticLoss | SoftmaxLoss):
        return Quality(auc=auc)
    given = log_probabilities(scores)[np.arange(len(places)), places]
    known = shares[shares > 0.0]
    return Quality(auc, -float(np.mean(given)), float(known @ -np.log(known)))
