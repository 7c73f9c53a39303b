/* Derivatives of the softmax loss in the scores of its classes, in doubles and, with proved errors, as pairs.

   The formulas are those of expost.fitting.certified.softmax_slopes. Numbers of class j, or of a pair of classes,
   follow those of the one before at a distance of `stride`. */

#ifndef EXPOST_SOFTMAX_H
#define EXPOST_SOFTMAX_H

#include "losses.h"

#include <math.h>

static void softmax_derivatives_of(
    const loss *of, ptrdiff_t count, ptrdiff_t stride, const double *restrict scores, const double *restrict y,
    const shapes_of_rows *restrict by_row, double *restrict slopes, double *restrict weights, double *restrict room
) {
    const loss self = *of;
    double *restrict top = room, *restrict total = top + stride, *restrict ahead = total + stride;
    double *restrict steep = ahead + stride, *restrict curvature = steep + stride, *restrict mixed = curvature + stride;
    EACH { top[i] = -__DBL_MAX__; total[i] = 0.0; ahead[i] = 0.0; }
    for (ptrdiff_t j = 0; j < self.classes; j++)
        EACH {
            double score = scores[j * stride + i];
            top[i] = y[i] == j ? top[i] : most(top[i], score);
            ahead[i] = y[i] == j ? score : ahead[i];
        }
    for (ptrdiff_t j = 0; j < self.classes; j++)
        EACH {
            double unused, power = exponential(least(scores[j * stride + i] - top[i], 0.0), &unused);
            power = y[i] == j ? 0.0 : power;
            slopes[j * stride + i] = power;
            total[i] += power;
        }
    EACH {
        double lead = top[i] - ahead[i], unused, less = exponential(-__builtin_fabs(lead), &unused);
        double over = lead > 0.0 ? total[i] : total[i] * less, one = lead > 0.0 ? less : 1.0;
        steep[i] = over / (over + one);
        curvature[i] = steep[i] * (one / (over + one));
        mixed[i] = steep[i] * steep[i];
        ahead[i] = lead;
    }
    if (self.kind == CAPPED_SOFTMAX) {
        EACH_SHAPE(
            double bend, slope = capped(at, ahead[i] + log(total[i]), &bend);
            int outside = steep[i] > at->steep;
            steep[i] = outside ? slope : steep[i];
            curvature[i] = outside ? bend : curvature[i];
            mixed[i] = outside ? slope - bend : mixed[i];
        )
    }
    for (ptrdiff_t j = 0; j < self.classes; j++) EACH slopes[j * stride + i] /= total[i];
    ptrdiff_t place = 0;
    for (ptrdiff_t a = 0; a < self.classes; a++)
        for (ptrdiff_t b = a + 1; b < self.classes; b++, place++)
            EACH {
                double one = slopes[a * stride + i], other = slopes[b * stride + i];
                double with_true = (y[i] == a ? other : 0.0) + (y[i] == b ? one : 0.0);
                weights[place * stride + i] = mixed[i] * one * other + curvature[i] * with_true;
            }
    for (ptrdiff_t j = 0; j < self.classes; j++)
        EACH slopes[j * stride + i] = y[i] == j ? -steep[i] : steep[i] * slopes[j * stride + i];
}

/* Factors of the Hessians in the predictors, from the weights of pairs of classes: one column for each class but the
   last, entry a of column c at place a * predictors + c. The Hessian in the scores is the Laplacian of a graph with
   these weights. To eliminate a class adds positive numbers to the weights of the others, so that what is tiny keeps
   its digits; the pivots are sums of weights. `basis` has a row of so many predictors for each class. */
static void softmax_factors(
    const loss *of, ptrdiff_t count, ptrdiff_t stride, const double *basis, double *weights, double *factors,
    double *restrict total
) {
    ptrdiff_t classes = of->classes, predictors = classes - 1;
    for (ptrdiff_t c = 0; c < predictors; c++) {
        double *own = weights; /* those of the pairs (c, c + 1), ..., (c, classes - 1) */
        weights += (predictors - c) * stride;
        EACH total[i] = 0.0;
        for (ptrdiff_t j = 0; j < predictors - c; j++) EACH total[i] += own[j * stride + i];
        for (ptrdiff_t j = 0; j < predictors - c; j++)
            EACH own[j * stride + i] = total[i] > 0.0 ? own[j * stride + i] / total[i] : 0.0;
        double *rest = weights;
        for (ptrdiff_t j = 0; j < predictors - c; j++)
            for (ptrdiff_t k = j + 1; k < predictors - c; k++, rest += stride) {
                double *restrict pair_ = rest;
                EACH pair_[i] += own[j * stride + i] * (own[k * stride + i] * total[i]);
            }
        for (ptrdiff_t a = 0; a < predictors; a++) {
            double *restrict entry = factors + (a * predictors + c) * stride;
            EACH entry[i] = basis[c * predictors + a];
            for (ptrdiff_t j = 0; j < predictors - c; j++) {
                double other = basis[(c + 1 + j) * predictors + a];
                EACH entry[i] -= own[j * stride + i] * other;
            }
            EACH entry[i] *= __builtin_sqrt(total[i]);
        }
    }
}

/* The logarithm of a pair of at least one, within 2^-74 and what is left of a double's error. */
static inline pair logarithm(const loss *tables, pair a) {
    double rough = most(log(a.high), 0.0);
    pair left = add_accurately(times(a, decay(tables, rough, 0.0)), (pair){-1.0, 0.0});
    double step = left.high + left.low;
    return two_sum(rough, step - 0.5 * step * step);
}

static void proved_softmax_derivatives_of(
    const loss *of, ptrdiff_t count, ptrdiff_t stride, const double *restrict high, const double *restrict low,
    const double *restrict y, const shapes_of_rows *restrict by_row, double *restrict slopes, double *restrict slopes_low,
    double *restrict weights, double *restrict room
) {
    const loss self = *of;
    double *restrict top = room, *restrict top_low = top + stride, *restrict own = top_low + stride;
    double *restrict own_low = own + stride, *restrict total = own_low + stride, *restrict total_low = total + stride;
    EACH { top[i] = -__DBL_MAX__; top_low[i] = own[i] = own_low[i] = total[i] = total_low[i] = 0.0; }
    for (ptrdiff_t j = 0; j < self.classes; j++)
        EACH {
            pair score = {high[j * stride + i], low[j * stride + i]};
            int here = y[i] == j;
            /* Pairs are compared by their high parts, then by their low ones. */
            int more = (here == 0) & ((score.high > top[i]) | ((score.high == top[i]) & (score.low > top_low[i])));
            top[i] = more ? score.high : top[i];
            top_low[i] = more ? score.low : top_low[i];
            own[i] = here ? score.high : own[i];
            own_low[i] = here ? score.low : own_low[i];
        }
    for (ptrdiff_t j = 0; j < self.classes; j++)
        EACH {
            pair score = {-high[j * stride + i], -low[j * stride + i]};
            pair distance = add_accurately((pair){top[i], top_low[i]}, score);
            int here = y[i] == j;
            pair power = decay(&self, here ? 0.0 : distance.high, here ? 0.0 : distance.low);
            power = choose(here, (pair){0.0, 0.0}, power);
            pair sum = add((pair){total[i], total_low[i]}, power);
            slopes[j * stride + i] = power.high;
            slopes_low[j * stride + i] = power.low;
            total[i] = sum.high;
            total_low[i] = sum.low;
        }
    /* From here on: the slope of the link in `top`, its curvature in `own`, what pairs share in `own_low`. */
    EACH_SHAPE(
        pair sum = {total[i], total_low[i]}, one = {1.0, 0.0};
        pair ahead = add_accurately((pair){top[i], top_low[i]}, (pair){-own[i], -own_low[i]});
        int wrong = ahead.high > 0.0;
        double sign = wrong ? 1.0 : -1.0;
        pair less = decay(&self, sign * ahead.high, sign * ahead.low);
        pair over = choose(wrong, sum, times(sum, less)), under = add(over, choose(wrong, less, one));
        pair steep = divide(over, under);
        double right = (wrong ? less.high : 1.0) / under.high, curvature = steep.high * right;
        double mixed = steep.high * steep.high;
        if (self.kind == CAPPED_SOFTMAX) {
            double flat;
            int outside = steep.high > at->steep;
            pair place = {-at->place.high, -at->place.low};
            pair beyond = add_accurately(add_accurately(ahead, logarithm(&self, sum)), place);
            pair exponent = corner_exponent(at, beyond);
            pair bent = corner_slope(at, decay(&self, exponent.high, exponent.low), &flat);
            steep = choose(outside, bent, steep);
            curvature = outside ? flat : curvature;
            mixed = outside ? steep.high - curvature : mixed;
        }
        top[i] = steep.high;
        top_low[i] = steep.low;
        own[i] = curvature;
        own_low[i] = mixed;
    )
    ptrdiff_t place = 0;
    for (ptrdiff_t a = 0; a < self.classes; a++)
        for (ptrdiff_t b = a + 1; b < self.classes; b++, place++)
            EACH {
                double one = slopes[a * stride + i] / total[i], other = slopes[b * stride + i] / total[i];
                double with_true = (y[i] == a ? other : 0.0) + (y[i] == b ? one : 0.0);
                weights[place * stride + i] = own_low[i] * one * other + own[i] * with_true;
            }
    for (ptrdiff_t j = 0; j < self.classes; j++)
        EACH {
            pair steep = {top[i], top_low[i]}, share = divide(steep, (pair){total[i], total_low[i]});
            pair slope = times((pair){slopes[j * stride + i], slopes_low[j * stride + i]}, share);
            slope = choose(y[i] == j, (pair){-steep.high, -steep.low}, slope);
            slopes[j * stride + i] = slope.high;
            slopes_low[j * stride + i] = slope.low;
        }
}

#endif
