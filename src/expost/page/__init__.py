"""The page: one self-contained file on which a person reads what publications cost her."""

from expost.page.assembly import render as render
