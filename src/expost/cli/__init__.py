"""The command line, one module for each command."""

from expost.cli import bounds, demo, fit, init, losses, page, plan
from expost.cli.base import app as app

__all__ = ["app", "bounds", "demo", "fit", "init", "losses", "page", "plan"]
