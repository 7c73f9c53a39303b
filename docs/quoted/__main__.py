"""``python -m docs.quoted``."""

import sys

from docs.quoted import PAGES, ROOT, NumbersError, fill


def main() -> None:
    """Fill every page, or none."""
    filled = {}
    for page in PAGES:
        try:
            filled[page] = fill(page.read_text(encoding="utf-8"))
        except NumbersError as error:
            sys.exit(f"{page.relative_to(ROOT)}: {error}")
    for page, text in filled.items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
