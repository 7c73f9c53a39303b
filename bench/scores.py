"""How good models are on test rows: many models at once, one per column."""

import numpy as np
from scipy.special import expit, logsumexp
from scipy.stats import rankdata

BINS = 10


def classification(margins, labels):
    """Area under the curve, log-loss and calibration error of margins, one column per model."""
    return {
        "auc": auc(margins, labels),
        "log_loss": log_loss(margins, labels),
        "calibration": calibration_error(margins, labels),
    }


def regression(predictions, labels):
    """Share of the variance explained, one column per model."""
    errors = np.mean((predictions - labels[:, None]) ** 2, axis=0)
    return {"r2": 1.0 - errors / np.var(labels)}


def auc(margins, labels):
    """The chance that a record of class 1 has a larger margin than one of class 0; ties count half."""
    ones = labels > 0.5
    ranks = rankdata(margins, axis=0)[ones].sum(axis=0)
    count = ones.sum()
    return (ranks - count * (count + 1) / 2.0) / (count * (len(labels) - count))


def log_loss(margins, labels):
    """Mean of minus the log of the probability of what happened, in nats."""
    signed = np.where(labels[:, None] > 0.5, -margins, margins).astype(np.float64)
    return np.logaddexp(0.0, signed).mean(axis=0)


def calibration_error(margins, labels):
    """Expected calibration error over ten groups of equal size in the order of the prediction.

    The mean over groups of the absolute difference between the mean prediction and the share of ones. It is
    not zero for a true model: a group of m records adds about ``sqrt(p (1 - p) / m)``.
    """
    order = np.argsort(margins, axis=0)
    predicted = np.take_along_axis(expit(margins.astype(np.float64)), order, axis=0)
    happened = labels[order]
    groups = np.array_split(np.arange(len(labels)), BINS)
    gaps = [np.abs((predicted[group] - happened[group]).sum(axis=0)) for group in groups]
    return np.sum(gaps, axis=0) / len(labels)


def of_classes(log_odds, labels):
    """Accuracy and log-loss of logarithms of the classes' odds: rows by classes by models."""
    odds = log_odds.astype(np.float64)
    right = np.take_along_axis(odds, labels[:, None, None], axis=1)[:, 0]
    return {
        "accuracy": np.mean(np.argmax(odds, axis=1) == labels[:, None], axis=0),
        "log_loss": np.mean(logsumexp(odds, axis=1) - right, axis=0),
    }
