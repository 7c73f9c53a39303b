"""The command line: ``expost``, or ``python -m expost``."""

from expost._common.progress import ignore_interrupts, stop_quietly


def main() -> None:
    """Run the command line."""
    stop_quietly()
    from expost.cli import app  # takes a moment, in which Ctrl-C may come

    try:
        app(prog_name="expost")
    finally:
        ignore_interrupts()
        # Python remembers a Ctrl-C that was answered, and would end `python -m expost` by it: forget it.
        exec("")


if __name__ == "__main__":
    main()
