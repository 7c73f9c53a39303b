"""Reading a release: intervals for every record's loss, from public values."""

from expost.reports.evaluate import Bounds as Bounds, evaluate as evaluate
