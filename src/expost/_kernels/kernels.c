/* Passes over rows in compiled code; expost._common.kernels loads them and says what they are.

   Plain loops, which the compiler turns into vector instructions: this file is compiled once for each
   instruction set. Rows lie column by column in chunks that stay in the cache, so that a vector holds the same
   entry of several rows. Every function adds to sums that the caller has set to zero: where a table is cut
   into blocks of whole chunks, the sums have the same bits however long the blocks are. */

#include "losses.h"
#include "rows.h"
#include "self_test.h"
#include "softmax.h"

#define EXPORT __attribute__((visibility("default")))
/* Columns of a tile of squares, those that it meets, whose sums all fit into the registers, and those that are
   summed as pairs at a time. */
#define TILE 4
#define ACROSS (WIDTH > 4 ? 4 : 2)
#define TOGETHER ACROSS
/* Columns that meet a tile while they are in the cache. */
#define STRIP 64
/* Rows whose part of two tiles stays in the nearest cache. */
#define DEPTH 256

/* The instruction set of the machine: 4 and 3 for x86-64-v4 and -v3, else 1. */
EXPORT int64_t machine_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    int third = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    int fourth = third && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512cd");
    return fourth ? 4 : third ? 3 : 1;
#else
    return 1;
#endif
}

/* How long what the caller describes is, so that kernels from before a change are not used. */
EXPORT int64_t described_sizes(void) { return (int64_t)((KINDS * 65536 + sizeof(table)) * 65536 + sizeof(loss)); }

/* The inner product of every row with a vector. */
static void products(const chunk *rows, ptrdiff_t columns, const double *point, double *restrict sums) {
    for (ptrdiff_t i = 0; i < rows->padded; i++) sums[i] = 0.0;
    for (ptrdiff_t j = 0; j < columns; j += TILE) {
        double w[TILE];
        for (int t = 0; t < TILE; t++) w[t] = j + t < columns ? point[j + t] : 0.0;
        const double *restrict a = rows->cells + j * rows->stride, *restrict b = a + rows->stride;
        const double *restrict c = b + rows->stride, *restrict d = c + rows->stride;
        for (ptrdiff_t i = 0; i < rows->padded; i++)
            sums[i] = muladd(d[i], w[3], muladd(c[i], w[2], muladd(b[i], w[1], muladd(a[i], w[0], sums[i]))));
    }
}

/* The same as pairs: the products without error, and what is rounded away in a second sum. */
static void exact_products(
    const chunk *rows, ptrdiff_t columns, const double *point, const double *point_low, double *restrict high,
    double *restrict low
) {
    for (ptrdiff_t i = 0; i < rows->padded; i++) high[i] = low[i] = 0.0;
    for (ptrdiff_t j = 0; j < columns; j += TILE) {
        double w[TILE], v[TILE];
        for (int t = 0; t < TILE; t++) {
            w[t] = j + t < columns ? point[j + t] : 0.0;
            v[t] = j + t < columns ? point_low[j + t] : 0.0;
        }
        const double *restrict a = rows->cells + j * rows->stride, *restrict b = a + rows->stride;
        const double *restrict c = b + rows->stride, *restrict d = c + rows->stride;
        for (ptrdiff_t i = 0; i < rows->padded; i++) {
            double sum = high[i], rest = low[i];
            accumulate(&sum, &rest, a[i], w[0], v[0]);
            accumulate(&sum, &rest, b[i], w[1], v[1]);
            accumulate(&sum, &rest, c[i], w[2], v[2]);
            accumulate(&sum, &rest, d[i], w[3], v[3]);
            high[i] = sum;
            low[i] = rest;
        }
    }
    for (ptrdiff_t i = 0; i < rows->padded; i++) {
        pair sum = two_sum(high[i], low[i]);
        high[i] = sum.high;
        low[i] = sum.low;
    }
}

/* Add the rows, each times its weight; LANES sums for each column. */
static void add_rows(const chunk *rows, ptrdiff_t columns, const double *restrict weights, double *sums) {
    for (ptrdiff_t j = 0; j < columns; j += TILE) {
        double sum[TILE][LANES] = {0};
        const double *cells = rows->cells + j * rows->stride;
        for (ptrdiff_t i = 0; i < rows->padded; i += LANES)
            for (int t = 0; t < TILE; t++)
                for (int l = 0; l < LANES; l++)
                    sum[t][l] = muladd(cells[t * rows->stride + i + l], weights[i + l], sum[t][l]);
        for (int t = 0; t < TILE && j + t < columns; t++)
            for (int l = 0; l < LANES; l++) sums[(j + t) * LANES + l] += sum[t][l];
    }
}

/* The same with weights that are pairs: fresh sums in every chunk, which are added as pairs. */
static void add_rows_exactly(
    const chunk *rows, ptrdiff_t columns, const double *restrict high, const double *restrict low, double *sums,
    double *rests
) {
    for (ptrdiff_t j = 0; j < columns; j += TOGETHER) {
        double sum[TOGETHER][LANES] = {0}, rest[TOGETHER][LANES] = {0};
        const double *cells = rows->cells + j * rows->stride;
        for (ptrdiff_t i = 0; i < rows->padded; i += LANES)
            for (int t = 0; t < TOGETHER; t++)
                for (int l = 0; l < LANES; l++)
                    accumulate(&sum[t][l], &rest[t][l], cells[t * rows->stride + i + l], high[i + l], low[i + l]);
        for (int t = 0; t < TOGETHER && j + t < columns; t++)
            for (int l = 0; l < LANES; l++) {
                ptrdiff_t at = (j + t) * LANES + l;
                pair total = add_accurately((pair){sums[at], rests[at]}, two_sum(sum[t][l], rest[t][l]));
                sums[at] = total.high;
                rests[at] = total.low;
            }
    }
}

/* Here the compiler may fuse products and sums: nothing in the two functions that are so marked need be exact. */
#if defined(__clang__)
#define MAY_FUSE __attribute__((noinline))
#define FUSE _Pragma("clang fp contract(fast)")
#else
#define MAY_FUSE __attribute__((noinline, optimize("fp-contract=fast")))
#define FUSE
#endif

static inline vector read_vector(const double *from) { return read_doubles((const char *)from); }

/* Add the inner products of TILE columns with ACROSS others to a square of so many columns. */
static MAY_FUSE void add_tile(
    const double *some, const double *others, ptrdiff_t stride, ptrdiff_t count, double *square, ptrdiff_t columns
) {
    FUSE
    vector sums[TILE * ACROSS] = {0};
    for (ptrdiff_t i = 0; i < count; i += WIDTH) {
        vector b[ACROSS];
        for (int t = 0; t < ACROSS; t++) b[t] = read_vector(others + t * stride + i);
        for (int s = 0; s < TILE; s++) {
            vector a = read_vector(some + s * stride + i);
            for (int t = 0; t < ACROSS; t++) sums[s * ACROSS + t] += a * b[t];
        }
    }
    /* The totals of WIDTH sums at a time: these are turned and then added up. */
    for (int first = 0; first < TILE * ACROSS; first += WIDTH) {
        vector total = {0};
        turn(sums + first);
        for (int l = 0; l < WIDTH; l++) total += sums[first + l];
        for (int l = 0; l < WIDTH; l++) square[(first + l) / ACROSS * columns + (first + l) % ACROSS] += total[l];
    }
}

/* Add the squares of the rows, each times its weight, right of the diagonal and on it; `tile` is room. */
static void add_squares(const chunk *rows, const double *restrict weights, double *square, double *restrict tile) {
    ptrdiff_t columns = rows->columns, stride = rows->stride;
    for (ptrdiff_t first = 0; first < rows->padded; first += DEPTH) {
        ptrdiff_t count = rows->padded - first < DEPTH ? rows->padded - first : DEPTH;
        const double *cells = rows->cells + first;
        for (ptrdiff_t strip = 0; strip < columns; strip += STRIP) {
            ptrdiff_t end = strip + STRIP < columns ? strip + STRIP : columns;
            for (ptrdiff_t p = 0; p < end; p += TILE) {
                for (int t = 0; t < TILE; t++)
                    for (ptrdiff_t i = 0; i < count; i++)
                        tile[t * stride + i] = weights[first + i] * cells[(p + t) * stride + i];
                for (ptrdiff_t q = p > strip ? p : strip; q < end; q += ACROSS)
                    add_tile(tile, cells + q * stride, stride, count, square + p * columns + q, columns);
            }
        }
    }
}

/* What is right of the diagonal, on its left too; a strip of columns stays in the cache. */
static void mirror(double *square, ptrdiff_t columns) {
    for (ptrdiff_t strip = 0; strip < columns; strip += STRIP)
        for (ptrdiff_t p = strip; p < columns; p++)
            for (ptrdiff_t q = strip; q < p && q < strip + STRIP; q++)
                square[p * columns + q] = square[q * columns + p];
}

/* Add the squared lengths of the parts of some rows' images that TILE rows of a matrix make. */
static MAY_FUSE void add_images(
    const double *factors, ptrdiff_t columns, const double *cells, ptrdiff_t stride, ptrdiff_t depth, double *lengths
) {
    FUSE
    vector image[TILE][TILE] = {0};
    for (ptrdiff_t j = 0; j < depth; j++)
        for (int v = 0; v < TILE; v++) {
            vector cell = read_vector(cells + j * stride + v * WIDTH);
            for (int t = 0; t < TILE; t++) image[t][v] += factors[t * columns + j] * cell;
        }
    for (int v = 0; v < TILE; v++) {
        vector sum = read_vector(lengths + v * WIDTH);
        for (int t = 0; t < TILE; t++) sum += image[t][v] * image[t][v];
        memcpy(lengths + v * WIDTH, &sum, sizeof sum);
    }
}

/* The squared length of each row's image under a lower triangular matrix, padded with zeros to whole tiles. */
static void squares_under(const chunk *rows, const double *matrix, double *lengths) {
    for (ptrdiff_t i = 0; i < rows->most; i++) lengths[i] = 0.0;
    for (ptrdiff_t i = 0; i < rows->padded; i += TILE * WIDTH)
        for (ptrdiff_t p = 0; p < rows->columns; p += TILE)
            add_images(
                matrix + p * rows->columns, rows->columns, rows->cells + i, rows->stride, p + TILE, lengths + i
            );
}

/* The labels of a chunk, or its weights, with `rest` for what is not there. */
static void copy_numbers(const chunk *rows, const double *from, int64_t low, double rest, double *restrict into) {
    for (ptrdiff_t i = 0; i < rows->count; i++) into[i] = from == NULL ? rest : from[low + i];
    for (ptrdiff_t i = rows->count; i < rows->padded; i++) into[i] = 0.0;
}

/* Whether the kernels can be used: their arithmetic, and their sums of integers, which must be exact. */
EXPORT int64_t self_test(void) {
    if (!sound_settings() || !exact_pairs()) return 0;
    enum { ROWS = 40, COLUMNS = 4 };
    double cells[COLUMNS * ROWS], slopes[ROWS], zeros[ROWS] = {0}, point[COLUMNS], none[COLUMNS] = {0};
    double high[ROWS], low[ROWS], sums[COLUMNS * LANES] = {0}, rests[COLUMNS * LANES] = {0};
    chunk rows = {cells, ROWS, ROWS, ROWS, ROWS, COLUMNS};
    uint64_t state = 2;
    for (int at = 0; at < COLUMNS * ROWS; at++) cells[at] = whole_number(&state, 50);
    for (int i = 0; i < ROWS; i++) slopes[i] = whole_number(&state, 50);
    for (int j = 0; j < COLUMNS; j++) point[j] = whole_number(&state, 50);
    exact_products(&rows, COLUMNS, point, none, high, low);
    add_rows_exactly(&rows, COLUMNS, slopes, zeros, sums, rests);
    int good = 1;
    for (int i = 0; i < ROWS; i++) {
        __int128 sum = -(__int128)high[i] - (__int128)low[i];
        for (int j = 0; j < COLUMNS; j++) sum += (__int128)cells[j * ROWS + i] * (__int128)point[j];
        good &= sum == 0;
    }
    for (int j = 0; j < COLUMNS; j++) {
        __int128 sum = 0;
        for (int i = 0; i < ROWS; i++) sum += (__int128)cells[j * ROWS + i] * (__int128)slopes[i];
        for (int l = 0; l < LANES; l++) sum -= (__int128)sums[j * LANES + l] + (__int128)rests[j * LANES + l];
        good &= sum == 0;
    }
    return good;
}

/* Nothing but a finite number times zero is zero. */
#define ADD_ZEROS(type)                                                                                       \
    if (stride == sizeof(type))                                                                               \
        for (; i + LANES <= count; i += LANES)                                                                \
            for (int l = 0; l < LANES; l++) zeros[l] += 0.0 * (double)((const type *)cells)[i + l];           \
    for (; i < count; i++) zeros[0] += 0.0 * (double)*(const type *)(cells + i * stride);

/* Whether numbers of a type are all finite; whole numbers, of every other code, always are. */
static int all_finite(const char *cells, int64_t code, int64_t count, int64_t stride) {
    double zeros[LANES] = {0}, sum = 0.0;
    int64_t i = 0;
    if (code == 0) { ADD_ZEROS(double) }
    else if (code == 1) { ADD_ZEROS(float) }
    for (int l = 0; l < LANES; l++) sum += zeros[l];
    return sum == 0.0;
}

/* FINE where every cell is a finite number. */
EXPORT int64_t scan(const table *of) {
    int good = 1;
    if (of->kind == SPARSE) good = all_finite((const char *)of->values, 0, of->starts[of->rows], 8);
    else if (of->kind == BY_COLUMNS)
        for (int64_t j = 0; j < of->features && good; j++)
            good = all_finite(of->columns[j], of->codes[j], of->rows, of->strides[j]);
    else {
        int64_t size = of->code == 0 ? 8 : 4, whole = of->row_stride == of->features * size;
        if (whole) good = all_finite(of->cells, of->code, of->rows * of->features, size);
        for (int64_t i = 0; i < of->rows && good && !whole; i++)
            good = all_finite(of->cells + i * of->row_stride, of->code, of->features, size);
    }
    return good ? FINE : NOT_FINITE;
}

/* The encoded rows, one after the other. */
EXPORT int64_t encode(const table *of, double *restrict out) {
    chunk rows;
    if (new_chunk(of, 0, &rows) == NULL) return NO_MEMORY;
    int64_t found = FINE, columns = of->features + of->intercept;
    for (int64_t low = 0; low < of->rows && found == FINE; low += rows.most) {
        found = read_chunk(of, low, &rows);
        for (ptrdiff_t i = 0; i < rows.count; i++)
            for (ptrdiff_t j = 0; j < columns; j++)
                out[(low + i) * columns + j] = rows.cells[j * rows.stride + i];
    }
    free(rows.cells);
    return found;
}

/* The square of the length of every row. */
static void squared_lengths(const chunk *rows, ptrdiff_t columns, double *restrict sums) {
    for (ptrdiff_t i = 0; i < rows->padded; i++) sums[i] = 0.0;
    for (ptrdiff_t j = 0; j < columns; j++)
        for (ptrdiff_t i = 0; i < rows->padded; i++)
            sums[i] += rows->cells[j * rows->stride + i] * rows->cells[j * rows->stride + i];
}

/* The constants of every row, where a loss has several levels: a row's level is how many limits its length is below,
   found by halving. The margin is that of expost.losses.records; `squares` is room. */
static void find_shapes(
    const loss *kind, const chunk *rows, ptrdiff_t columns, double *restrict squares, shapes_of_rows *restrict found
) {
    if (kind->half == 0) return;
    const double margin = (1.0 + 0x1p-40) + columns * 0x1p-51, *restrict limits = kind->limits;
    const double *restrict numbers = (const double *)kind->shapes;
    int64_t level[MOST_ROWS];
    squared_lengths(rows, columns, squares);
    for (ptrdiff_t i = 0; i < rows->padded; i++) {
        level[i] = 0;
        squares[i] *= margin;
    }
    for (int64_t step = kind->half; step > 0; step /= 2)
        for (ptrdiff_t i = 0; i < rows->padded; i++) level[i] += limits[level[i] + step - 1] >= squares[i] ? step : 0;
    /* A width has the first four, and a cap the others. */
    int first = kind->kind == PSEUDO_HUBER ? 0 : 4, last = kind->kind == PSEUDO_HUBER ? 4 : CONSTANTS;
    for (int k = first; k < last; k++)
        for (ptrdiff_t i = 0; i < rows->padded; i++) found->of[k][i] = numbers[level[i] * CONSTANTS + k];
}

/* How many scores a loss has, and how many sums of squares make its Hessian. */
static inline int is_softmax(const loss *kind) { return kind->kind >= SOFTMAX; }
static inline ptrdiff_t scores_of(const loss *kind) {
    return is_softmax(kind) || kind->kind == GIVEN ? kind->classes : 1;
}
static inline ptrdiff_t sums_of(const loss *kind) {
    ptrdiff_t scores = scores_of(kind);
    return is_softmax(kind) ? scores * (scores - 1) / 2 : scores * (scores + 1) / 2;
}

/* First and second derivatives of a chunk's rows in their scores, one score after the other; `more` is room. */
static void find_derivatives(
    const loss *kind, const table *of, int64_t low, const chunk *rows, const double *point, double *eta,
    const double *y, double *slopes, double *bends, double *more
) {
    ptrdiff_t columns = of->features + of->intercept, stride = rows->stride;
    shapes_of_rows by_row;
    if (kind->kind == GIVEN) {
        for (ptrdiff_t k = 0; k < scores_of(kind); k++)
            copy_numbers(rows, kind->slopes + k * of->rows, low, 0.0, slopes + k * stride);
        for (ptrdiff_t k = 0; k < sums_of(kind); k++)
            copy_numbers(rows, kind->bends + k * of->rows, low, 0.0, bends + k * stride);
        return;
    }
    for (ptrdiff_t k = 0; k < scores_of(kind); k++) products(rows, columns, point + k * columns, eta + k * stride);
    find_shapes(kind, rows, columns, more, &by_row);
    if (is_softmax(kind)) softmax_derivatives_of(kind, rows->padded, stride, eta, y, &by_row, slopes, bends, more);
    else derivatives_of(kind, rows->padded, eta, y, &by_row, slopes, bends);
}

/* Add up the LANES sums of each column, in pairs, then those in pairs; of doubles where `low` is missing. */
EXPORT int64_t add_lanes(const double *high, const double *low, int64_t count, double *total, double *total_low) {
    for (int64_t j = 0; j < count; j++) {
        pair sums[LANES];
        for (int l = 0; l < LANES; l++)
            sums[l] = (pair){high[j * LANES + l], low == NULL ? 0.0 : low[j * LANES + l]};
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; l++) sums[l] = add_accurately(sums[l], sums[l + half]);
        total[j] = sums[0].high;
        total_low[j] = sums[0].low;
    }
    return FINE;
}

/* The inner products of all rows with some vectors, those with one vector side by side. */
EXPORT int64_t find_predictors(const table *of, const double *point, int64_t count, double *eta) {
    chunk rows;
    double *room = new_chunk(of, 1, &rows);
    if (room == NULL) return NO_MEMORY;
    ptrdiff_t columns = of->features + of->intercept;
    int64_t found = FINE;
    for (int64_t low = 0; low < of->rows; low += rows.most) {
        found = read_chunk(of, low, &rows);
        if (found != FINE) break;
        for (int64_t k = 0; k < count; k++) {
            products(&rows, columns, point + k * columns, room);
            memcpy(eta + k * of->rows + low, room, rows.count * sizeof *eta);
        }
    }
    free(rows.cells);
    return found;
}

/* Add the sizes of numbers to a sum. */
static void add_sizes(const double *restrict numbers, ptrdiff_t count, double *sum) {
    double sums[LANES] = {0};
    for (ptrdiff_t i = 0; i < count; i += LANES)
        for (int l = 0; l < LANES; l++) sums[l] += __builtin_fabs(numbers[i + l]);
    for (int l = 0; l < LANES; l++) *sum += sums[l];
}

/* Add gradients and, unless `square` is missing, Hessians: one sum of rows for each score, one of squares for each
   weight. Sizes are the sums of slopes and of curvatures. */
EXPORT int64_t add_derivatives(
    const table *of, const loss *kind, const double *point, double *gradient, double *sizes, double *square
) {
    chunk rows;
    ptrdiff_t scores = scores_of(kind), sums = sums_of(kind), columns = of->features + of->intercept;
    double *room = new_chunk(of, 2 * scores + sums + 12, &rows);
    if (room == NULL) return NO_MEMORY;
    ptrdiff_t stride = rows.stride;
    double *eta = room, *slopes = eta + scores * stride, *bends = slopes + scores * stride;
    double *y = bends + sums * stride, *weights = y + stride, *tile = weights + stride, *more = tile + TILE * stride;
    int64_t found = FINE;
    for (int64_t low = 0; low < of->rows; low += rows.most) {
        found = read_chunk(of, low, &rows);
        if (found != FINE) break;
        copy_numbers(&rows, of->labels, low, 0.0, y);
        copy_numbers(&rows, of->weights, low, 1.0, weights);
        find_derivatives(kind, of, low, &rows, point, eta, y, slopes, bends, more);
        for (ptrdiff_t k = 0; k < scores + sums; k++)
            for (ptrdiff_t i = 0; i < rows.padded; i++) slopes[k * stride + i] *= weights[i];
        for (ptrdiff_t k = 0; k < scores; k++) {
            add_sizes(slopes + k * stride, rows.padded, &sizes[0]);
            add_rows(&rows, columns, slopes + k * stride, gradient + k * columns * LANES);
        }
        for (ptrdiff_t k = 0; k < sums; k++) {
            add_sizes(bends + k * stride, rows.padded, &sizes[1]);
            if (square != NULL)
                add_squares(&rows, bends + k * stride, square + k * rows.columns * rows.columns, tile);
        }
    }
    for (ptrdiff_t k = 0; k < sums && square != NULL; k++)
        mirror(square + k * rows.columns * rows.columns, rows.columns);
    free(rows.cells);
    return found;
}

/* Add gradients as pairs and, unless `square` is missing, Hessians in doubles. Sizes are the sums of slopes, of
   curvatures and of the slopes' absolute errors. A weight may cost a slope `of_product` of itself, and `underflow`. */
EXPORT int64_t add_residual(
    const table *of, const loss *kind, const double *point, const double *point_low, double *gradient,
    double *gradient_low, double *sizes, double *square, double of_product, double underflow
) {
    if (!sound_settings()) return UNSOUND;
    chunk rows;
    ptrdiff_t scores = scores_of(kind), sums = sums_of(kind), columns = of->features + of->intercept;
    double *room = new_chunk(of, 4 * scores + sums + 13, &rows);
    if (room == NULL) return NO_MEMORY;
    ptrdiff_t stride = rows.stride;
    double *eta = room, *eta_low = eta + scores * stride, *slopes = eta_low + scores * stride;
    double *slopes_low = slopes + scores * stride, *bends = slopes_low + scores * stride;
    double *y = bends + sums * stride, *weights = y + stride, *absolute = weights + stride;
    double *tile = absolute + stride, *more = tile + TILE * stride;
    shapes_of_rows by_row;
    int64_t found = FINE;
    for (int64_t low = 0; low < of->rows; low += rows.most) {
        found = read_chunk(of, low, &rows);
        if (found != FINE) break;
        copy_numbers(&rows, of->labels, low, 0.0, y);
        copy_numbers(&rows, of->weights, low, 1.0, weights);
        for (ptrdiff_t k = 0; k < scores; k++)
            exact_products(
                &rows, columns, point + k * columns, point_low + k * columns, eta + k * stride, eta_low + k * stride
            );
        for (ptrdiff_t i = 0; i < rows.padded; i++) absolute[i] = kind->absolute;
        find_shapes(kind, &rows, columns, more, &by_row);
        if (is_softmax(kind))
            proved_softmax_derivatives_of(
                kind, rows.padded, stride, eta, eta_low, y, &by_row, slopes, slopes_low, bends, more
            );
        else proved_derivatives_of(kind, rows.padded, eta, eta_low, y, &by_row, slopes, slopes_low, bends, absolute);
        if (of->weights != NULL) {
            for (ptrdiff_t i = 0; i < rows.padded; i++) absolute[i] = weights[i] * absolute[i] + underflow;
            for (ptrdiff_t k = 0; k < scores; k++)
                for (ptrdiff_t i = 0; i < rows.padded; i++) {
                    pair slope = {slopes[k * stride + i], slopes_low[k * stride + i]};
                    pair product = times(slope, (pair){weights[i], 0.0});
                    slopes[k * stride + i] = product.high;
                    slopes_low[k * stride + i] = product.low;
                    absolute[i] += of_product * __builtin_fabs(product.high);
                }
            for (ptrdiff_t k = 0; k < sums; k++)
                for (ptrdiff_t i = 0; i < rows.padded; i++) bends[k * stride + i] *= weights[i];
        }
        for (ptrdiff_t i = rows.count; i < rows.padded; i++) absolute[i] = 0.0;
        for (ptrdiff_t k = 0; k < scores; k++)
            for (ptrdiff_t i = rows.count; i < rows.padded; i++)
                slopes[k * stride + i] = slopes_low[k * stride + i] = 0.0;
        for (ptrdiff_t k = 0; k < sums; k++)
            for (ptrdiff_t i = rows.count; i < rows.padded; i++) bends[k * stride + i] = 0.0;
        add_sizes(absolute, rows.padded, &sizes[2]);
        for (ptrdiff_t k = 0; k < scores; k++) {
            add_sizes(slopes + k * stride, rows.padded, &sizes[0]);
            add_rows_exactly(
                &rows, columns, slopes + k * stride, slopes_low + k * stride, gradient + k * columns * LANES,
                gradient_low + k * columns * LANES
            );
        }
        for (ptrdiff_t k = 0; k < sums; k++) {
            add_sizes(bends + k * stride, rows.padded, &sizes[1]);
            if (square != NULL)
                add_squares(&rows, bends + k * stride, square + k * rows.columns * rows.columns, tile);
        }
    }
    for (ptrdiff_t k = 0; k < sums && square != NULL; k++)
        mirror(square + k * rows.columns * rows.columns, rows.columns);
    free(rows.cells);
    return found;
}

/* For each record its leverage under a triangular root of the inverse Hessian, the square of its gradient's
   length, and the gradient's inner product with a direction. */
EXPORT int64_t find_terms(
    const table *of, const loss *kind, const double *point, const double *direction, const double *root,
    double *leverages, double *squares, double *along
) {
    chunk rows;
    double *room = new_chunk(of, 8, &rows);
    if (room == NULL) return NO_MEMORY;
    ptrdiff_t columns = of->features + of->intercept, stride = rows.stride;
    double *eta = room, *y = eta + stride, *weights = y + stride, *slope = weights + stride;
    double *curvature = slope + stride, *along_row = curvature + stride, *lengths = along_row + stride;
    double *images = lengths + stride;
    int64_t found = FINE;
    for (int64_t low = 0; low < of->rows; low += rows.most) {
        found = read_chunk(of, low, &rows);
        if (found != FINE) break;
        copy_numbers(&rows, of->labels, low, 0.0, y);
        copy_numbers(&rows, of->weights, low, 1.0, weights);
        find_derivatives(kind, of, low, &rows, point, eta, y, slope, curvature, lengths);
        products(&rows, columns, direction, along_row);
        squared_lengths(&rows, columns, lengths);
        squares_under(&rows, root, images);
        for (ptrdiff_t i = 0; i < rows.count; i++) {
            double signed_ = weights[i] * slope[i], length = __builtin_fabs(signed_) * __builtin_sqrt(lengths[i]);
            leverages[low + i] = weights[i] * curvature[i] * images[i];
            squares[low + i] = length * length;
            along[low + i] = signed_ * along_row[i];
        }
    }
    free(rows.cells);
    return found;
}

#include "persons.h"
