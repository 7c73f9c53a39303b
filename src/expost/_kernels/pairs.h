/* Numbers of about 106 bits as unevaluated sums of two doubles, as expost.fitting.certified.pairs has them.

   Every function is written for one number; the compiler works on many of them at a time. Errors are proved in
   docs/mathematics.md, section 10. The compiler must not fuse operations by itself (-ffp-contract=off). */

#ifndef EXPOST_PAIRS_H
#define EXPOST_PAIRS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
#define FUSED 1
#else
#define FUSED 0
#endif

typedef struct { double high, low; } pair;

static inline int64_t bits_of(double a) { int64_t bits; memcpy(&bits, &a, 8); return bits; }
static inline double from_bits(int64_t bits) { double a; memcpy(&a, &bits, 8); return a; }

/* a b + c where its rounding does not matter: in one operation if the machine has it. */
static inline double muladd(double a, double b, double c) {
#if FUSED
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* The rounded sum and what was rounded away. */
static inline pair two_sum(double a, double b) {
    double high = a + b, shadow = high - a;
    return (pair){high, (a - (high - shadow)) + (b - shadow)};
}

/* The same for |a| >= |b|. */
static inline pair fast_two_sum(double a, double b) {
    double high = a + b;
    return (pair){high, b - (high - a)};
}

/* The rounded product and what was rounded away, but for underflow. */
static inline pair two_prod(double a, double b) {
    double high = a * b;
#if FUSED
    return (pair){high, __builtin_fma(a, b, -high)};
#else
    /* Dekker's; halves of the bit pattern cannot overflow. */
    double a_high = from_bits((bits_of(a) + ((int64_t)1 << 26)) & -((int64_t)1 << 27)), a_low = a - a_high;
    double b_high = from_bits((bits_of(b) + ((int64_t)1 << 26)) & -((int64_t)1 << 27)), b_low = b - b_high;
    return (pair){high, a_low * b_low - (((high - a_high * b_high) - a_low * b_high) - a_high * b_low)};
#endif
}

static inline pair add(pair a, pair b) {
    pair sum = two_sum(a.high, b.high);
    return fast_two_sum(sum.high, sum.low + (a.low + b.low));
}

static inline pair add_accurately(pair a, pair b) {
    pair sum = two_sum(a.high, b.high), next = two_sum(a.low, b.low);
    sum = fast_two_sum(sum.high, sum.low + next.high);
    return fast_two_sum(sum.high, sum.low + next.low);
}

static inline pair times(pair a, pair b) {
    pair product = two_prod(a.high, b.high);
    return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

static inline pair divide(pair a, pair b) {
    double quotient = a.high / b.high;
    pair product = two_prod(quotient, b.high);
    double left = (a.high - product.high) - product.low + (a.low - quotient * b.low);
    return fast_two_sum(quotient, left / b.high);
}

/* For pairs between 1 and 2. */
static inline pair square_root(pair a) {
    double root = __builtin_sqrt(a.high);
    pair square = two_prod(root, root);
    double left = (a.high - square.high) - square.low + a.low;
    return fast_two_sum(root, left / (2.0 * root));
}

/* 1 + a for a pair between 0 and 1. */
static inline pair one_plus(pair a) {
    double high = 1.0 + a.high, low = a.high - (high - 1.0);
    return fast_two_sum(high, low + a.low);
}

static inline pair choose(int condition, pair a, pair b) {
    return (pair){condition ? a.high : b.high, condition ? a.low : b.low};
}

/* One more product of a double and a pair for a sum that carries what was rounded away. */
static inline void accumulate(double *sum, double *rest, double x, double high, double low) {
    pair product = two_prod(x, high), total = two_sum(*sum, product.high);
    *rest += muladd(x, low, total.low + product.low);
    *sum = total.high;
}

#endif
