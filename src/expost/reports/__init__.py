"""Reading a release: intervals for every record's loss, from public values."""

from expost.reports.base import Bounds as Bounds
from expost.reports.evaluate import evaluate as evaluate
