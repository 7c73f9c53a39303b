"""Objective perturbation: from a plan and rows to a release, and exact losses afterwards."""
