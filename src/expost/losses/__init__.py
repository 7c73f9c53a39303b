"""Losses of a linear predictor, one per file, and the check that a new one is what it declares."""

from expost.losses.base import DerivativeCurve as DerivativeCurve, LabelSet as LabelSet, Loss as Loss
from expost.losses.check import check_loss as check_loss
from expost.losses.logistic import LogisticLoss as LogisticLoss
from expost.losses.pseudo_huber import PseudoHuber as PseudoHuber
from expost.losses.smoothed_hinge import SmoothedHinge as SmoothedHinge
from expost.losses.squared import SquaredLoss as SquaredLoss
