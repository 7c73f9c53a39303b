"""The experiments of the papers that this library builds on, run again."""
