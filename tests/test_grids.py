"""The cells that `make test` has of a grid show what they say, and there are few of them."""

from itertools import combinations, product

import pytest
from grids import grid

AXES = ("abcd", range(4), [None, True, False])


@pytest.mark.parametrize(("together", "most"), [(1, 4), (2, 20), (3, 48)])
def test_the_quick_cells_show_every_combination_and_the_slow_ones_all_the_rest(together, most):
    cells = grid(*AXES, together=together)
    assert [cell.values for cell in cells] == list(product(*AXES))
    quick = [cell.values for cell in cells if not cell.marks]
    assert len(quick) <= most
    for some in combinations(range(3), together):
        shown = {tuple(cell[axis] for axis in some) for cell in quick}
        assert shown == set(product(*(AXES[axis] for axis in some)))
    assert all(mark.name == "slow" for cell in cells for mark in cell.marks)


def test_settings_take_turns():
    quick = [cell.values for cell in grid(range(8), "ab", together=1) if not cell.marks]
    assert sorted(number for number, _ in quick) == list(range(8))
    assert [letter for _, letter in quick].count("a") == 4


def test_cells_that_are_always_slow_are_not_chosen():
    cells = grid(*AXES, slow=lambda letter, number, _: letter == "a" and number > 0)
    quick = [cell.values for cell in cells if not cell.marks]
    assert {cell for cell in quick if cell[0] == "a"} <= set(product("a", [0], AXES[2]))
    assert {(letter, number) for letter, number, _ in quick if letter != "a"} == set(product("bcd", range(4)))
