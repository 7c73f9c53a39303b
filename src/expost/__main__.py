"""``python -m expost`` is the command line."""

from expost.cli import app

app(prog_name="expost")
