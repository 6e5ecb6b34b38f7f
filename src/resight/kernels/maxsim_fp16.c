/* MaxSim over fp16 tokens: the kernel widens six rows at a time into a small buffer and multiplies it with every panel
 * of the query while it is in the cache. The sums equal those of maxsim_fp32 over the widened tokens bit for bit. */
#include "dot_block.h"

static void widen(const uint16_t *from, size_t count, float *into)
{
    size_t k = 0;
    for (; k + 8 <= count; k += 8)
        _mm256_storeu_ps(into + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + k))));
    if (k < count) {
        uint16_t rest[8] = {0};
        float wide[8];
        memcpy(rest, from + k, (count - k) * sizeof *rest);
        _mm256_storeu_ps(wide, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)rest)));
        memcpy(into + k, wide, (count - k) * sizeof *wide);
    }
}

static float score_image(const FloatQuery *query, const uint16_t *tokens, int64_t count, size_t d, float *buffer,
                         __m256 *best, Ahead ahead)
{
    const int64_t blocks = (count + BLOCK - 1) / BLOCK;
    for (int64_t p = 0; p < 2 * query->panels; p++)
        best[p] = _mm256_set1_ps(-INFINITY);
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t rows = share(count, blocks, b);
        widen(tokens, (size_t)rows * d, buffer);
        for (int64_t p = 0; p < query->panels; p++) {
            dot_block(rows, query->values + (size_t)p * d * LANES, buffer, d, best + 2 * p, ahead);
            finish_block(&ahead, (int64_t)(d / 4));
        }
        tokens += (size_t)rows * d;
    }
    __m256 total = _mm256_setzero_ps();
    for (int64_t p = 0; p < 2 * query->panels; p++)
        total = _mm256_fmadd_ps(best[p], _mm256_loadu_ps(query->weights + 8 * p), total);
    return add_lanes(total);
}

int maxsim_fp16(const FloatQuery *query, const uint16_t *tokens, size_t d, const Images *images, float *out)
{
    float *buffer = malloc(BLOCK * d * sizeof(float));
    __m256 *best = _mm_malloc((size_t)query->panels * 2 * sizeof(__m256), 32);
    if (buffer && best)
        for (int64_t i = images->begin; i < images->end; i++) {
            const int64_t row = image_row(images, i);
            const int64_t count = images->offsets[row + 1] - images->offsets[row];
            const uint16_t *first = tokens + (size_t)images->offsets[row] * d;
            const Ahead ahead = look_ahead(images, i, tokens, d * sizeof(uint16_t), query->panels);
            out[i] = count ? score_image(query, first, count, d, buffer, best, ahead) : -INFINITY;
        }
    const int failed = !(buffer && best);
    free(buffer);
    _mm_free(best);
    return failed;
}
