"""Losses of a linear predictor, one per file, regularisers, and the check that a new loss is valid."""

from expost.losses.base import (
    DerivativeCurve as DerivativeCurve,
    LabelSet as LabelSet,
    Loss as Loss,
    weighted_derivatives as weighted_derivatives,
)
from expost.losses.check import check_loss as check_loss
from expost.losses.convex import NO_LABEL as NO_LABEL, ConvexLoss as ConvexLoss
from expost.losses.convex_check import check_convex_loss as check_convex_loss
from expost.losses.lipschitz_poisson import LipschitzPoisson as LipschitzPoisson
from expost.losses.location_scale import LocationScale as LocationScale
from expost.losses.logistic import LogisticLoss as LogisticLoss
from expost.losses.pseudo_huber import PseudoHuber as PseudoHuber
from expost.losses.record_sets import (
    RecordBall as RecordBall,
    RecordBox as RecordBox,
    RecordSet as RecordSet,
)
from expost.losses.records import RecordLoss as RecordLoss, Records as Records
from expost.losses.registry import LOSSES as LOSSES, as_loss as as_loss, describe as describe
from expost.losses.regularizers import Regularizer as Regularizer, SmoothedL1 as SmoothedL1
from expost.losses.smoothed_hinge import SmoothedHinge as SmoothedHinge
from expost.losses.smoothed_norm import SmoothedNorm as SmoothedNorm
from expost.losses.softmax import SoftmaxLoss as SoftmaxLoss
from expost.losses.softmax_curve import SoftmaxCurve as SoftmaxCurve
from expost.losses.squared import SquaredLoss as SquaredLoss
from expost.losses.vector import AnyLoss as AnyLoss, VectorLoss as VectorLoss
