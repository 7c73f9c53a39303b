"""Reproductions of the experiments in the papers that this library builds on."""
