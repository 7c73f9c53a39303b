/* Whether arithmetic does what the proofs of docs/mathematics.md, section 10, rely on. */

#ifndef EXPOST_SELF_TEST_H
#define EXPOST_SELF_TEST_H

#include "pairs.h"

/* Rounding to nearest, and no number that is taken for zero: settings of a thread that any library can change. */
static int sound_settings(void) {
    volatile double one = 1.0, half = 0x1p-53, more = 0x1.8p-53, smallest = 0x1p-1074, normal = 0x1p-1022;
    volatile double down = one + half, up = one + more, below = -one - half, beyond = -one - more;
    volatile double kept = smallest * one, halved = normal * 0.5;
    return down == 1.0 && up == 1.0 + 0x1p-52 && below == -1.0 && beyond == -1.0 - 0x1p-52 && kept != 0.0 &&
           halved != 0.0;
}

/* Whole numbers of `bits` bits, of both signs, without a pattern that a sum could hide. */
static double whole_number(uint64_t *state, int bits) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    int64_t number = (int64_t)(*state >> (64 - bits));
    return (double)(number - ((int64_t)1 << (bits - 1)));
}

/* Sums and products of integers whose exact values are known. */
static int exact_pairs(void) {
    enum { COUNT = 64 };
    double a[COUNT], b[COUNT], sums[COUNT], sums_low[COUNT], products[COUNT], products_low[COUNT];
    uint64_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        a[i] = whole_number(&state, 53);
        b[i] = whole_number(&state, i % 2 ? 53 : 30);
    }
    for (int i = 0; i < COUNT; i++) {
        pair sum = two_sum(a[i], 0x1p20 * b[i]), product = two_prod(a[i], b[i]);
        sums[i] = sum.high;
        sums_low[i] = sum.low;
        products[i] = product.high;
        products_low[i] = product.low;
    }
    int good = 1;
    for (int i = 0; i < COUNT; i++) {
        __int128 first = (__int128)a[i], second = (__int128)b[i];
        good &= (__int128)sums[i] + (__int128)sums_low[i] == first + ((__int128)1 << 20) * second;
        good &= (__int128)products[i] + (__int128)products_low[i] == first * second;
    }
    volatile double one = 1.0, three = 3.0, two = 2.0;
    return good && one / three == 0x1.5555555555555p-2 && __builtin_sqrt(two) == 0x1.6a09e667f3bcdp+0;
}

#endif
