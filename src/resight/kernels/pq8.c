/* MaxSim over 8-bit product codes: lane = query token, so that one load fetches a table entry for 16 of them.
 *
 * The tables of a panel take parts × 256 × 32 bytes; those of two panels do not fit the second-level cache. So each
 * panel scores a run of images before the next panel does. The caller scales entries so that sums fit 16 bits. */
#include "avx2.h"

#define RUN 32 /* images per turn of a panel */

INLINE __m256i load_entry(const int16_t *table, size_t part, uint8_t code)
{
    return _mm256_loadu_si256((const __m256i *)(table + (part * 256 + code) * LANES));
}

/* Best sum of each lane over an image's tokens, two tokens at a time. */
static __m256i best_sums(const int16_t *table, size_t parts, const uint8_t *codes, int64_t count)
{
    __m256i best = _mm256_set1_epi16(INT16_MIN);
    for (int64_t t = 0; t < count; t += 2) {
        const uint8_t *one = codes + (size_t)t * parts, *two = t + 1 < count ? one + parts : one;
        __m256i first = _mm256_setzero_si256(), second = _mm256_setzero_si256();
        for (size_t j = 0; j < parts; j++) {
            first = _mm256_add_epi16(first, load_entry(table, j, one[j]));
            second = _mm256_add_epi16(second, load_entry(table, j, two[j]));
        }
        best = _mm256_max_epi16(best, _mm256_max_epi16(first, second));
    }
    return best;
}

void maxsim_pq8(const int16_t *tables, const TableQuery *query, const uint8_t *codes, const Images *images, float *out)
{
    const size_t parts = query->parts;
    for (int64_t from = images->begin; from < images->end; from += RUN) {
        const int64_t to = from + RUN < images->end ? from + RUN : images->end;
        for (int64_t lane = 0; lane < query->queries; lane += LANES) {
            const int16_t *table = tables + (size_t)lane * parts * 256;
            for (int64_t i = from; i < to; i++) {
                const int64_t row = image_row(images, i), first = images->offsets[row];
                const int64_t count = images->offsets[row + 1] - first;
                const __m256i best = best_sums(table, parts, codes + (size_t)first * parts, count);
                __m256 sum = _mm256_setzero_ps();
                for (int h = 0; h < 2; h++) {
                    const __m128i half = h ? _mm256_extracti128_si256(best, 1) : _mm256_castsi256_si128(best);
                    const __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(half));
                    sum = _mm256_add_ps(sum, _mm256_fmadd_ps(value, _mm256_loadu_ps(query->scales + lane + 8 * h),
                                                             _mm256_loadu_ps(query->biases + lane + 8 * h)));
                }
                out[i] = (lane ? out[i] : 0.0f) + (count ? add_lanes(sum) : -INFINITY);
            }
        }
    }
}
