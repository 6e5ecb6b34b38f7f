/* Every kernel over random sizes, against plain loops. Built with the address and undefined-behaviour sanitizers.
 *
 * Arrays are allocated to the byte, so that a read past an end is one past an allocation. Values are small integers:
 * sums are exact, and the answers have to be equal up to the last rounding. Arguments: seed and number of rounds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#define MOST_IMAGES 9

static uint64_t state;

static int64_t draw(int64_t from, int64_t to)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return from + (int64_t)(state % (uint64_t)(to - from + 1));
}

static void *make(size_t count, size_t size)
{
    void *memory = malloc(count > 0 ? count * size : 1);
    if (!memory)
        abort();
    return memory;
}

static void check(const char *kernel, const float *found, const double *expected, int64_t count, size_t d)
{
    for (int64_t i = 0; i < count; i++)
        if (isinf(expected[i]) ? found[i] != -INFINITY : !(fabs(found[i] - expected[i]) <= 1e-4 * (1 + fabs(expected[i])))) {
            fprintf(stderr, "%s, d = %zu, image %lld: %g instead of %g\n", kernel, d, (long long)i, found[i], expected[i]);
            exit(1);
        }
}

typedef struct {
    int64_t n, offsets[MOST_IMAGES + 1], *rows;
    Images images;
} List;

static List draw_list(int64_t most_tokens)
{
    List list = {0};
    const int64_t images = draw(1, MOST_IMAGES);
    for (int64_t i = 0; i < images; i++)
        list.offsets[i + 1] = list.offsets[i] + (draw(0, 5) ? draw(1, most_tokens) : 0);
    list.n = list.offsets[images];
    list.images.end = images;
    if (draw(0, 1)) {
        list.images.end = draw(0, 12);
        list.rows = make((size_t)list.images.end, sizeof(int64_t));
        for (int64_t i = 0; i < list.images.end; i++)
            list.rows[i] = draw(0, images - 1);
    }
    return list;
}

/* values [n, Kq] → [images]: the mean of the best. */
static double *expect(const List *list, const double *values, int64_t queries)
{
    double *expected = make((size_t)list->images.end, sizeof(double));
    for (int64_t i = 0; i < list->images.end; i++) {
        const int64_t row = list->rows ? list->rows[i] : i;
        expected[i] = list->offsets[row] < list->offsets[row + 1] ? 0 : -INFINITY;
        for (int64_t q = 0; q < queries && list->offsets[row] < list->offsets[row + 1]; q++) {
            double best = -INFINITY;
            for (int64_t t = list->offsets[row]; t < list->offsets[row + 1]; t++)
                best = fmax(best, values[t * queries + q]);
            expected[i] += best / (double)queries;
        }
    }
    return expected;
}

static void fuzz_float(void)
{
    const size_t d = (size_t)draw(1, 90);
    const int64_t queries = draw(1, 40), panels = (queries + LANES - 1) / LANES;
    List list = draw_list(20);
    list.images.offsets = list.offsets;
    list.images.rows = list.rows;
    float *tokens = make((size_t)list.n * d, sizeof(float)), *query = make((size_t)queries * d, sizeof(float));
    uint16_t *halves = make((size_t)list.n * d, sizeof(uint16_t));
    float *panel = calloc((size_t)panels * d * LANES, sizeof(float)), *weights = calloc((size_t)panels * LANES, sizeof(float));
    float *out = make((size_t)list.images.end, sizeof(float));
    double *values = make((size_t)(list.n * queries), sizeof(double));
    for (size_t k = 0; k < (size_t)list.n * d; k++) {
        const int64_t sign = draw(0, 1), power = draw(0, 3); /* ±1, 2, 4, 8: halves are easily written */
        tokens[k] = (float)((sign ? -1 : 1) * (1 << power));
        halves[k] = (uint16_t)((sign << 15) | ((15 + power) << 10));
    }
    for (int64_t q = 0; q < queries; q++) {
        weights[q] = 1.0f / (float)queries;
        for (size_t k = 0; k < d; k++) {
            query[(size_t)q * d + k] = (float)draw(-9, 9);
            panel[((size_t)(q / LANES) * d + k) * LANES + (size_t)(q % LANES)] = query[(size_t)q * d + k];
        }
    }
    for (int64_t t = 0; t < list.n; t++)
        for (int64_t q = 0; q < queries; q++) {
            values[t * queries + q] = 0;
            for (size_t k = 0; k < d; k++)
                values[t * queries + q] += (double)tokens[(size_t)t * d + k] * query[(size_t)q * d + k];
        }
    double *expected = expect(&list, values, queries);
    const FloatQuery arranged = {panel, weights, panels};
    maxsim_fp32(&arranged, tokens, d, &list.images, out);
    check("maxsim_fp32", out, expected, list.images.end, d);
    if (maxsim_fp16(&arranged, halves, d, &list.images, out))
        abort();
    check("maxsim_fp16", out, expected, list.images.end, d);
    scan_fp32(query, weights, queries, tokens, d, &list.images, out);
    check("scan_fp32", out, expected, list.images.end, d);
    free(tokens), free(query), free(halves), free(panel), free(weights), free(out), free(values), free(expected), free(list.rows);
}

static void fuzz_bytes(void)
{
    const size_t d = (size_t)draw(1, 24) * 4, width = (d + 31) / 32 * 32;
    const int64_t queries = draw(1, 40), panels = (queries + LANES - 1) / LANES, lanes = panels * LANES;
    List list = draw_list(20);
    list.images.offsets = list.offsets;
    list.images.rows = list.rows;
    uint8_t *tokens = make((size_t)list.n * d, 1);
    float *steps = make((size_t)list.n, sizeof(float)), *shifts = make((size_t)list.n, sizeof(float));
    int8_t *query = calloc((size_t)queries * width, 1), *panel = calloc((size_t)lanes * d, 1);
    int16_t *start16 = calloc((size_t)lanes * 2, sizeof(int16_t));
    int32_t *start32 = calloc((size_t)lanes, sizeof(int32_t));
    float *query_steps = calloc((size_t)lanes, sizeof(float)), *weights = calloc((size_t)lanes, sizeof(float));
    float *out = make((size_t)list.images.end, sizeof(float));
    double *values = make((size_t)(list.n * queries), sizeof(double));
    /* Mostly small values; in one round of four as large as they come, where only 32 bits hold the sums. */
    const int64_t wide = draw(0, 3) == 0, largest = wide ? 127 : 20, most = wide ? 64 : 10;
    for (size_t k = 0; k < (size_t)list.n * d; k++)
        tokens[k] = (uint8_t)(128 + draw(-largest, largest));
    for (int64_t t = 0; t < list.n; t++) {
        steps[t] = (float)draw(1, 8) / 8;
        shifts[t] = (float)draw(-9, 9);
    }
    for (int64_t q = 0; q < queries; q++) {
        weights[q] = 1.0f / (float)queries;
        query_steps[q] = (float)draw(1, 8) / 8;
        for (size_t k = 0; k < d; k++) {
            const int8_t value = (int8_t)draw(-most, most);
            query[(size_t)q * width + k] = value;
            panel[(size_t)(q / LANES) * d * LANES + k / 4 * 64 + (size_t)(q % LANES) * 4 + k % 4] = value;
            start32[q] -= 128 * value;
            start16[2 * q + (int64_t)(k / 2 % 2)] = (int16_t)(uint16_t)(start16[2 * q + (int64_t)(k / 2 % 2)] - 128 * value);
        }
    }
    for (int64_t t = 0; t < list.n; t++)
        for (int64_t q = 0; q < queries; q++) {
            int64_t sum = 0;
            for (size_t k = 0; k < d; k++)
                sum += (tokens[(size_t)t * d + k] - 128) * query[(size_t)q * width + k];
            values[t * queries + q] = (double)sum * steps[t] * query_steps[q] + shifts[t];
        }
    double *expected = expect(&list, values, queries);
    const ByteTokens stored = {tokens, steps, shifts, list.n};
    const ByteQuery arranged = {panel, start16, start32, query_steps, weights, panels};
    maxsim_int8_wide(&arranged, &stored, d, &list.images, out);
    check("maxsim_int8_wide", out, expected, list.images.end, d);
    if (__builtin_cpu_supports("avx512vnni")) {
        float *same = make((size_t)list.images.end, sizeof *same);
        maxsim_int8_vnni(&arranged, &stored, d, &list.images, same);
        if (memcmp(same, out, (size_t)list.images.end * sizeof *same)) {
            fprintf(stderr, "maxsim_int8_vnni differs from maxsim_int8_wide, d = %zu\n", d);
            exit(1);
        }
        free(same);
    }
    maxsim_int8(&arranged, &stored, d, &list.images, out);
    if (!wide)
        check("maxsim_int8", out, expected, list.images.end, d);
    if (scan_int8(query, query_steps, weights, queries, width, &stored, d, &list.images, out))
        abort();
    if (!wide)
        check("scan_int8", out, expected, list.images.end, d);
    free(tokens), free(steps), free(shifts), free(query), free(panel), free(start16), free(start32), free(query_steps);
    free(weights), free(out), free(values), free(expected), free(list.rows);
}

/* bits 4: a "token" of the list is a block of 32; the best of the block stands for it. */
static void fuzz_tables(int bits)
{
    const size_t parts = (size_t)draw(1, 9) * (bits == 4 ? 4 : 1), entries = bits == 4 ? 16 : 256;
    const int64_t asked = draw(1, 20), together = bits == 4 ? 2 : LANES;
    const int64_t queries = (asked + together - 1) / together * together, inside = bits == 4 ? 32 : 1;
    List list = draw_list(6);
    list.images.offsets = list.offsets;
    list.images.rows = list.rows;
    const size_t row_bytes = bits == 4 ? parts * 16 : parts;
    uint8_t *codes = make((size_t)list.n * row_bytes, 1);
    int16_t *plain = make((size_t)queries * parts * entries, sizeof(int16_t));
    uint8_t *small = make((size_t)queries * parts * entries, 1);
    int16_t *tables = make((size_t)queries * parts * entries, sizeof(int16_t));
    float *scales = calloc((size_t)queries, sizeof(float)), *biases = calloc((size_t)queries, sizeof(float));
    float *out = make((size_t)list.images.end, sizeof(float));
    double *values = make((size_t)(list.n * asked), sizeof(double));
    for (size_t k = 0; k < (size_t)list.n * row_bytes; k++)
        codes[k] = (uint8_t)draw(0, 255);
    for (int64_t q = 0; q < queries; q++) {
        scales[q] = q < asked ? 1.0f / (float)asked : 0.0f;
        biases[q] = q < asked ? (float)draw(-9, 9) / (float)asked : 0.0f;
        for (size_t j = 0; j < parts; j++)
            for (size_t c = 0; c < entries; c++) {
                const int16_t entry = (int16_t)(bits == 4 ? draw(0, 63) : draw(-300, 300));
                plain[((size_t)q * parts + j) * entries + c] = entry;
                if (bits == 4)
                    small[((size_t)(q / 2) * parts / 4 + j / 4) * 128 + (size_t)(q % 2) * 64 + j % 4 * 16 + c] = (uint8_t)entry;
                else
                    tables[(((size_t)(q / LANES) * parts + j) * entries + c) * LANES + (size_t)(q % LANES)] = entry;
            }
    }
    for (int64_t t = 0; t < list.n; t++)
        for (int64_t q = 0; q < asked; q++) {
            values[t * asked + q] = -INFINITY;
            for (int64_t s = 0; s < inside; s++) {
                double sum = 0;
                for (size_t j = 0; j < parts; j++) {
                    const uint8_t byte = bits == 4 ? codes[(size_t)t * row_bytes + j * 16 + (size_t)(s % 16)]
                                                   : codes[(size_t)t * row_bytes + j];
                    const size_t code = bits == 8 ? byte : s < 16 ? byte & 15 : byte >> 4;
                    sum += plain[((size_t)q * parts + j) * entries + code];
                }
                values[t * asked + q] = fmax(values[t * asked + q], sum + (double)biases[q] * (double)asked);
            }
        }
    double *expected = expect(&list, values, asked);
    const TableQuery query = {scales, biases, queries, parts};
    if (bits == 4 && maxsim_pq4(small, &query, codes, &list.images, out))
        abort();
    if (bits == 8)
        maxsim_pq8(tables, &query, codes, &list.images, out);
    check(bits == 4 ? "maxsim_pq4" : "maxsim_pq8", out, expected, list.images.end, parts);
    free(codes), free(plain), free(small), free(tables), free(scales), free(biases), free(out), free(values), free(expected);
    free(list.rows);
}

/* Tables lie in 32 bytes a row; entries of all parts together stay below 256. */
static void fuzz_residuals(void)
{
    const size_t parts = (size_t)draw(1, 9);
    const int64_t queries = draw(1, 70), panels = (queries + WIDE_LANES - 1) / WIDE_LANES;
    List list = draw_list(20);
    list.images.offsets = list.offsets;
    list.images.rows = list.rows;
    const size_t size = (size_t)panels * parts * 256 * WIDE_LANES;
    uint8_t *numbers = make((size_t)list.n * parts, 1), *tables = aligned_alloc(WIDE_LANES, size);
    float *out = make((size_t)list.images.end, sizeof(float));
    double *values = calloc((size_t)(list.n * queries) + 1, sizeof(double));
    memset(tables, 0, size);
    for (size_t k = 0; k < (size_t)list.n * parts; k++)
        numbers[k] = (uint8_t)draw(0, 255);
    for (int64_t q = 0; q < queries; q++)
        for (size_t j = 0; j < parts; j++)
            for (size_t c = 0; c < 256; c++)
                tables[(((size_t)(q / WIDE_LANES) * parts + j) * 256 + c) * WIDE_LANES + (size_t)(q % WIDE_LANES)] =
                    (uint8_t)draw(0, 255 / (int64_t)parts);
    for (int64_t t = 0; t < list.n; t++)
        for (int64_t q = 0; q < queries; q++) {
            const size_t panel = (size_t)(q / WIDE_LANES) * parts;
            double sum = 0;
            for (size_t j = 0; j < parts; j++)
                sum += tables[((panel + j) * 256 + numbers[(size_t)t * parts + j]) * WIDE_LANES + (size_t)(q % WIDE_LANES)];
            values[t * queries + q] = sum + 7;
        }
    double *expected = expect(&list, values, queries);
    maxsim_rq(tables, panels, parts, 1.0f / (float)queries, 7.0f, numbers, &list.images, out);
    check("maxsim_rq", out, expected, list.images.end, parts);
    free(numbers), free(tables), free(out), free(values), free(expected), free(list.rows);
}

/* Tokens and the mean are small integers; one table entry per half panel, scale, place, shift and lane. */
static void fuzz_layout(void)
{
    const size_t d = (size_t)draw(1, 40);
    const int64_t panels = draw(1, 3), scales = draw(1, 3), steps = draw(1, 10), columns = draw(1, 5), rows = draw(1, 5);
    const int64_t lanes = panels * LANES, shifts = steps * steps;
    List list = draw_list(20);
    list.images.offsets = list.offsets;
    list.images.rows = list.rows;
    float *tokens = make((size_t)list.n * d, sizeof(float)), *mean = make(d, sizeof(float));
    float *values = make((size_t)lanes * d, sizeof(float)), *weights = make((size_t)(scales * shifts), sizeof(float));
    float *near_x = make((size_t)(lanes * scales * columns * steps), sizeof(float));
    float *near_y = make((size_t)(lanes * scales * rows * steps), sizeof(float));
    uint8_t *inside = make((size_t)(2 * panels * scales * steps), 1);
    int32_t *column = make((size_t)list.n, sizeof(int32_t)), *row = make((size_t)list.n, sizeof(int32_t));
    float *out = make((size_t)list.images.end, sizeof(float));
    double *expected = make((size_t)list.images.end, sizeof(double)), *likeness = make((size_t)(list.n * lanes), sizeof(double));
    for (size_t k = 0; k < d; k++)
        mean[k] = (float)draw(-2, 2);
    for (size_t k = 0; k < (size_t)list.n * d; k++)
        tokens[k] = (float)draw(-9, 9);
    for (int64_t t = 0; t < list.n; t++)
        column[t] = (int32_t)draw(0, columns - 1), row[t] = (int32_t)draw(0, rows - 1);
    for (size_t k = 0; k < (size_t)lanes * d; k++)
        values[k] = (float)draw(-3, 3);
    for (int64_t k = 0; k < scales * shifts; k++)
        weights[k] = (float)draw(0, 3) / 8;
    for (int64_t k = 0; k < lanes * scales * columns * steps; k++)
        near_x[k] = (float)draw(0, 4) / 4;
    for (int64_t k = 0; k < lanes * scales * rows * steps; k++)
        near_y[k] = (float)draw(0, 4) / 4;
    for (int64_t k = 0; k < 2 * panels * scales * steps; k++)
        inside[k] = (uint8_t)draw(0, 1);
    for (int64_t t = 0; t < list.n; t++)
        for (int64_t q = 0; q < lanes; q++) {
            double dot = 0, square = 0;
            for (size_t k = 0; k < d; k++) {
                const double value = tokens[(size_t)t * d + k] - mean[k];
                dot += value * values[((size_t)(q / LANES) * d + k) * LANES + (size_t)(q % LANES)];
                square += value * value;
            }
            likeness[t * lanes + q] = square > 0 ? dot / sqrt(square) : 0;
        }
    for (int64_t i = 0; i < list.images.end; i++) {
        const int64_t image = list.rows ? list.rows[i] : i;
        expected[i] = 0;
        for (int64_t s = 0; s < scales * shifts; s++) {
            const int64_t scale = s / shifts, y = s / steps % steps, x = s % steps;
            double total = 0;
            for (int64_t q = 0; q < lanes; q++) {
                const int64_t table = q / 8 * scales + scale;
                double best = 0;
                for (int64_t t = list.offsets[image]; t < list.offsets[image + 1] && inside[table * steps + y]; t++)
                    best = fmax(best, likeness[t * lanes + q] *
                                          (double)near_x[((table * columns + column[t]) * steps + x) * 8 + q % 8] *
                                          (double)near_y[((table * rows + row[t]) * steps + y) * 8 + q % 8]);
                total += best;
            }
            expected[i] = fmax(expected[i], total * weights[s]);
        }
    }
    const PlacedQuery query = {values, near_x, near_y, inside, weights, panels, scales, columns, rows, steps};
    const PlacedTokens placed = {tokens, mean, column, row};
    if (lay_over(&query, &placed, d, &list.images, out))
        abort();
    check("lay_over", out, expected, list.images.end, d);
    free(tokens), free(mean), free(values), free(weights), free(near_x), free(near_y), free(inside), free(column), free(row);
    free(out), free(expected), free(likeness), free(list.rows);
}

static void fuzz_postings(void)
{
    const int64_t words = draw(0, 6), images = draw(1, 20), each = draw(0, images);
    int64_t *starts = make((size_t)words, sizeof(int64_t)), *stops = make((size_t)words, sizeof(int64_t));
    int32_t *named = make((size_t)(words * each), sizeof(int32_t));
    float *values = make((size_t)(words * each), sizeof(float)), *query = make((size_t)words, sizeof(float));
    float *totals = make((size_t)images, sizeof(float));
    double *expected = make((size_t)images, sizeof(double));
    for (enum Gain gain = PRODUCT; gain <= CHI2; gain++) {
        for (int64_t image = 0; image < images; image++)
            totals[image] = 0, expected[image] = 0;
        for (int64_t word = 0; word < words; word++) {
            starts[word] = word * each;
            stops[word] = starts[word] + draw(0, each);
            query[word] = (float)draw(0, 3);
            for (int64_t i = starts[word]; i < stops[word]; i++) {
                named[i] = (int32_t)(i - starts[word]);
                values[i] = (float)draw(0, 3);
                const double a = query[word], b = values[i], sum = a + b > 0 ? a + b : 1;
                expected[named[i]] += gain == PRODUCT ? a * b : gain == OVERLAP ? a + b - fabs(a - b) : a + b - (a - b) * (a - b) / sum;
            }
        }
        const Postings lists = {starts, stops, words, named, values};
        if (!add_postings(&lists, query, gain, totals, (uint32_t)images))
            exit(1);
        check("postings", totals, expected, images, (size_t)words);
        if (words && stops[0] > starts[0]) {
            named[starts[0]] = draw(0, 1) ? -1 : (int32_t)images;
            if (add_postings(&lists, query, gain, totals, (uint32_t)images))
                exit(1);
        }
    }
    free(starts), free(stops), free(named), free(values), free(query), free(totals), free(expected);
}

static void fuzz_codes(void)
{
    const int64_t words = draw(0, 6), images = draw(1, 20), each = draw(0, images), bytes = draw(1, 19);
    int64_t *starts = make((size_t)words, sizeof(int64_t)), *stops = make((size_t)words, sizeof(int64_t));
    int32_t *named = make((size_t)(words * each), sizeof(int32_t));
    uint8_t *codes = make((size_t)(words * each * bytes), 1), *query = make((size_t)(words * bytes), 1);
    double *weights = make((size_t)words, sizeof(double)), *gains = make((size_t)(8 * bytes + 1), sizeof(double));
    double *totals = make((size_t)images, sizeof(double)), *expected = make((size_t)images, sizeof(double));
    for (int64_t bits = 0; bits <= 8 * bytes; bits++)
        gains[bits] = (double)(bits * bits);
    for (int64_t image = 0; image < images; image++)
        totals[image] = 0, expected[image] = 0;
    for (int64_t word = 0; word < words; word++) {
        starts[word] = word * each;
        stops[word] = starts[word] + draw(0, each);
        weights[word] = (double)draw(0, 3);
        for (int64_t at = 0; at < bytes; at++)
            query[word * bytes + at] = (uint8_t)draw(0, 255);
        for (int64_t i = starts[word]; i < stops[word]; i++) {
            int64_t different = 0;
            named[i] = (int32_t)(i - starts[word]);
            for (int64_t at = 0; at < bytes; at++) {
                codes[i * bytes + at] = (uint8_t)draw(0, 255);
                for (int bit = 0; bit < 8; bit++)
                    different += ((codes[i * bytes + at] ^ query[word * bytes + at]) >> bit) & 1;
            }
            expected[named[i]] += weights[word] * gains[different];
        }
    }
    const CodeLists lists = {starts, stops, words, named, codes, bytes};
    if (!add_codes(&lists, query, weights, gains, totals, (uint32_t)images))
        exit(1);
    for (int64_t image = 0; image < images; image++)
        if (totals[image] != expected[image])
            exit(1);
    if (words && stops[0] > starts[0]) {
        named[starts[0]] = draw(0, 1) ? -1 : (int32_t)images;
        if (add_codes(&lists, query, weights, gains, totals, (uint32_t)images))
            exit(1);
    }
    free(starts), free(stops), free(named), free(codes), free(query), free(weights), free(gains), free(totals), free(expected);
}

#include "fuzz_points.h"

int main(int count, char **arguments)
{
    state = count > 1 ? strtoull(arguments[1], NULL, 10) * 2 + 1 : 1;
    const long rounds = count > 2 ? strtol(arguments[2], NULL, 10) : 100;
    for (long round = 0; round < rounds; round++) {
        fuzz_float();
        fuzz_bytes();
        fuzz_tables(4);
        fuzz_tables(8);
        fuzz_residuals();
        fuzz_layout();
        fuzz_postings();
        fuzz_codes();
        fuzz_points();
        fuzz_support();
        fuzz_words();
    }
    uint8_t *bytes = make(1000, 1);
    for (size_t size = 0; size < 1000; size++)
        if (peak_read(bytes + 1000 - size, size) > (double)size)
            return 1;
    free(bytes);
    if (peak_fp32(10) <= 0 || peak_int8(10) <= 0)
        return 1;
    printf("%ld rounds\n", rounds);
    return 0;
}
