/* MaxSim over residual codes: lane = query token, so that one load fetches a table entry for 32 of them.
 *
 * A token is the sum of one centroid from each of `parts` books of 256; its dot product with a query token is the sum
 * of as many table entries. Entries are bytes, which the caller has scaled so that no sum exceeds 255. A panel's tables
 * are parts × 8 KiB: those of four parts fit the first-level cache, and the kernel reads the codes once, in order. */
#include "avx2.h"

#define RUN 512 /* images per turn of a panel, if there are several panels */

INLINE __m256i sum_entries(const uint8_t *tables, const size_t parts, const uint8_t *code)
{
    __m256i sum = _mm256_load_si256((const __m256i *)(tables + (size_t)code[0] * WIDE_LANES));
    for (size_t j = 1; j < parts; j++)
        sum = _mm256_add_epi8(
            sum, _mm256_load_si256((const __m256i *)(tables + j * WIDE_LANES * 256 + (size_t)code[j] * WIDE_LANES)));
    return sum;
}

/* The sum over lanes of the best sum of entries among an image's tokens. Entries of unused lanes are 0. */
INLINE int64_t add_best(const uint8_t *tables, const size_t parts, const uint8_t *codes, int64_t count)
{
    __m256i one = _mm256_setzero_si256(), two = one;
    int64_t t = 0;
    for (; t + 1 < count; t += 2, codes += 2 * parts) {
        one = _mm256_max_epu8(one, sum_entries(tables, parts, codes));
        two = _mm256_max_epu8(two, sum_entries(tables, parts, codes + parts));
    }
    if (t < count)
        one = _mm256_max_epu8(one, sum_entries(tables, parts, codes));
    const __m256i sums = _mm256_sad_epu8(_mm256_max_epu8(one, two), _mm256_setzero_si256());
    const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return _mm_extract_epi64(half, 0) + _mm_extract_epi64(half, 1);
}

INLINE void score_panel(const uint8_t *tables, const size_t parts, const uint8_t *codes, const Images *images,
                        int64_t from, int64_t to, float scale, float *out)
{
    for (int64_t i = from; i < to; i++) {
        const int64_t row = image_row(images, i), first = images->offsets[row];
        const int64_t count = images->offsets[row + 1] - first;
        out[i] += count ? scale * (float)add_best(tables, parts, codes + (size_t)first * parts, count) : -INFINITY;
    }
}

void maxsim_rq(const uint8_t *tables, int64_t panels, size_t parts, float scale, float bias, const uint8_t *codes,
               const Images *images, float *out)
{
    const int64_t run = panels == 1 ? images->end - images->begin : RUN;
    for (int64_t i = images->begin; i < images->end; i++)
        out[i] = bias;
    for (int64_t from = images->begin; from < images->end; from += run) {
        const int64_t to = images->end - from < run ? images->end : from + run;
        for (int64_t p = 0; p < panels; p++) {
            const uint8_t *panel = tables + (size_t)p * parts * 256 * WIDE_LANES;
            switch (parts) { /* a loop of constant length costs half as much */
            case 2: score_panel(panel, 2, codes, images, from, to, scale, out); break;
            case 3: score_panel(panel, 3, codes, images, from, to, scale, out); break;
            case 4: score_panel(panel, 4, codes, images, from, to, scale, out); break;
            case 6: score_panel(panel, 6, codes, images, from, to, scale, out); break;
            case 8: score_panel(panel, 8, codes, images, from, to, scale, out); break;
            default: score_panel(panel, parts, codes, images, from, to, scale, out); break;
            }
        }
    }
}
