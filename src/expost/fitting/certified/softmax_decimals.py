"""Derivatives of the softmax loss of one record in decimals, for the last level of the certificate."""

from decimal import Decimal, localcontext
from functools import cache
from typing import NamedTuple

import numpy as np

from expost.fitting.certified.corner import in_decimals
from expost.fitting.certified.decimal_algebra import DecimalArray, context
from expost.losses import SoftmaxLoss


class _Masses(NamedTuple):
    """Of one record: slope and curvature of the link, the law of the other classes and the own mass."""

    steep: Decimal
    curvature: Decimal
    others: DecimalArray
    own: Decimal


def softmax_derivatives(
    loss: SoftmaxLoss, coefficients: DecimalArray, row: DecimalArray, label: Decimal, digits: int
) -> tuple[DecimalArray, DecimalArray]:
    """The gradient in the linear predictors and the Hessian in them, from all coefficients in a row.

    Each entry of the gradient is rounded fewer than ``16 K`` times, relative to a vector of length two.
    """
    with localcontext(context(digits)):
        basis, true = _helmert(loss.classes, digits), int(label)
        found = _masses(loss, basis @ (coefficients.reshape(loss.classes - 1, -1) @ row), true, digits)
        away = found.others.copy()
        away[true] = away[true] - 1
        # The Hessian as weighted squares of the classes' distances from their mean.
        weights = found.steep * found.others
        weights[true] = found.curvature
        distances = basis - found.others @ basis
        hessian: DecimalArray = (distances * weights[:, None]).T @ distances
        return found.steep * (away @ basis), hessian


def smallest_mass(
    loss: SoftmaxLoss, coefficients: DecimalArray, row: DecimalArray, label: Decimal, digits: int
) -> Decimal:
    """The smallest mass of a record, which the reduced Hessian is made of."""
    with localcontext(context(digits)):
        basis, true = _helmert(loss.classes, digits), int(label)
        found = _masses(loss, basis @ (coefficients.reshape(loss.classes - 1, -1) @ row), true, digits)
        masses = (found.steep * share for j, share in enumerate(found.others) if j != true)
        smallest: Decimal = min((found.own, *masses))
        return smallest


def _masses(loss: SoftmaxLoss, scores: DecimalArray, true: int, digits: int) -> _Masses:
    others = [j for j in range(loss.classes) if j != true]
    top = max(scores[j] for j in others)
    powers = np.array([Decimal(0)] * loss.classes, dtype=object)
    for j in others:
        powers[j] = (scores[j] - top).exp()
    total = sum(powers, Decimal(0))
    ahead = top - scores[true]
    if ahead > 0:
        less = (-ahead).exp()
        steep, own = total / (total + less), less / (total + less)
    else:
        scaled = total * ahead.exp()
        steep, own = scaled / (1 + scaled), 1 / (1 + scaled)
    curvature = steep * own
    if loss.corner is not None and steep > Decimal(loss.link.corner_slope):
        place, rate = in_decimals(loss.link, digits)
        cap = Decimal(loss.cap)
        lost = (cap - Decimal(loss.link.corner_slope)) * (-rate * (ahead + total.ln() - place)).exp()
        steep, curvature = cap - lost, rate * lost
        own = steep * curvature / (steep - curvature)
    return _Masses(steep, curvature, powers / total, own)


@cache
def _helmert(classes: int, digits: int) -> DecimalArray:
    with localcontext(context(digits)):
        matrix = np.array([[Decimal(0)] * (classes - 1) for _ in range(classes)], dtype=object)
        for a in range(classes - 1):
            root = 1 / Decimal((a + 1) * (a + 2)).sqrt()
            matrix[: a + 1, a] = root
            matrix[a + 1, a] = -(a + 1) * root
        return matrix
