"""The experiments' data sets, encoded by declared domains only."""

from papers.datasets.base import DataSet, DataUnavailable
from papers.datasets.files import available
from papers.datasets.loaders import adult, credit, kidney, wine

__all__ = ["DataSet", "DataUnavailable", "adult", "available", "credit", "kidney", "wine"]
