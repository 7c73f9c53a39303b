"""Privacy accounting: from a budget to a plan with a certificate, before any data."""
