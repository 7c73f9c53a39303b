"""Estimators with scikit-learn's interface."""

from expost.estimators.convex import ConvexModel as ConvexModel
from expost.estimators.glm import GeneralizedLinearModel as GeneralizedLinearModel
from expost.estimators.hinge import SmoothedHingeClassifier as SmoothedHingeClassifier
from expost.estimators.linear import LinearRegression as LinearRegression
from expost.estimators.logistic import LogisticRegression as LogisticRegression
