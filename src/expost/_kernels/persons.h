/* The terms of people who all have the same number of rows, in one pass: a vector holds the same entry of several
   people, so that each person's sums are taken in the order of her own rows, whoever stands beside her.

   Included by kernels.c, whose loops over the rows of a chunk these are. */

#ifndef EXPOST_PERSONS_H
#define EXPOST_PERSONS_H

/* The images of some rows under TILE rows of a matrix. */
static MAY_FUSE void images_of(
    const double *factors, ptrdiff_t columns, const double *cells, ptrdiff_t stride, ptrdiff_t depth, double *images
) {
    FUSE
    vector image[TILE][TILE] = {0};
    for (ptrdiff_t j = 0; j < depth; j++)
        for (int v = 0; v < TILE; v++) {
            vector cell = read_vector(cells + j * stride + v * WIDTH);
            for (int t = 0; t < TILE; t++) image[t][v] += factors[t * columns + j] * cell;
        }
    for (int t = 0; t < TILE; t++)
        for (int v = 0; v < TILE; v++) memcpy(images + t * stride + v * WIDTH, &image[t][v], sizeof image[t][v]);
}

/* The images of factors from those of rows in each predictor, of which the first `used` are not zero. Column c of row
   j of person p comes at place (j * predictors + c) * people + p, and the next direction `predictors` strides on. */
static MAY_FUSE void fold_images(
    const double *images, const double *factors, ptrdiff_t used, ptrdiff_t predictors, ptrdiff_t stride,
    ptrdiff_t each, ptrdiff_t people, double *folded
) {
    FUSE
    for (ptrdiff_t c = 0; c < predictors; c++)
        for (ptrdiff_t j = 0; j < each; j++)
            for (ptrdiff_t p = 0; p < people; p += WIDTH) {
                ptrdiff_t from = j * people + p, into = (j * predictors + c) * people + p;
                vector sums[TILE] = {0};
                for (ptrdiff_t a = 0; a < used; a++) {
                    vector factor = read_vector(factors + (a * predictors + c) * stride + from);
                    for (int t = 0; t < TILE; t++)
                        sums[t] += factor * read_vector(images + (a * TILE + t) * stride + from);
                }
                for (int t = 0; t < TILE; t++)
                    memcpy(folded + t * predictors * stride + into, &sums[t], sizeof sums[t]);
            }
}

/* Add the products of two rows' images in TILE directions, for every pair of a person's rows. Row j of person p is
   row j * people + p; pair (j, k), k <= j, follows the pairs before it at a distance of `people`. */
static MAY_FUSE void add_products(
    const double *images, ptrdiff_t stride, ptrdiff_t each, ptrdiff_t people, double *restrict gram
) {
    FUSE
    for (ptrdiff_t p = 0; p < people; p += WIDTH) {
        double *pairs = gram + p;
        for (ptrdiff_t j = 0; j < each; j++) {
            vector row[TILE];
            for (int t = 0; t < TILE; t++) row[t] = read_vector(images + t * stride + j * people + p);
            for (ptrdiff_t k = 0; k <= j; k++, pairs += people) {
                vector sum = read_vector(pairs);
                for (int t = 0; t < TILE; t++) sum += row[t] * read_vector(images + t * stride + k * people + p);
                memcpy(pairs, &sum, sizeof sum);
            }
        }
    }
}

/* Add the squares of every person's gradient in each column. */
static MAY_FUSE void add_gradients(
    const chunk *rows, ptrdiff_t columns, const double *slopes, ptrdiff_t each, ptrdiff_t people, double *squares
) {
    FUSE
    for (ptrdiff_t p = 0; p < people; p += WIDTH) {
        vector total = read_vector(squares + p);
        for (ptrdiff_t c = 0; c < columns; c++) {
            vector sum = {0};
            for (ptrdiff_t at = p; at < each * people; at += people)
                sum += read_vector(slopes + at) * read_vector(rows->cells + c * rows->stride + at);
            total += sum * sum;
        }
        memcpy(squares + p, &total, sizeof total);
    }
}

static inline ptrdiff_t first_pair(ptrdiff_t row) { return row * (row + 1) / 2; }

/* log det(I + sign N) of every person, as expost.losses.records.log_determinants has it: by elimination that keeps
   each pivot less one. Their product is kept, and that less one, whose digits do not depend on how small it is. */
static void log_determinants(double *gram, ptrdiff_t each, ptrdiff_t people, double sign, double *room) {
    double *restrict total = room, *restrict product = total + people, *restrict less_one = product + people;
    double *restrict share = less_one + people;
    for (ptrdiff_t p = 0; p < people; p++) { total[p] = 0.0; product[p] = 1.0; less_one[p] = 0.0; }
    for (ptrdiff_t j = 0; j < each; j++) {
        const double *restrict diagonal = gram + (first_pair(j) + j) * people;
        int extreme = 0;
        for (ptrdiff_t p = 0; p < people; p++) {
            double pivot = sign * (diagonal[p] > 0.0 ? diagonal[p] : 0.0);
            pivot = pivot > -1.0 ? pivot : -1.0;
            product[p] *= 1.0 + pivot;
            less_one[p] += pivot + less_one[p] * pivot;
            share[p] = sign / (pivot > -1.0 ? 1.0 + pivot : 1.0);
            extreme |= !(product[p] > 0x1p-400) | !(product[p] < 0x1p400);
        }
        if (extreme)
            for (ptrdiff_t p = 0; p < people; p++) {
                total[p] += log(product[p]);
                product[p] = 1.0;
                less_one[p] = 0.0;
            }
        for (ptrdiff_t i = j + 1; i < each; i++) {
            const double *column = gram + (first_pair(i) + j) * people;
            for (ptrdiff_t k = j + 1; k <= i; k++) {
                const double *other = gram + (first_pair(k) + j) * people;
                double *restrict entry = gram + (first_pair(i) + k) * people;
                for (ptrdiff_t p = 0; p < people; p++) entry[p] -= column[p] * (share[p] * other[p]);
            }
        }
    }
    for (ptrdiff_t p = 0; p < people; p++)
        total[p] += less_one[p] > -0.5 ? log1p(less_one[p]) : log(product[p]);
}

/* Read the rows of some people, the first rows of all of them, then the second ones, with labels and weights. */
static int64_t read_people(
    const table *of, int64_t first, int64_t count, int64_t each, ptrdiff_t people, int64_t *order, chunk *rows,
    double *y, double *weights
) {
    table some = *of;
    for (ptrdiff_t j = 0; j < each; j++)
        for (ptrdiff_t p = 0; p < people; p++) {
            int64_t person = first + p < count ? first + p : count - 1;
            int64_t place = of->order == NULL ? person * each + j : of->order[person * each + j];
            order[j * people + p] = place;
            if (of->labels != NULL) __builtin_prefetch(of->labels + place, 0, 2);
            if (of->weights != NULL) __builtin_prefetch(of->weights + place, 0, 2);
        }
    int one_after_the_other = each == 1 && of->order == NULL;
    some.rows = !one_after_the_other ? each * people : first + people < count ? first + people : count;
    if (!one_after_the_other) some.order = order;
    int64_t found = read_chunk(&some, one_after_the_other ? first : 0, rows);
    for (ptrdiff_t i = 0; i < each * people; i++) {
        y[i] = of->labels == NULL ? 0.0 : of->labels[order[i]];
        weights[i] = of->weights == NULL ? 1.0 : of->weights[order[i]];
    }
    return found;
}

/* For people with `each` rows, those of a person one after the other: log det(I + sign N) of the matrix N of their
   rows under a triangular root of the inverse Hessian, the square of their gradient's length, and its inner product
   with a direction. LANES people must fit into a chunk. `basis` turns predictors into scores where there are several. */
EXPORT int64_t find_person_terms(
    const table *of, const loss *kind, const double *point, const double *direction, const double *root,
    const double *basis, int64_t each, double sign, double *determinants, double *squares, double *along
) {
    chunk rows;
    ptrdiff_t columns = of->features + of->intercept, scores = scores_of(kind), sums = sums_of(kind);
    ptrdiff_t predictors = scores > 1 ? scores - 1 : 1, pairs = first_pair(each * predictors);
    /* With several predictors a row has so many numbers that fewer rows stay in the cache. */
    ptrdiff_t together = scores > 1 ? 128 : chunk_rows(columns), most_people = together / each / LANES * LANES;
    ptrdiff_t order_of_root = rounded_up(columns * predictors, TILE);
    if (most_people < LANES) most_people = LANES;
    int64_t count = of->rows / each;
    double *room = new_chunk(of, 2 * scores + sums + 9 + 2 * TILE * predictors + predictors * predictors, &rows);
    double *gram = aligned_alloc(64, rounded_up((pairs + 6) * most_people * 8, 64));
    int64_t *order = malloc(each * most_people * sizeof *order), found = room == NULL ? NO_MEMORY : FINE;
    if (gram == NULL || order == NULL) found = NO_MEMORY;
    ptrdiff_t stride = rows.stride, width = of->features * (of->code == 0 ? 8 : 4);
    double *eta = room, *slope = eta + scores * stride, *curvature = slope + scores * stride;
    double *y = curvature + sums * stride, *weights = y + stride, *along_row = weights + stride;
    double *scratch = along_row + stride, *images = scratch + 6 * stride;
    double *folded = images + TILE * predictors * stride, *factors = folded + TILE * predictors * stride;
    for (int64_t first = 0; first < count && found == FINE; first += most_people) {
        ptrdiff_t left = rounded_up(count - first, LANES), people = left < most_people ? left : most_people;
        double *lengths = gram + pairs * people, *products_ = lengths + people, *more = products_ + people;
        found = read_people(of, first, count, each, people, order, &rows, y, weights);
        /* The next people's rows come from anywhere: they are asked for while the memory has nothing else to do. */
        int64_t asked = (first + people) * each, wanted = asked + each * people;
        if (of->kind != BY_ROWS || of->order == NULL) wanted = 0;
        else if (wanted > of->rows) wanted = of->rows;
        ptrdiff_t share = each * people * TILE * TILE * WIDTH / (order_of_root * (rows.padded + 1)) + 1;
        if (found != FINE) break;
        find_derivatives(kind, of, 0, &rows, point, eta, y, slope, curvature, scratch);
        for (ptrdiff_t k = 0; k < scores + sums; k++)
            for (ptrdiff_t i = 0; i < rows.padded; i++) slope[k * stride + i] *= weights[i];
        if (scores > 1) softmax_factors(kind, rows.padded, stride, basis, curvature, factors, scratch);
        else
            for (ptrdiff_t i = 0; i < rows.padded; i++) curvature[i] = __builtin_sqrt(curvature[i]);
        for (ptrdiff_t p = 0; p < (pairs + 2) * people; p++) gram[p] = 0.0;
        for (ptrdiff_t k = 0; k < scores; k++) {
            products(&rows, columns, direction + k * columns, along_row);
            for (ptrdiff_t j = 0; j < each; j++)
                for (ptrdiff_t p = 0; p < people; p++)
                    products_[p] += slope[k * stride + j * people + p] * along_row[j * people + p];
            add_gradients(&rows, columns, slope + k * stride, each, people, lengths);
        }
        for (ptrdiff_t t = 0; t < order_of_root; t += TILE) {
            ptrdiff_t used = 0;
            for (; used < predictors && used * columns < t + TILE; used++) {
                ptrdiff_t depth = t + TILE - used * columns, own = predictors > 1 ? columns : rows.columns;
                for (ptrdiff_t i = 0; i < rows.padded; i += TILE * WIDTH) {
                    images_of(
                        root + t * order_of_root + used * columns, order_of_root, rows.cells + i, stride,
                        depth < own ? depth : own, images + used * TILE * stride + i
                    );
                    for (int64_t stop = asked + share; asked < wanted && asked < stop; asked++)
                        ask_for(row_at(of, asked), width);
                }
            }
            if (scores > 1) fold_images(images, factors, used, predictors, stride, each, people, folded);
            add_products(
                scores > 1 ? folded : images, scores > 1 ? predictors * stride : stride, each * predictors, people, gram
            );
        }
        for (ptrdiff_t j = 0; j < each && scores == 1; j++)
            for (ptrdiff_t k = 0; k <= j; k++)
                for (ptrdiff_t p = 0; p < people; p++)
                    gram[(first_pair(j) + k) * people + p] *= curvature[j * people + p] * curvature[k * people + p];
        log_determinants(gram, each * predictors, people, sign, more);
        for (ptrdiff_t p = 0; p < people && first + p < count; p++) {
            determinants[first + p] = more[p];
            squares[first + p] = lengths[p];
            along[first + p] = products_[p];
        }
    }
    free(order);
    free(gram);
    if (room != NULL) free(rows.cells);
    return found;
}

#endif
