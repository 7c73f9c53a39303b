"""Losses, one family per module, and the check that a new loss is valid."""

from expost.losses.base import DerivativeCurve as DerivativeCurve, LabelSet as LabelSet, Loss as Loss
from expost.losses.binary import LogisticLoss as LogisticLoss, SmoothedHinge as SmoothedHinge
from expost.losses.check import check_convex_loss as check_convex_loss, check_loss as check_loss
from expost.losses.convex import (
    NO_LABEL as NO_LABEL,
    ConvexLoss as ConvexLoss,
    RecordBall as RecordBall,
    RecordBox as RecordBox,
    RecordSet as RecordSet,
)
from expost.losses.outcomes import (
    BoundedGamma as BoundedGamma,
    BoundedPoisson as BoundedPoisson,
    PseudoHuber as PseudoHuber,
    SmoothedPinball as SmoothedPinball,
    SquaredLoss as SquaredLoss,
)
from expost.losses.records import RecordLoss as RecordLoss, Records as Records
from expost.losses.registry import (
    LOSSES as LOSSES,
    as_loss as as_loss,
    describe as describe,
)
from expost.losses.robust import (
    LipschitzPoisson as LipschitzPoisson,
    LocationScale as LocationScale,
    SmoothedNorm as SmoothedNorm,
)
from expost.losses.softmax import SoftmaxLoss as SoftmaxLoss
from expost.losses.softmax_curve import SoftmaxCurve as SoftmaxCurve
from expost.losses.vector import AnyLoss as AnyLoss, VectorLoss as VectorLoss
