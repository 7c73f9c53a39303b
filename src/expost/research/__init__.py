"""Experiments with the mechanism: seeded draws, exact losses at any coefficients, reports of one's own."""

from expost.fitting.loss_terms import LossTerms as LossTerms
from expost.fitting.private_fit import PrivateFit as PrivateFit
from expost.fitting.release import Release as Release
from expost.reports.bounds import Figures as Figures
from expost.reports.drift import Drift as Drift
from expost.research.experiments import (
    Report as Report,
    bounds as bounds,
    draw as draw,
    imagine as imagine,
    losses as losses,
)
