"""Budgets stated as zCDP or GDP, as an epsilon (re-exports)."""

from expost.privacy.budgets import from_gdp as from_gdp, from_zcdp as from_zcdp
