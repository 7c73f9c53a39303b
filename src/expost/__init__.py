"""What did this model cost me? Private generalised linear models, and every person's exact privacy loss."""

from importlib.metadata import version as _version

from expost.losses import (
    LogisticLoss as LogisticLoss,
    Loss as Loss,
    PseudoHuber as PseudoHuber,
    SmoothedHinge as SmoothedHinge,
    SquaredLoss as SquaredLoss,
)

__version__ = _version("expost")
