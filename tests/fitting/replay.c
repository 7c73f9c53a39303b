/* Run calls of kernels that were written to a file, and write what they left in memory: test_other_machines.py.

   Every piece of memory is allocated by itself and is as long as it was, so that a sanitizer sees what is read
   beyond one. Numbers are little-endian. */

#include "kernels.c"

#include <stdio.h>

static int64_t read_whole(FILE *file) {
    int64_t number;
    if (fread(&number, 8, 1, file) != 1) exit(2);
    return number;
}

static double read_double(FILE *file) { return from_bits(read_whole(file)); }

enum { MOST = 256 };

int main(int count, char **names) {
    FILE *file = count == 3 ? fopen(names[1], "rb") : NULL, *out = count == 3 ? fopen(names[2], "wb") : NULL;
    if (file == NULL || out == NULL || !self_test() || described_sizes() != read_whole(file)) return 1;
    for (int64_t calls = read_whole(file); calls > 0; calls--) {
        int64_t kernel = read_whole(file), pieces = read_whole(file), length[MOST];
        char *memory[MOST], *given[16];
        for (int64_t k = 0; k < pieces; k++) {
            length[k] = read_whole(file);
            memory[k] = malloc(length[k]);
            if (memory[k] == NULL || fread(memory[k], 1, length[k], file) != (size_t)length[k]) return 3;
        }
        /* Addresses, which are in memory themselves: where each is, the piece that it points to, and the place there. */
        for (int64_t left = read_whole(file); left > 0; left--) {
            int64_t piece = read_whole(file), place = read_whole(file), target = read_whole(file);
            char *address = memory[target] + read_whole(file);
            memcpy(memory[piece] + place, &address, sizeof address);
        }
        for (int64_t k = 0, arguments = read_whole(file); k < arguments; k++) {
            int64_t piece = read_whole(file);
            given[k] = piece < 0 ? NULL : memory[piece];
        }
        double first = read_double(file), second = read_double(file);
        const table *of = (const table *)given[0];
        const loss *kind = (const loss *)given[1];
        double **d = (double **)given;
        int64_t answer = -1;
        if (kernel == 0) answer = scan(of);
        if (kernel == 1) answer = encode(of, d[1]);
        if (kernel == 2) answer = add_derivatives(of, kind, d[2], d[3], d[4], d[5]);
        if (kernel == 3) answer = add_residual(of, kind, d[2], d[3], d[4], d[5], d[6], d[7], first, second);
        if (kernel == 5)
            answer = find_person_terms(of, kind, d[2], d[3], d[4], d[5], (int64_t)first, second, d[6], d[7], d[8]);
        if (kernel == 4) answer = find_terms(of, kind, d[2], d[3], d[4], d[5], d[6], d[7]);
        if (kernel == 6) answer = find_predictors(of, d[1], (int64_t)first, d[2]);
        fwrite(&answer, 8, 1, out);
        for (int64_t k = 0; k < pieces; k++) {
            fwrite(memory[k], 1, length[k], out);
            free(memory[k]);
        }
    }
    return fclose(out);
}
