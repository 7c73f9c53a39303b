"""What did this model cost me? Private generalised linear models, and every person's exact privacy loss."""

from importlib.metadata import version as _version

from expost import (
    audit as audit,
    budgets as budgets,
    exceptions as exceptions,
    gaussian as gaussian,
    goe as goe,
)
from expost.data.domain import Domain as Domain
from expost.estimators import (
    LinearRegression as LinearRegression,
    LogisticRegression as LogisticRegression,
    SmoothedHingeClassifier as SmoothedHingeClassifier,
)
from expost.losses import (
    LogisticLoss as LogisticLoss,
    Loss as Loss,
    PseudoHuber as PseudoHuber,
    SmoothedHinge as SmoothedHinge,
    SquaredLoss as SquaredLoss,
    check_loss as check_loss,
)
from expost.losses.regularizers import Regularizer as Regularizer, SmoothedL1 as SmoothedL1
from expost.privacy.calibration import calibrate as calibrate
from expost.privacy.plan import Plan as Plan
from expost.publication import Publication as Publication

__version__ = _version("expost")
