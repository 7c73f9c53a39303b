"""The command line: the commands, in the order in which a user needs them."""

from expost.cli.base import app as app
from expost.cli.bounds import bounds as _bounds
from expost.cli.check import check as _check, init as _init
from expost.cli.demo import demo as _demo
from expost.cli.fit import fit as _fit, plan as _plan
from expost.cli.ledger import ledger as _ledger
from expost.cli.losses import losses as _losses
from expost.cli.page import page as _page
from expost.cli.predict import predict as _predict
from expost.cli.summary import summary as _summary

for _command in (_demo, _init, _check, _plan, _fit, _page, _predict, _bounds, _losses, _summary, _ledger):
    app.command()(_command)
