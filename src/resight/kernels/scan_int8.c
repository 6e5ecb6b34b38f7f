/* MaxSim for a few query tokens over 8-bit tokens: lane = dimension, four tokens at a time, bound by memory.
 *
 * Sums run modulo 2^16 as in maxsim_int8. Here a 16-bit lane adds the dimensions 2j and 2j + 1 modulo 32, a part of the
 * half that a lane adds there, so the same check by Cauchy-Schwarz covers both; the caller may also check these parts
 * themselves, which allows longer vectors.
 *
 * The four tokens come from four streams far apart. A core prefetches several streams by itself: four of them bring a
 * quarter more bytes per second than one, and explicit prefetches would only disturb it. */
#include "avx2.h"

/* Tokens to sum before the sums become scores. The sums stay in the second-level cache. The streams, a quarter of this
 * apart, start at different offsets within a page; with 16,384 they would share one and compete. */
#ifndef SEGMENT /* tests set a small one */
#define SEGMENT 16400
#endif

typedef struct {
    const int8_t *values; /* [width], zeros beyond d */
    __m256i start;        /* minus 128 × the sum of each lane, modulo 2^16: removes the 128 added to database values */
    float step, weight;
} ScanQuery;

/* Images `from` up to `to`, and their tokens: a range of the array, or a list. */
typedef struct {
    int64_t from, to, first, count;
    int64_t *listed; /* [count], or NULL: first, first + 1, … */
    int32_t *sums;   /* [queries, count rounded up to a multiple of 4] */
    float *values;   /* [count] */
    uint8_t *room;   /* [4, width], zeros beyond d */
} Segment;

static ScanQuery arrange(const int8_t *values, float step, float weight, size_t width)
{
    __m256i sum = _mm256_setzero_si256();
    for (size_t k = 0; k < width; k += 32)
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(_mm256_set1_epi8(1),
                                                         _mm256_loadu_si256((const __m256i *)(values + k))));
    const __m256i start = _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16(sum, 7));
    const ScanQuery query = {values, start, step, weight};
    return query;
}

/* Four sums of 32 bits. Reads `width` bytes of each row: the query is zero beyond d. */
INLINE __m128i dot_four(const ScanQuery *query, const uint8_t *const row[4], size_t width)
{
    __m256i sum[4];
    UNROLL for (int i = 0; i < 4; i++) sum[i] = query->start;
    for (size_t k = 0; k < width; k += 32) {
        const __m256i values = _mm256_loadu_si256((const __m256i *)(query->values + k));
        UNROLL for (int i = 0; i < 4; i++)
        {
            const __m256i bytes = _mm256_loadu_si256((const __m256i *)(row[i] + k));
            sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(bytes, values));
        }
    }
    const __m256i ones = _mm256_set1_epi16(1);
    UNROLL for (int i = 0; i < 4; i++) sum[i] = _mm256_madd_epi16(sum[i], ones);
    const __m256i pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), _mm256_hadd_epi32(sum[2], sum[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

/* All streams have the same length; beyond the last token, the loop sums the last one again.
 * It copies a token at the end of the array before it reads `width` bytes, because the array ends there. */
static void sum_tokens(const Segment *segment, const ScanQuery *queries, int64_t count, const ByteTokens *tokens,
                       size_t d, size_t width)
{
    const size_t last = (size_t)tokens->count * d;
    const int64_t stream = (segment->count + 3) / 4;
    for (int64_t t = 0; t < stream; t++) {
        const uint8_t *row[4];
        UNROLL for (int i = 0; i < 4; i++)
        {
            const int64_t number = i * stream + t < segment->count ? i * stream + t : segment->count - 1;
            const size_t at = (size_t)(segment->listed ? segment->listed[number] : segment->first + number) * d;
            row[i] = tokens->values + at;
            if (at + width > last)
                row[i] = memcpy(segment->room + (size_t)i * width, row[i], d);
        }
        for (int64_t q = 0; q < count; q++) {
            const __m128i four = dot_four(&queries[q], row, width);
            int32_t *sums = segment->sums + q * 4 * stream + t;
            sums[0] = _mm_extract_epi32(four, 0);
            sums[stream] = _mm_extract_epi32(four, 1);
            sums[2 * stream] = _mm_extract_epi32(four, 2);
            sums[3 * stream] = _mm_extract_epi32(four, 3);
        }
    }
}

static void scale_sums(const Segment *segment, const int32_t *sums, float step, const ByteTokens *tokens)
{
    const float *steps = tokens->steps + segment->first, *shifts = tokens->shifts + segment->first;
    if (segment->listed)
        for (int64_t t = 0; t < segment->count; t++)
            segment->values[t] = fmaf((float)sums[t], step * tokens->steps[segment->listed[t]],
                                      tokens->shifts[segment->listed[t]]);
    else
        for (int64_t t = 0; t < segment->count; t++)
            segment->values[t] = fmaf((float)sums[t], step * steps[t], shifts[t]);
}

static int have_one_each(const Images *images, const Segment *segment)
{
    int64_t other = 0;
    for (int64_t i = segment->from; i < segment->to && !images->rows; i++)
        other |= images->offsets[i + 1] - images->offsets[i] - 1;
    return !images->rows && !other;
}

/* Adds weight × the best of each image's values to its score. One token per image is common and gets a plain loop. */
static void add_best(const Segment *segment, const Images *images, float weight, float *out)
{
    if (have_one_each(images, segment)) {
        for (int64_t i = 0; i < segment->count; i++)
            out[segment->from + i] += weight * segment->values[i];
        return;
    }
    const float *value = segment->values;
    for (int64_t i = segment->from; i < segment->to; i++) {
        const int64_t row = image_row(images, i);
        float best = -INFINITY;
        for (const float *end = value + images->offsets[row + 1] - images->offsets[row]; value < end; value++)
            best = *value > best ? *value : best;
        out[i] += weight * best;
    }
}

static int64_t count_tokens(const Images *images, int64_t from, int64_t to)
{
    if (!images->rows)
        return images->offsets[to] - images->offsets[from];
    int64_t tokens = 0;
    for (int64_t i = from; i < to; i++)
        tokens += images->offsets[images->rows[i] + 1] - images->offsets[images->rows[i]];
    return tokens;
}

/* As many images as have at most SEGMENT tokens together, or a single image with more. */
static void open_segment(Segment *segment, const Images *images, int64_t from)
{
    int64_t to = images->end - from < SEGMENT ? images->end : from + SEGMENT;
    while (to - from > 1 && count_tokens(images, from, to) > SEGMENT)
        to = from + (to - from) / 2;
    segment->from = from;
    segment->to = to;
    segment->first = images->offsets[image_row(images, from)];
    segment->count = count_tokens(images, from, to);
    if (!images->rows)
        return;
    int64_t *token = segment->listed;
    for (int64_t i = from; i < to; i++)
        for (int64_t t = images->offsets[images->rows[i]]; t < images->offsets[images->rows[i] + 1]; t++)
            *token++ = t;
}

static int64_t longest(const Images *images)
{
    int64_t most = 0;
    for (int64_t i = images->begin; i < images->end; i++) {
        const int64_t row = image_row(images, i), count = images->offsets[row + 1] - images->offsets[row];
        most = count > most ? count : most;
    }
    return most;
}

int scan_int8(const int8_t *query, const float *steps, const float *weights, int64_t count, size_t width,
              const ByteTokens *tokens, size_t d, const Images *images, float *out)
{
    const int64_t most = longest(images);
    const size_t size = (size_t)(most > SEGMENT ? most : SEGMENT) + 3;
    Segment segment = {0};
    segment.listed = images->rows ? malloc(size * sizeof(int64_t)) : NULL;
    segment.sums = malloc((size_t)count * size * sizeof(int32_t));
    segment.values = malloc(size * sizeof(float));
    segment.room = calloc(4 * width, 1);
    ScanQuery *queries = _mm_malloc((size_t)count * sizeof(ScanQuery), 32);
    const int failed = (images->rows && !segment.listed) || !segment.sums || !segment.values || !segment.room || !queries;
    for (int64_t q = 0; q < count && !failed; q++)
        queries[q] = arrange(query + (size_t)q * width, steps[q], weights[q], width);
    for (int64_t from = images->begin; from < images->end && !failed; from = segment.to) {
        open_segment(&segment, images, from);
        sum_tokens(&segment, queries, count, tokens, d, width);
        memset(out + segment.from, 0, (size_t)(segment.to - segment.from) * sizeof(float));
        for (int64_t q = 0; q < count; q++) {
            scale_sums(&segment, segment.sums + q * 4 * ((segment.count + 3) / 4), queries[q].step, tokens);
            add_best(&segment, images, queries[q].weight, out);
        }
    }
    free(segment.listed);
    free(segment.sums);
    free(segment.values);
    free(segment.room);
    _mm_free(queries);
    return failed;
}
