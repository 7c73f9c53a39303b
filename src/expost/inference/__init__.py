"""What a publication with a Hessian says about the population: coefficients and probabilities, how sure."""

from expost.inference.inference import Inference as Inference, ProbabilityIntervals as ProbabilityIntervals
from expost.inference.table import CoefficientTable as CoefficientTable
