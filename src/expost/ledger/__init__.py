"""Accounts that count what was spent of each table."""

from expost.ledger.account import Account as Account
from expost.ledger.ledger import Ledger as Ledger
