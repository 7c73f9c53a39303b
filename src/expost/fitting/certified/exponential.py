r"""The exponential of a negative pair, with a proof of its error.

No mathematical library promises how exact its ``exp`` is, so this one is built from a table and a polynomial.
"""

from functools import cache
from typing import Any

import numpy as np

from expost._common.namespaces import Space, namespace_of
from expost.fitting.certified.pairs import FloatArray, Pair, fast_two_sum, two_prod, two_sum

RELATIVE_ERROR = 2.0**-74
"""Bound on the relative error of :func:`decay` for arguments up to :data:`LIMIT`."""
LIMIT = 640.0
"""Larger arguments are taken for this one; both exponentials are below ``2**-923``."""

_STEPS = 512  # the fine table's length
_COARSE = 8  # steps of the coarse table in one unit
_FINE = _STEPS * _COARSE
_BITS = 256  # of the integers from which the tables are made


def decay(high: FloatArray, low: FloatArray) -> Pair:
    r"""``exp(-(high + low))`` as a pair, for ``high >= 0`` and ``|low| <= 2**-40``.

    Write :math:`t = i_1/8 + i_0/4096 + r` with :math:`0 \le i_0 < 512` and, because :math:`i` is the integer
    nearest to :math:`4096\,t_h`, :math:`|r| \le 2^{-13} + 2^{-40}`. Then :math:`e^{-t} = A B e^{-r}` with
    :math:`A = e^{-i_1/8}` and :math:`B = e^{-i_0/4096}` from tables.

    Notes
    -----
    The error, relative to :math:`e^{-t}`, with :math:`u = 2^{-53}`:

    - *Reduction*: :math:`t_h - i/4096` is exact (both are multiples of the last bit of :math:`t_h`, and the
      difference is smaller than either or is :math:`t_h` itself); the sum with :math:`t_l` is a pair
      :math:`r + \rho` without error, :math:`|\rho| \le 2^{-66}`. Below :math:`t_h = 2^{-40}` nothing changes.
    - *Tables*: high parts have 26 bits, low parts are rounded to 53 bits below them: each entry is off by
      at most :math:`2^{-26}u = 2^{-79}` of itself, two of them by :math:`2^{-78}`.
    - *Product* :math:`AB`: :math:`P = A_hB_h` is exact. The rest, :math:`C = A_hB_l + A_l(B_h + B_l)`, is at
      most :math:`2^{-24.9}` of it; of the four roundings each is at most :math:`2^{-25.9}u` of it
      (the products, the sum :math:`B_h + B_l`) or :math:`2^{-24.9}u` (the last sum): together
      :math:`5 \cdot 2^{-78.9} < 2^{-76.5}`.
    - *Polynomial*: :math:`e^{-r} = 1 - r + q`, :math:`q = r^2(1/2 - r/6 + r^2/24 - r^3/120)` with a remainder
      of :math:`|r|^6/720 < 2^{-87}`; :math:`q \le 2^{-26.9}` is computed with a relative error below
      :math:`4u` (square, Horner's last sum and the product round once each, the steps before it contribute
      less than :math:`2^{-13}u`, the constant 1/6 is off by :math:`u`): :math:`2^{-77.9}`. The term
      :math:`-\rho e^{-r}` enters as :math:`\rho(r - 1)`; what is left of it is below :math:`2^{-90}`.
    - *Assembly*: :math:`Pr` is a product without error, :math:`P - (Pr)_h` a sum without error. The rest,
      :math:`(Pq' - (Pr)_l) + C(1 - r + q')` with :math:`q' = q + \rho(r-1)`, is below :math:`2^{-24.6}` of
      :math:`P`. Of its seven roundings two are at the size :math:`2^{-27}` of :math:`Pq'`, three at the size
      :math:`2^{-25}` of :math:`C`, two at its own: together :math:`6.2 \cdot 2^{-78} < 2^{-75.3}`.

    The sum of :math:`2^{-78} + 2^{-76.5} + 2^{-77.9} + 2^{-75.3}` and what is smaller is below
    :math:`2^{-74.4}`. For arguments up to 640 no part underflows: the smallest, a low part, is above
    :math:`2^{-1022}`, or is off by at most :math:`2^{-1072}`, which is :math:`2^{-149}` of the result.
    """
    xp = namespace_of(high)
    coarse_high, coarse_low, fine_high, fine_low, fine = (
        _tables() if xp is np else _placed_tables(Space.of(high))
    )
    inside = high <= LIMIT
    if xp is not np or not inside.all():
        high, low = xp.where(inside, high, LIMIT), xp.where(inside, low, 0.0)
    nearest = xp.round(high * _FINE)
    index = xp.astype(nearest, xp.int64)
    r, rest = two_sum(high - nearest * (1.0 / _FINE), low)
    q = r * r * (0.5 - r * (1.0 / 6.0 - r * (1.0 / 24.0 - r * (1.0 / 120.0))))
    q += rest * (r - 1.0)
    upper, lower = index >> 9, index & (_STEPS - 1)
    a_high, a_low = xp.take(coarse_high, upper), xp.take(coarse_low, upper)
    b_high, b_low = xp.take(fine_high, lower), xp.take(fine_low, lower)
    product = a_high * b_high
    cross = a_high * b_low + a_low * xp.take(fine, lower)
    shift, shift_low = two_prod(product, r)
    main, main_low = fast_two_sum(product, -shift)
    return fast_two_sum(main, main_low + ((product * q - shift_low) + cross * (1.0 - r + q)))


@cache
def _tables() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    coarse_high, coarse_low = _powers(_COARSE, int(LIMIT) * _COARSE + 1)
    fine_high, fine_low = _powers(_FINE, _STEPS)
    return coarse_high, coarse_low, fine_high, fine_low, fine_high + fine_low


@cache
def _placed_tables(space: Space) -> Any:
    """The tables on a device, copied there once."""
    return tuple(map(space.put, _tables()))


def _powers(steps: int, length: int) -> Pair:
    """``exp(-k / steps)`` for ``k < length``, each as 26 bits and 53 more, by integer arithmetic.

    The series alternates, so that its remainder is below the first term left out; each of the 256-bit
    products loses at most one unit, so that after 5120 of them 240 bits are right.
    """
    ratio = term = 1 << _BITS
    count = 0
    while term:
        count += 1
        term //= steps * count
        ratio += -term if count % 2 else term
    high, low = np.empty(length), np.empty(length)
    mantissa, exponent = 1 << _BITS, -_BITS
    for k in range(length):
        cut = mantissa.bit_length() - 26
        top = (mantissa + (1 << (cut - 1))) >> cut
        high[k] = np.ldexp(float(top), exponent + cut)
        rest = mantissa - (top << cut)
        # The conversion of an integer rounds once, to nearest; keep it in the range of doubles.
        low[k] = np.ldexp(float(rest >> 64), exponent + 64)
        mantissa = mantissa * ratio >> _BITS
        lost = _BITS + 1 - mantissa.bit_length()
        mantissa, exponent = mantissa << lost, exponent - lost
    return high, low
