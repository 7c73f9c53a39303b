"""Estimators with scikit-learn's interface."""

from expost.estimators.classifiers import (
    LogisticRegression as LogisticRegression,
    SmoothedHingeClassifier as SmoothedHingeClassifier,
)
from expost.estimators.convex import ConvexModel as ConvexModel
from expost.estimators.glm import GeneralizedLinearModel as GeneralizedLinearModel
from expost.estimators.outcomes import (
    GammaRegression as GammaRegression,
    PoissonRegression as PoissonRegression,
    QuantileRegression as QuantileRegression,
)
from expost.estimators.regression import LinearRegression as LinearRegression
from expost.estimators.rows import (
    OrdinalRegression as OrdinalRegression,
    SurvivalRegression as SurvivalRegression,
)
