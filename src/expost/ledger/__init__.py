"""Accounts that count what was spent of each table."""

from expost.ledger.entries import Noted as Noted
from expost.ledger.ledger import Account as Account, Ledger as Ledger, check_account as check_account
