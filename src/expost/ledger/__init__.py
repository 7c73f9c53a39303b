"""Accounts that count what was spent of each table."""

from expost.ledger.ledger import Account as Account, Ledger as Ledger
