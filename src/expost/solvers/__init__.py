"""Minimisers of the perturbed objective."""

from expost.solvers.base import Solution as Solution
from expost.solvers.minimize import minimize as minimize
