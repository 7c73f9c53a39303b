"""Sums of squares of rows, in place, beside plain products."""

import numpy as np
import pytest

from expost.data.rows import LONGEST_SUM
from expost.fitting.squares import Gram


def blocks_of(rows, length):
    return [rows[start : start + length] for start in range(0, len(rows), length)]


@pytest.mark.parametrize("precision", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("count", "dimension"), [(1, 1), (40, 3), (700, 300), (3, 600)])
def test_the_sum_of_squares_of_whole_numbers_is_exact(precision, order, count, dimension):
    """Every order of summation gives the same, in both precisions, and both halves are there."""
    rows = np.random.default_rng(count).integers(-8, 9, size=(count, dimension))
    gram = Gram(dimension, precision)
    for block in blocks_of(np.asarray(rows, dtype=precision, order=order), 64):
        gram.add_rows(block)
    found = gram.matrix()
    np.testing.assert_array_equal(found, rows.T @ rows)
    assert found.dtype == np.float64
    assert found.flags.c_contiguous


@pytest.mark.parametrize("precision", [np.float64, np.float32])
@pytest.mark.parametrize("length", [100, 3000, LONGEST_SUM, 3 * LONGEST_SUM])
def test_long_tables_are_added_up_in_groups(precision, length):
    """No entry is off by more than a group's additions, the groups' and the cast can account for."""
    rows = np.random.default_rng(1).normal(size=(3 * LONGEST_SUM + 17, 5)).astype(precision)
    gram = Gram(5, precision)
    for block in blocks_of(rows, length):
        gram.add_rows(block)
    wide = rows.astype(np.longdouble)
    sizes = np.abs(wide).T @ np.abs(wide)
    unit = float(np.finfo(precision).eps)
    chain = max(length, LONGEST_SUM) + len(rows) / min(length, LONGEST_SUM)
    assert np.all(np.abs(gram.matrix() - wide.T @ wide) <= chain * unit * sizes)


def test_single_precision_is_summed_in_double_precision_across_groups():
    """Ones beside 2**26: in single precision they would be lost one by one."""
    rows = np.ones((LONGEST_SUM, 1), dtype=np.float32)
    gram = Gram(1, np.float32)
    gram.add_rows(np.full((1, 1), 2.0**13, dtype=np.float32))
    for _ in range(4):
        gram.add_rows(rows)
    assert gram.matrix()[0, 0] == 2.0**26 + 4 * LONGEST_SUM


def test_no_row_at_all_is_a_sum_of_zero():
    gram = Gram(3)
    gram.add_rows(np.empty((0, 3)))
    np.testing.assert_array_equal(gram.matrix(), np.zeros((3, 3)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_view_of_a_longer_buffer_is_read_by_its_strides(order):
    buffer = np.asarray(np.arange(60.0).reshape(12, 5), order=order)
    part = buffer[:7, :4]
    gram = Gram(4)
    gram.add_rows(part)
    np.testing.assert_array_equal(gram.matrix(), part.T @ part)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (0, 3)])
def test_single_rows_and_columns_are_added_in_any_order(shape, order):
    rows = np.asarray(np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape), order=order)
    gram = Gram(shape[1], np.float64)
    gram.add_rows(rows)
    np.testing.assert_array_equal(gram.matrix(), rows.T @ rows)
