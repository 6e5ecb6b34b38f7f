/* MaxSim for a few query tokens over 8-bit tokens: lane = dimension, four tokens at a time.
 *
 * Sums run modulo 2^16 as in maxsim_int8. Here a 16-bit lane sees the dimensions 2j and 2j + 1 modulo 32, a part of the
 * half that a lane sees there, so the same check by Cauchy-Schwarz covers both; the caller may also check these parts
 * by themselves, which allows longer vectors. */
#include "avx2.h"

/* Bytes between what is compared and what is asked for: the processor's own guesses end at every page. */
#define AHEAD 4096
/* Bytes of tokens that every query token meets while they are in the first-level cache. */
#define RUN_BYTES 16384

typedef struct {
    const int8_t *values; /* [width], zeros beyond d */
    __m256i start;        /* minus 128 × the sum of each lane, modulo 2^16: takes back what the database has added */
    float step;
    size_t width;
} ScanQuery;

static ScanQuery arrange(const int8_t *values, float step, size_t width)
{
    __m256i sum = _mm256_setzero_si256();
    for (size_t k = 0; k < width; k += 32)
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(_mm256_set1_epi8(1),
                                                         _mm256_loadu_si256((const __m256i *)(values + k))));
    const ScanQuery query = {values, _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16(sum, 7)), step, width};
    return query;
}

/* Four sums of 32 bits. Each row is read `width` bytes wide: what lies beyond d meets zeros. */
INLINE __m128i dot_four(const ScanQuery *query, const uint8_t *row, size_t d)
{
    __m256i sum[4];
    UNROLL for (int i = 0; i < 4; i++) sum[i] = query->start;
    for (size_t k = 0; k < query->width; k += 32) {
        const __m256i values = _mm256_loadu_si256((const __m256i *)(query->values + k));
        UNROLL for (int i = 0; i < 4; i++)
        {
            const __m256i bytes = _mm256_loadu_si256((const __m256i *)(row + (size_t)i * d + k));
            sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(bytes, values));
        }
    }
    const __m256i ones = _mm256_set1_epi16(1);
    UNROLL for (int i = 0; i < 4; i++) sum[i] = _mm256_madd_epi16(sum[i], ones);
    const __m256i pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), _mm256_hadd_epi32(sum[2], sum[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

/* values[count]: the dot products of tokens first, first + 1, … The last ones are copied to `room` before they are
 * read `width` bytes wide, since nothing lies behind them. */
static void score_run(const ScanQuery *query, const ByteTokens *tokens, size_t d, int64_t first, int64_t count,
                      uint8_t *room, float *values)
{
    const size_t all = (size_t)tokens->count * d;
    for (int64_t t = 0; t < count; t += 4) {
        const int64_t left = count - t < 4 ? count - t : 4;
        const size_t at = (size_t)(first + t) * d;
        const uint8_t *row = tokens->values + at;
        for (size_t byte = 0; byte < 4 * d; byte += 64)
            _mm_prefetch((const char *)row + AHEAD + byte, _MM_HINT_T0);
        if (at + 3 * d + query->width > all)
            row = memcpy(room, row, (size_t)left * d);
        const __m128 sums = _mm_cvtepi32_ps(dot_four(query, row, d));
        float steps[4] = {0}, shifts[4] = {0}, four[4];
        memcpy(steps, tokens->steps + first + t, (size_t)left * sizeof(float));
        memcpy(shifts, tokens->shifts + first + t, (size_t)left * sizeof(float));
        const __m128 scale = _mm_mul_ps(_mm_set1_ps(query->step), _mm_loadu_ps(steps));
        _mm_storeu_ps(four, _mm_fmadd_ps(sums, scale, _mm_loadu_ps(shifts)));
        memcpy(values + t, four, (size_t)left * sizeof(float));
    }
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

/* Where the run that starts with image i ends: neighbours in the file go together as long as their tokens are few. */
static int64_t find_run(const Images *images, int64_t i, int64_t tokens)
{
    if (images->rows)
        return i + 1;
    int64_t end = i + 1;
    while (end < images->end && images->offsets[end + 1] - images->offsets[i] <= tokens)
        end++;
    return end;
}

int scan_int8(const int8_t *query, const float *steps, const float *weights, int64_t count, size_t width,
              const ByteTokens *tokens, size_t d, const Images *images, float *out)
{
    const int64_t most = longest(images), few = RUN_BYTES / (int64_t)d + 4;
    uint8_t *room = calloc(3 * d + width, 1);
    float *values = malloc((size_t)(most > few ? most : few) * sizeof(float));
    ScanQuery *arranged = _mm_malloc((size_t)count * sizeof(ScanQuery), 32);
    const int failed = !(room && values && arranged);
    for (int64_t q = 0; q < count && !failed; q++)
        arranged[q] = arrange(query + (size_t)q * width, steps[q], width);
    for (int64_t i = images->begin, next; i < images->end && !failed; i = next) {
        next = find_run(images, i, few);
        const int64_t first = images->offsets[image_row(images, i)];
        const int64_t last = images->offsets[image_row(images, next - 1) + 1];
        for (int64_t q = 0; q < count; q++) {
            score_run(&arranged[q], tokens, d, first, last - first, room, values);
            for (int64_t j = i; j < next; j++) {
                const int64_t row = image_row(images, j);
                float best = -INFINITY;
                for (int64_t t = images->offsets[row] - first; t < images->offsets[row + 1] - first; t++)
                    best = values[t] > best ? values[t] : best;
                out[j] = (q ? out[j] : 0.0f) + weights[q] * best;
            }
        }
    }
    free(room);
    free(values);
    _mm_free(arranged);
    return failed;
}
