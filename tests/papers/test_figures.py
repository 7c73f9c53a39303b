"""The paper's figures are to be read at half size: labels are large and apart, legends and data too."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from papers.redberg_wang_2021 import plotting
from papers.redberg_wang_2021.catalogue import EXPERIMENTS
from papers.redberg_wang_2021.comparison_figure import LEFT_OUT
from papers.redberg_wang_2021.experiment import load_document
from papers.redberg_wang_2021.publications import WHOM

SMALLEST = 13.0
"""In points; at half size and 100 dots per inch such letters are nine dots high."""


# To draw all of them takes ten seconds.
QUICKLY = {"02_regularization", "09_comparison", "10_errata"}
DRAWN = [
    pytest.param(experiment, id=experiment.name, marks=[pytest.mark.slow] * (experiment.name not in QUICKLY))
    for experiment in EXPERIMENTS
]


@pytest.fixture(scope="module", params=DRAWN)
def drawn(request):
    """A figure of the committed numbers, and where its words stand."""
    with plotting.styled():
        figure = request.param.draw(load_document(request.param.name)["numbers"])
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        beyond = set(_beyond(figure))
        words = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
        return figure, renderer, [text for text in words if text not in beyond]


def _beyond(figure):
    """Labels of ticks outside their scale, which matplotlib keeps and does not draw."""
    for axis in (axis for plane in figure.axes for axis in (plane.xaxis, plane.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)


def test_no_two_labels_overlap(drawn):
    _, renderer, words = drawn
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in words]
    touching = [
        (one, other)
        for (one, first), (other, second) in combinations(boxes, 2)
        if first.padded(-1.0).overlaps(second.padded(-1.0))
    ]
    assert touching == []


def test_letters_are_large_enough_for_half_size(drawn):
    _, _, words = drawn
    assert [text.get_text() for text in words if text.get_fontsize() < SMALLEST] == []


def test_nothing_is_drawn_over_a_legend(drawn):
    figure, renderer, _ = drawn
    legends = [*figure.legends, *(legend for part in figure.subfigs for legend in part.legends)]
    panels = [plane.get_window_extent(renderer) for plane in figure.axes]
    assert [plane for plane in figure.axes if plane.get_legend() is not None] == []
    boxes = [legend.get_window_extent(renderer) for legend in legends]
    assert not any(box.overlaps(panel) for box in boxes for panel in panels)


def test_everything_lies_within_the_figure(drawn):
    figure, renderer, words = drawn
    frame = figure.bbox.padded(1.0)
    outside = [
        text.get_text()
        for text in words
        if not all(frame.contains(x, y) for x, y in text.get_window_extent(renderer).corners())
    ]
    assert outside == []


@pytest.mark.parametrize("key", LEFT_OUT)
def test_a_curve_that_is_left_out_lies_on_one_that_is_drawn(key):
    other, share = LEFT_OUT[key]
    for table in load_document("09_comparison")["numbers"]["tables"].values():
        for epsilon, row in table[key].items():
            shown = table[other][epsilon]
            assert row["auc"][1] == pytest.approx(shown["auc"][1], abs=1e-5)
            for whom in WHOM.values():
                assert np.abs(row[whom][1] / shown[whom][1] - 1.0) <= share
