"""Minimisers of the perturbed objective."""

from expost.fitting.solvers.base import Solution as Solution
from expost.fitting.solvers.minimize import minimize as minimize
