"""Where passes over the rows are run."""
