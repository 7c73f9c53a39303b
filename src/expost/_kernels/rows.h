/* Rows of a table, copied, measured and scaled into the ball, some at a time, column by column.

   What was measured is what is used, whoever writes to the table meanwhile. The rule is that of
   expost.data.design.Design: scales are rounded down by a margin above all roundings of a norm. */

#ifndef EXPOST_ROWS_H
#define EXPOST_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8
/* How many rows ahead memory is asked for while others are copied. */
#define AHEAD 64
/* Numbers of a vector, as many as the machine works on at a time. */
#if defined(__AVX512F__)
#define WIDTH 8
#define LOWER_HALVES 0, 8, 1, 9, 2, 10, 3, 11
#define UPPER_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#elif defined(__AVX__)
#define WIDTH 4
#define LOWER_HALVES 0, 4, 1, 5
#define UPPER_HALVES 2, 6, 3, 7
#else
#define WIDTH 2
#define LOWER_HALVES 0, 2
#define UPPER_HALVES 1, 3
#endif

/* Numbers of these types stay in registers, which arrays do not. */
typedef double vector __attribute__((vector_size(8 * WIDTH)));
typedef float short_vector __attribute__((vector_size(4 * WIDTH)));
typedef int64_t places __attribute__((vector_size(8 * WIDTH)));
#if defined(__clang__)
#define MIXED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define MIXED(a, b, ...) __builtin_shuffle(a, b, (places){__VA_ARGS__})
#endif

enum { FINE = 0, NOT_FINITE = 1, NO_MEMORY = 2, UNSOUND = 3 };
enum { BY_ROWS = 0, BY_COLUMNS = 1, SPARSE = 2 };

typedef struct {
    int64_t kind, rows, features, intercept;
    double norm, margin, smallest_scale;
    const double *labels, *weights; /* weights may be missing */
    /* BY_ROWS: doubles (code 0) or floats (1), those of one row side by side; strides are in bytes. */
    const char *cells;
    int64_t row_stride, code;
    /* BY_COLUMNS: where each column begins, its stride, and the type of its cells. */
    const char *const *columns;
    const int64_t *strides, *codes;
    /* SPARSE: compressed rows that were checked. */
    const int64_t *starts, *places;
    const double *values;
    /* Where the rows lie that are read, or missing where they are read one after the other; not for SPARSE. */
    const int64_t *order;
} table;

/* Some encoded rows: entry j of row i is cells[j * stride + i]. Rows up to a multiple of LANES, and columns up to a
   multiple of four, are zero. */
typedef struct {
    double *cells;
    ptrdiff_t stride, most, count, padded, columns;
} chunk;

static inline ptrdiff_t rounded_up(ptrdiff_t a, ptrdiff_t step) { return (a + step - 1) / step * step; }

/* Rows of a chunk: its columns stay in a core's cache. */
static inline ptrdiff_t chunk_rows(int64_t columns) { return columns <= 64 ? 512 : 256; }

static inline vector read_doubles(const char *from) { vector v; memcpy(&v, from, sizeof v); return v; }

static inline vector read_floats(const char *from) {
    short_vector v;
    memcpy(&v, from, sizeof v);
    return __builtin_convertvector(v, vector);
}

/* Turn rows of a square into its columns: each round takes two halves of the rows alternately. */
static inline void turn(vector *square) {
    for (int round = 1; round < WIDTH; round *= 2) {
        vector mixed[WIDTH];
        for (int i = 0; i < WIDTH / 2; i++) {
            mixed[2 * i] = MIXED(square[i], square[i + WIDTH / 2], LOWER_HALVES);
            mixed[2 * i + 1] = MIXED(square[i], square[i + WIDTH / 2], UPPER_HALVES);
        }
        for (int i = 0; i < WIDTH; i++) square[i] = mixed[i];
    }
}

static inline const char *row_at(const table *from, int64_t i) {
    if (from->order != NULL) i = from->order[i < from->rows ? i : from->rows - 1];
    return from->cells + i * from->row_stride;
}

static inline void ask_for(const char *cells, ptrdiff_t width) {
    for (ptrdiff_t at = 0; at < width; at += 64) __builtin_prefetch(cells + at, 0, 2);
}

/* Squares of WIDTH rows and columns are turned, and measured on their way. The last columns come with some of those
   before them, which are not written twice: what was measured is what is used. */
#define TURN_ROWS(type, read)                                                                                 \
    for (; features >= WIDTH && i + WIDTH <= into->count; i += WIDTH) {                                       \
        const char *row[WIDTH];                                                                               \
        for (int l = 0; l < WIDTH; l++) row[l] = row_at(from, low + i + l);                                   \
        if (from->order == NULL) ask_for(row[0] + AHEAD * from->row_stride, WIDTH * width);                   \
        else                                                                                                  \
            for (int l = 0; l < WIDTH; l++) ask_for(row_at(from, low + i + l + AHEAD), width);                \
        vector sum = {0};                                                                                     \
        for (ptrdiff_t next = 0; next < features; next += WIDTH) {                                            \
            ptrdiff_t j = next + WIDTH <= features ? next : features - WIDTH;                                 \
            vector square[WIDTH];                                                                             \
            for (int l = 0; l < WIDTH; l++) square[l] = read(row[l] + j * (ptrdiff_t)sizeof(type));           \
            turn(square);                                                                                     \
            for (int l = 0; l < WIDTH; l++)                                                                   \
                if (j + l >= next) {                                                                          \
                    sum += square[l] * square[l];                                                             \
                    memcpy(into->cells + (j + l) * into->stride + i, &square[l], sizeof square[l]);           \
                }                                                                                             \
        }                                                                                                     \
        memcpy(squares + i, &sum, sizeof sum);                                                                \
    }                                                                                                         \
    for (; i < into->count; i++) {                                                                            \
        squares[i] = 0.0;                                                                                     \
        for (ptrdiff_t j = 0; j < features; j++) {                                                            \
            double cell = ((const type *)row_at(from, low + i))[j];                                           \
            squares[i] += cell * cell;                                                                        \
            into->cells[j * into->stride + i] = cell;                                                         \
        }                                                                                                     \
    }

static inline void copy_rows(const table *from, int64_t low, chunk *into, double *squares) {
    ptrdiff_t features = from->features, width = features * (from->code == 0 ? 8 : 4), i = 0;
    for (ptrdiff_t l = 0; l < AHEAD && from->order != NULL; l++) ask_for(row_at(from, low + l), width);
    if (from->code == 0) { TURN_ROWS(double, read_doubles) } else { TURN_ROWS(float, read_floats) }
}

#define COPY_COLUMN(type)                                                                                     \
    if (from->order != NULL)                                                                                  \
        for (ptrdiff_t i = 0; i < into->count; i++)                                                           \
            column[i] = (double)*(const type *)(from->columns[j] + from->order[low + i] * stride);            \
    else if (stride == sizeof(type))                                                                          \
        for (ptrdiff_t i = 0; i < into->count; i++) column[i] = (double)((const type *)cells)[i];             \
    else                                                                                                      \
        for (ptrdiff_t i = 0; i < into->count; i++) column[i] = (double)*(const type *)(cells + i * stride);  \
    break;

/* Copy rows, and add up the squares of each. */
static inline void copy_cells(const table *from, int64_t low, chunk *into, double *squares) {
    if (from->kind == BY_ROWS) {
        copy_rows(from, low, into, squares);
    } else if (from->kind == BY_COLUMNS) {
        for (ptrdiff_t j = 0; j < from->features; j++) {
            double *column = into->cells + j * into->stride;
            int64_t stride = from->strides[j];
            const char *cells = from->columns[j] + low * stride;
            switch (from->codes[j]) {
            case 0: COPY_COLUMN(double)
            case 1: COPY_COLUMN(float)
            case 2: COPY_COLUMN(int64_t)
            case 3: COPY_COLUMN(int32_t)
            case 4: COPY_COLUMN(int16_t)
            case 5: COPY_COLUMN(int8_t)
            case 6: COPY_COLUMN(uint64_t)
            case 7: COPY_COLUMN(uint32_t)
            case 8: COPY_COLUMN(uint16_t)
            default: COPY_COLUMN(uint8_t)
            }
        }
    } else {
        for (ptrdiff_t j = 0; j < from->features; j++)
            for (ptrdiff_t i = 0; i < into->count; i++) into->cells[j * into->stride + i] = 0.0;
        for (ptrdiff_t i = 0; i < into->count; i++)
            for (int64_t at = from->starts[low + i]; at < from->starts[low + i + 1]; at++)
                into->cells[from->places[at] * into->stride + i] = from->values[at];
    }
    for (ptrdiff_t i = into->count; i < into->padded; i++) squares[i] = 0.0;
    for (ptrdiff_t j = 0; j < from->features; j++)
        for (ptrdiff_t i = into->count; i < into->padded; i++) into->cells[j * into->stride + i] = 0.0;
    if (from->kind == BY_ROWS) return;
    for (ptrdiff_t i = 0; i < into->count; i++) squares[i] = 0.0;
    for (ptrdiff_t j = 0; j < from->features; j++) {
        const double *column = into->cells + j * into->stride;
        for (ptrdiff_t i = 0; i < into->count; i++) squares[i] += column[i] * column[i];
    }
}

/* The norm of a row whose squares overflow: the largest entry is factored out. Below zero if it is not finite. */
static double long_length(const chunk *rows, ptrdiff_t features, ptrdiff_t i) {
    double largest = 1.0, sum = 0.0;
    for (ptrdiff_t j = 0; j < features; j++) {
        double size = __builtin_fabs(rows->cells[j * rows->stride + i]);
        if (!(size <= __DBL_MAX__)) return -1.0;
        largest = size > largest ? size : largest;
    }
    for (ptrdiff_t j = 0; j < features; j++) {
        double share = rows->cells[j * rows->stride + i] / largest;
        sum += share * share;
    }
    return largest * __builtin_sqrt(sum);
}

/* Copy rows from `low` on, as many as a chunk holds, and scale them into the ball. */
static int read_chunk(const table *from, int64_t low, chunk *into) {
    double squares[512], scales[512];
    ptrdiff_t left = from->rows - low, features = from->features;
    into->count = left < into->most ? left : into->most;
    into->padded = rounded_up(into->count, LANES);
    copy_cells(from, low, into, squares);
    int64_t inside = 1;
    for (ptrdiff_t i = 0; i < into->padded; i++) {
        double ratio = from->norm / (__builtin_sqrt(squares[i]) * from->margin);
        ratio = ratio < from->smallest_scale ? 0.0 : ratio;
        scales[i] = ratio < 1.0 ? ratio : 1.0;
        inside &= (squares[i] <= __DBL_MAX__) & !(ratio < 1.0);
    }
    if (!inside) {
        for (ptrdiff_t i = 0; i < into->padded; i++)
            if (!(squares[i] <= __DBL_MAX__)) {
                double length = long_length(into, features, i);
                if (length < 0.0) return NOT_FINITE;
                double ratio = from->norm / (length * from->margin);
                ratio = ratio < from->smallest_scale ? 0.0 : ratio;
                scales[i] = ratio < 1.0 ? ratio : 1.0;
            }
        for (ptrdiff_t j = 0; j < features; j++) {
            double *column = into->cells + j * into->stride;
            for (ptrdiff_t i = 0; i < into->padded; i++) column[i] *= scales[i];
        }
    }
    ptrdiff_t columns = features + from->intercept;
    if (from->intercept)
        for (ptrdiff_t i = 0; i < into->padded; i++)
            into->cells[features * into->stride + i] = i < into->count ? 1.0 : 0.0;
    for (ptrdiff_t j = columns; j < into->columns; j++)
        for (ptrdiff_t i = 0; i < into->padded; i++) into->cells[j * into->stride + i] = 0.0;
    return FINE;
}

/* Room for a chunk and for `vectors` numbers of each of its rows besides; NULL where there is none. */
static double *new_chunk(const table *of, ptrdiff_t vectors, chunk *made) {
    ptrdiff_t columns = of->features + of->intercept;
    made->most = chunk_rows(columns);
    made->stride = made->most + LANES; /* no power of two, which would crowd some lines of the cache */
    made->columns = rounded_up(columns, 4);
    made->cells = aligned_alloc(64, rounded_up((made->columns + vectors) * made->stride * 8, 64));
    if (made->cells == NULL) return NULL;
    return made->cells + made->columns * made->stride;
}

#endif
