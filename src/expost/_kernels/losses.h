/* Derivatives of the library's losses of one linear predictor, in doubles and, with proved errors, as pairs.

   The formulas are those of expost.losses.binary, expost.losses.outcomes and expost.fitting.certified.slopes. */

#ifndef EXPOST_LOSSES_H
#define EXPOST_LOSSES_H

#include "pairs.h"

/* Derivatives that are GIVEN are those of somebody's own loss, which the caller found from the predictors. */
enum {
    GIVEN = -1, LOGISTIC, CAPPED, HINGE, PSEUDO_HUBER, SQUARED, PINBALL, POISSON, GAMMA, SOFTMAX, CAPPED_SOFTMAX, KINDS
};

/* The constants of the rows of one level. */
typedef struct {
    double scale;                     /* the hinge's, or the threshold of a residual */
    double fraction, shrink, again;   /* the threshold without its power of two, whose inverse is two factors */
    double cap, steep, turn, bend;    /* of a cap: c, m0, g0 and r, as doubles; or the level of a quantile */
    pair place, rate, gap;            /* g0, r and c - m0, as pairs */
} shape;

#define CONSTANTS 14
/* Rows of a chunk at most. */
#define MOST_ROWS 512

/* The constants of each row of a chunk: numbers of a kind side by side, which vectors are read from. */
typedef struct { double of[CONSTANTS][MOST_ROWS]; } shapes_of_rows;

static inline shape shape_of(const shapes_of_rows *by_row, ptrdiff_t i) {
    const double (*of)[MOST_ROWS] = by_row->of;
    return (shape){
        of[0][i], of[1][i], of[2][i], of[3][i], of[4][i], of[5][i], of[6][i], of[7][i],
        {of[8][i], of[9][i]}, {of[10][i], of[11][i]}, {of[12][i], of[13][i]},
    };
}

typedef struct {
    int64_t kind, classes;            /* or how many predictors there are */
    int64_t half;                     /* half of the number of levels, a power of two; 0 for one level */
    const double *limits;             /* falling squares of rows' lengths: those of level k are at most limits[k - 1] */
    const shape *shapes;
    double absolute;                  /* part of a slope's error; for SQUARED at a residual of one */
    const double *coarse_high, *coarse_low, *fine_high, *fine_low, *fine;
    const double *slopes, *bends;     /* GIVEN: of every row in each predictor, and in each pair of them */
} loss;

#define LIMIT 640.0
#define FAR_BEYOND 700.0
#define FAR_AWAY 0x1p400
#define FARTHEST 550.0

static inline double least(double a, double b) { return a < b ? a : b; }
static inline double most(double a, double b) { return a > b ? a : b; }

/* e^x - 1 and e^x in doubles, for x <= 0. */
static inline double exponential(double x, double *less_one) {
    x = x > -760.0 ? x : -760.0;
    double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52, k = shifted - 0x1.8p52;
    double r = muladd(k, -0x1.62e42fee00000p-1, x);
    r = muladd(k, -0x1.a39ef35793c76p-33, r);
    double q = 1.0 / 6227020800.0;
    q = muladd(q, r, 1.0 / 479001600.0);
    q = muladd(q, r, 1.0 / 39916800.0);
    q = muladd(q, r, 1.0 / 3628800.0);
    q = muladd(q, r, 1.0 / 362880.0);
    q = muladd(q, r, 1.0 / 40320.0);
    q = muladd(q, r, 1.0 / 5040.0);
    q = muladd(q, r, 1.0 / 720.0);
    q = muladd(q, r, 1.0 / 120.0);
    q = muladd(q, r, 1.0 / 24.0);
    q = muladd(q, r, 1.0 / 6.0);
    q = muladd(q, r, 0.5);
    q = muladd(q * r, r, r);
    /* In two steps, so that what underflows does so once. */
    int64_t whole = bits_of(shifted) - bits_of(0x1.8p52), half = whole / 2;
    double first = from_bits((half + 1023) << 52), second = from_bits((whole - half + 1023) << 52);
    double power = (1.0 + q) * first * second;
    *less_one = k == 0.0 ? q : power - 1.0;
    return power;
}

/* 1/(1 + e^-t), 1/(1 + e^t) and their product. */
static inline double probability(double t, double *other, double *product) {
    double unused, power = exponential(-__builtin_fabs(t), &unused), large = 1.0 / (1.0 + power);
    double small = power * large;
    *product = large * small;
    *other = t >= 0.0 ? small : large;
    return t >= 0.0 ? large : small;
}

/* The capped logistic loss at a prediction so far on the wrong side. */
static inline double capped(const shape *at, double wrong, double *curvature) {
    double inner = least(wrong, at->turn), less_one, other;
    double power = exponential(-at->bend * least(wrong - inner, 800.0 / at->bend), &less_one);
    double slope = probability(inner, &other, curvature) - at->gap.high * less_one;
    *curvature *= power;
    return slope;
}

/* e^x in doubles, of either sign; what is beyond FARTHEST counts as this far. */
static inline double rising(double x) {
    double unused, power = exponential(-__builtin_fabs(least(x, FARTHEST)), &unused);
    return x >= 0.0 ? 1.0 / power : power;
}

/* r / sqrt(1 + (r/c)^2), and e / (1 + (r/c)^2)^(3/2) for the exponential e in the residual r. */
static inline double squashed(double residual, double power, double threshold, double *curvature) {
    double size = __builtin_fabs(residual / threshold);
    double stretch = size > 1e100 ? size : __builtin_sqrt(1.0 + size * size);
    *curvature = power / stretch / (stretch * stretch);
    return residual / stretch;
}

#define EACH for (ptrdiff_t i = 0; i < count; i++)
/* The same with the constants of each row's level, which are known before the loop where there is one level only. */
#define EACH_SHAPE(...)                                                                                       \
    if (self.half == 0) {                                                                                     \
        const shape one_ = self.shapes[0], *at = &one_;                                                       \
        EACH { __VA_ARGS__ }                                                                                  \
    } else                                                                                                    \
        EACH { const shape own_ = shape_of(by_row, i), *at = &own_; __VA_ARGS__ }

static void derivatives_of(
    const loss *of, ptrdiff_t count, const double *restrict eta, const double *restrict y,
    const shapes_of_rows *restrict by_row, double *restrict slope, double *restrict curvature
) {
    const loss self = *of;
    switch (self.kind) {
    case LOGISTIC:
        EACH {
            double other, p = probability(eta[i], &other, &curvature[i]);
            slope[i] = (1.0 - y[i]) * p - y[i] * other;
        }
        break;
    case CAPPED:
        EACH_SHAPE(
            double steep = capped(at, y[i] > 0.5 ? -eta[i] : eta[i], &curvature[i]);
            slope[i] = y[i] > 0.5 ? -steep : steep;
        )
        break;
    case HINGE:
        EACH_SHAPE(
            double other, product, p = probability((1.0 - y[i] * eta[i]) / at->scale, &other, &product);
            slope[i] = -y[i] * p;
            curvature[i] = product / at->scale;
        )
        break;
    case PSEUDO_HUBER:
        EACH_SHAPE(
            double residual = eta[i] - y[i], size = __builtin_fabs(residual / at->scale);
            double stretch = size > 1e100 ? size : __builtin_sqrt(1.0 + size * size), cosine = 1.0 / stretch;
            double limit = residual > 0.0 ? at->scale : -at->scale;
            slope[i] = stretch > __DBL_MAX__ ? limit : residual / stretch;
            curvature[i] = cosine * cosine * cosine;
        )
        break;
    case PINBALL:
        EACH_SHAPE(
            double other, product, p = probability((eta[i] - y[i]) / at->scale, &other, &product);
            slope[i] = (1.0 - at->cap) * p - at->cap * other;
            curvature[i] = product / at->scale;
        )
        break;
    case POISSON:
        EACH_SHAPE(
            double mean = rising(eta[i]);
            slope[i] = squashed(mean - y[i], mean, at->scale, &curvature[i]);
        )
        break;
    case GAMMA:
        EACH_SHAPE(
            double ratio = y[i] * rising(-eta[i]);
            slope[i] = -squashed(ratio - 1.0, ratio, at->scale, &curvature[i]);
        )
        break;
    default:
        EACH {
            slope[i] = eta[i] - y[i];
            curvature[i] = 1.0;
        }
    }
}

/* e^-(high + low) as a pair, within 2^-74 of it; for high >= 0. What is no number is taken for the limit. */
static inline pair decay(const loss *tables, double high, double low) {
    int inside = high <= LIMIT;
    high = inside ? high : LIMIT;
    low = inside ? low : 0.0;
    double shifted = high * 4096.0 + 0x1.8p52, nearest = shifted - 0x1.8p52;
    int64_t index = bits_of(shifted) - bits_of(0x1.8p52), upper = index >> 9, lower = index & 511;
    pair reduced = two_sum(high - nearest * 0x1p-12, low);
    double r = reduced.high;
    double q = r * r * (0.5 - r * (1.0 / 6.0 - r * (1.0 / 24.0 - r * (1.0 / 120.0))));
    q += reduced.low * (r - 1.0);
    double a_high = tables->coarse_high[upper], a_low = tables->coarse_low[upper];
    double product = a_high * tables->fine_high[lower];
    double cross = a_high * tables->fine_low[lower] + a_low * tables->fine[lower];
    pair shift = two_prod(product, r), main = fast_two_sum(product, -shift.high);
    return fast_two_sum(main.high, main.low + ((product * q - shift.low) + cross * (1.0 - r + q)));
}

/* The smaller of p and 1 - p from its exponential, and the curvature that belongs to it. */
static inline pair smaller(pair power, double *curvature) {
    pair small = divide(power, one_plus(power));
    *curvature = small.high * (1.0 - small.high);
    return small;
}

static inline pair whole_probability(pair small, double sign) {
    pair p = fast_two_sum(0.5 + 0.5 * sign, -sign * small.high);
    return fast_two_sum(p.high, p.low - sign * small.low);
}

/* r t for t beyond the corner, between 0 and 700. */
static inline pair corner_exponent(const shape *at, pair beyond) {
    double limit = FAR_BEYOND / at->rate.high;
    int inside = (beyond.high > 0.0) & (beyond.high <= limit);
    return times(at->rate, (pair){least(most(beyond.high, 0.0), limit), inside ? beyond.low : 0.0});
}

/* c - (c - m0) e^-rt, and the curvature there. */
static inline pair corner_slope(const shape *at, pair power, double *curvature) {
    pair lost = times(at->gap, power), slope = two_sum(at->cap, -lost.high);
    *curvature = at->rate.high * lost.high;
    return fast_two_sum(slope.high, slope.low - lost.low);
}

/* r / sqrt(r^2 + c^2), and (1 + (r/c)^2)^(-3/2); both lengths come divided by c's power of two. */
static inline pair saturating(pair r, double c, double *curvature) {
    int negative = bits_of(r.high) < 0, far = !(__builtin_fabs(r.high) <= FAR_AWAY);
    double size = far ? FAR_AWAY : __builtin_fabs(r.high), low = far ? 0.0 : (negative ? -r.low : r.low);
    int inner = size <= c;
    pair length = {size, low}, constant = {c, 0.0}, one = {1.0, 0.0};
    pair quotient = divide(choose(inner, length, constant), choose(inner, constant, length));
    pair square = two_prod(quotient.high, quotient.high);
    pair root = square_root(one_plus((pair){square.high, square.low + 2.0 * quotient.high * quotient.low}));
    pair share = divide(choose(inner, quotient, one), root);
    double cosine = (inner ? 1.0 : quotient.high) / root.high;
    *curvature = cosine * cosine * cosine;
    return (pair){negative ? -share.high : share.high, negative ? -share.low : share.low};
}

/* e^(high + low) of either sign as a pair. */
static inline pair exponential_pair(const loss *tables, double high, double low) {
    int rises = bits_of(high) >= 0;
    pair power = decay(tables, __builtin_fabs(high), rises ? low : -low), one = {1.0, 0.0};
    return choose(rises, divide(one, power), power);
}

/* The probability at a distance in scales, and the curvature there. */
static inline pair at_distance(const loss *tables, pair distance, double scale, double *curvature) {
    double reach = 700.0 * least(scale, 1e300);
    int far = !(__builtin_fabs(distance.high) <= reach);
    distance.low = far ? 0.0 : distance.low;
    distance.high = least(most(distance.high, -reach), reach);
    pair t = divide(distance, (pair){scale, 0.0});
    double sign = __builtin_copysign(1.0, t.high), flat;
    pair small = smaller(decay(tables, __builtin_fabs(t.high), sign * t.low), &flat);
    *curvature = flat / scale;
    return whole_probability(small, sign);
}

/* c r / sqrt(r^2 + c^2) for a residual with an exponential in it, and the curvature. */
static inline pair squashed_pair(const shape *at, pair residual, double power, double *curvature) {
    double cosines;
    pair shrunk = {residual.high * at->shrink * at->again, residual.low * at->shrink * at->again};
    pair found = times(saturating(shrunk, at->fraction, &cosines), (pair){at->scale, 0.0});
    *curvature = least(power, FAR_AWAY * at->scale) * cosines;
    return found;
}

/* Slopes as pairs and curvatures. The absolute part of a slope's error comes as it is, or for a residual of one. */
static void proved_derivatives_of(
    const loss *of, ptrdiff_t count, const double *restrict high, const double *restrict low,
    const double *restrict y, const shapes_of_rows *restrict by_row, double *restrict slope, double *restrict slope_low,
    double *restrict curvature, double *restrict absolute
) {
    const loss self = *of;
    switch (self.kind) {
    case LOGISTIC:
        EACH {
            double sign = __builtin_copysign(1.0, high[i]);
            pair small = smaller(decay(&self, __builtin_fabs(high[i]), sign * low[i]), &curvature[i]);
            pair base = two_sum(0.5 + 0.5 * sign, -y[i]), sum = two_sum(base.high, -sign * small.high);
            pair found = fast_two_sum(sum.high, sum.low + (base.low - sign * small.low));
            slope[i] = found.high;
            slope_low[i] = found.low;
        }
        break;
    case CAPPED:
        EACH_SHAPE(
            double side = y[i] > 0.5 ? -1.0 : 1.0, bent, flat;
            pair wrong = {side * high[i], side * low[i]};
            pair beyond = add_accurately(wrong, (pair){-at->place.high, -at->place.low});
            int outside = beyond.high > 0.0;
            pair exponent_ = corner_exponent(at, beyond);
            double sign = __builtin_copysign(1.0, wrong.high);
            pair power = decay(
                &self, outside ? exponent_.high : __builtin_fabs(wrong.high),
                outside ? exponent_.low : sign * wrong.low
            );
            pair inner = whole_probability(smaller(power, &flat), sign), outer = corner_slope(at, power, &bent);
            pair found = choose(outside, outer, inner);
            curvature[i] = outside ? bent : flat;
            slope[i] = side * found.high;
            slope_low[i] = side * found.low;
        )
        break;
    case HINGE:
        EACH_SHAPE(
            pair margin = add_accurately((pair){1.0, 0.0}, (pair){-y[i] * high[i], -y[i] * low[i]});
            pair p = at_distance(&self, margin, at->scale, &curvature[i]);
            slope[i] = -y[i] * p.high;
            slope_low[i] = -y[i] * p.low;
        )
        break;
    case PSEUDO_HUBER:
        EACH_SHAPE(
            pair residual = add_accurately((pair){high[i], low[i]}, (pair){-y[i], 0.0});
            residual = (pair){residual.high * at->shrink * at->again, residual.low * at->shrink * at->again};
            pair found = times(saturating(residual, at->fraction, &curvature[i]), (pair){at->scale, 0.0});
            slope[i] = found.high;
            slope_low[i] = found.low;
        )
        break;
    case PINBALL:
        EACH_SHAPE(
            pair residual = add_accurately((pair){high[i], low[i]}, (pair){-y[i], 0.0});
            pair p = at_distance(&self, residual, at->scale, &curvature[i]);
            pair found = add_accurately(p, (pair){-at->cap, 0.0});
            slope[i] = found.high;
            slope_low[i] = found.low;
        )
        break;
    case POISSON:
        EACH_SHAPE(
            pair mean = exponential_pair(&self, high[i], low[i]);
            pair found = squashed_pair(at, add_accurately(mean, (pair){-y[i], 0.0}), mean.high, &curvature[i]);
            slope[i] = found.high;
            slope_low[i] = found.low;
        )
        break;
    case GAMMA:
        EACH_SHAPE(
            pair ratio = times(exponential_pair(&self, -high[i], -low[i]), (pair){y[i], 0.0});
            pair residual = add_accurately((pair){1.0, 0.0}, (pair){-ratio.high, -ratio.low});
            pair found = squashed_pair(at, residual, ratio.high, &curvature[i]);
            slope[i] = found.high;
            slope_low[i] = found.low;
        )
        break;
    default:
        EACH {
            pair residual = add_accurately((pair){high[i], low[i]}, (pair){-y[i], 0.0});
            slope[i] = residual.high;
            slope_low[i] = residual.low;
            curvature[i] = 1.0;
            absolute[i] *= __builtin_fabs(residual.high);
        }
    }
}

#endif
