"""A figure of matplotlib's that a notebook shows by itself; to import it takes the extra ``figures``."""

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure that pyplot does not hold, shown in a notebook whether or not it was told to show figures."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()
