"""The experiments in the order of the page."""

from papers.redberg_wang_2021.e01_rotation import Rotation
from papers.redberg_wang_2021.e02_regularization import Regularization
from papers.redberg_wang_2021.e03_credit import Credit
from papers.redberg_wang_2021.e04_sizes import Sizes
from papers.redberg_wang_2021.e05_allocations import Allocations
from papers.redberg_wang_2021.e06_kidney import Kidney
from papers.redberg_wang_2021.e07_wine import Wine
from papers.redberg_wang_2021.e08_adaptive import Adaptive
from papers.redberg_wang_2021.e08_linear import Linear
from papers.redberg_wang_2021.e09_comparison import Comparison
from papers.redberg_wang_2021.e10_errata import Errata
from papers.redberg_wang_2021.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    Rotation(),
    Regularization(),
    Credit(),
    Sizes(),
    Allocations(),
    Kidney(),
    Wine(),
    Linear(),
    Adaptive(),
    Comparison(),
    Errata(),
)
