"""The command line: `commands` declares what it takes, and other modules do the work."""

from expost.cli.commands import app as app
