"""Helpers that every room uses: array types, argument checks, files, threads, strict JSON."""
