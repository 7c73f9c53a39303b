"""The law of the largest eigenvalue of the Gaussian orthogonal ensemble."""

from expost.goe.law import LargestEigenvalue as LargestEigenvalue
