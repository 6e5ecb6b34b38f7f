/* MaxSim for a few query tokens over 8-bit tokens: lane = dimension.
 *
 * Sums run modulo 2^16 as in maxsim_int8. Here a 16-bit lane sees the dimensions 2j and 2j + 1 modulo 32, a part of the
 * half that a lane sees there, so the same check by Cauchy-Schwarz covers both; the caller may also check these parts
 * by themselves, which allows longer vectors. */
#include "avx2.h"

/* Bytes between what is compared and what is asked for: the processor's own guesses end at every page. */
#define AHEAD 2048

/* row [width] bytes, of which those beyond d meet zeros in the query. start: see below. */
INLINE int32_t dot(const int8_t *query, __m256i start, const uint8_t *row, size_t width)
{
    __m256i even = start, odd = _mm256_setzero_si256();
    size_t k = 0;
    for (; k + 64 <= width; k += 64) {
        even = _mm256_add_epi16(even, _mm256_maddubs_epi16(_mm256_loadu_si256((const __m256i *)(row + k)),
                                                           _mm256_loadu_si256((const __m256i *)(query + k))));
        odd = _mm256_add_epi16(odd, _mm256_maddubs_epi16(_mm256_loadu_si256((const __m256i *)(row + k + 32)),
                                                         _mm256_loadu_si256((const __m256i *)(query + k + 32))));
    }
    if (k < width)
        even = _mm256_add_epi16(even, _mm256_maddubs_epi16(_mm256_loadu_si256((const __m256i *)(row + k)),
                                                           _mm256_loadu_si256((const __m256i *)(query + k))));
    const __m256i sums = _mm256_madd_epi16(_mm256_add_epi16(even, odd), _mm256_set1_epi16(1));
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
}

/* Minus 128 × the query's sum of each lane, modulo 2^16: takes back what was added to the database bytes. */
static __m256i make_start(const int8_t *query, size_t width)
{
    __m256i sum = _mm256_setzero_si256();
    for (size_t k = 0; k < width; k += 32)
        sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(_mm256_set1_epi8(1),
                                                         _mm256_loadu_si256((const __m256i *)(query + k))));
    return _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16(sum, 7));
}

int scan_int8(const int8_t *query, const float *steps, const float *weights, int64_t count, size_t width,
              const ByteTokens *tokens, size_t d, const Images *images, float *out)
{
    /* The last rows are copied before they are read `width` bytes wide: nothing lies behind them. */
    uint8_t *copy = calloc(width, 1);
    __m256i *starts = _mm_malloc((size_t)count * sizeof(__m256i), 32);
    const int failed = !(copy && starts);
    const int64_t whole = (int64_t)((size_t)tokens->count * d < width ? 0 : ((size_t)tokens->count * d - width) / d + 1);
    for (int64_t q = 0; q < count && !failed; q++)
        starts[q] = make_start(query + (size_t)q * width, width);
    for (int64_t i = images->begin; i < images->end && !failed; i++) {
        const int64_t row = image_row(images, i);
        float total = images->offsets[row] < images->offsets[row + 1] ? 0.0f : -INFINITY;
        for (int64_t q = 0; q < count; q++) {
            float best = -INFINITY;
            for (int64_t t = images->offsets[row]; t < images->offsets[row + 1]; t++) {
                const uint8_t *bytes = tokens->values + (size_t)t * d;
                for (size_t byte = 0; byte < d; byte += 64)
                    _mm_prefetch((const char *)bytes + AHEAD + byte, _MM_HINT_T0);
                if (t >= whole)
                    bytes = memcpy(copy, bytes, d);
                const float sum = (float)dot(query + (size_t)q * width, starts[q], bytes, width);
                const float value = fmaf(sum, steps[q] * tokens->steps[t], tokens->shifts[t]);
                best = value > best ? value : best;
            }
            total += weights[q] * best;
        }
        out[i] = total;
    }
    free(copy);
    _mm_free(starts);
    return failed;
}
