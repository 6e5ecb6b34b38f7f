/* MaxSim over fp32 tokens, read straight from the caller's array or memory map. */
#include "dot_block.h"

static float score_image(const FloatQuery *query, const float *tokens, int64_t count, size_t d, Ahead ahead)
{
    const int64_t blocks = (count + BLOCK - 1) / BLOCK;
    __m256 total = _mm256_setzero_ps();
    for (int64_t p = 0; p < query->panels; p++) {
        const float *panel = query->values + (size_t)p * d * LANES, *row = tokens;
        __m256 best[2] = {_mm256_set1_ps(-INFINITY), _mm256_set1_ps(-INFINITY)};
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t rows = share(count, blocks, b);
            dot_block(rows, panel, row, d, best, ahead);
            finish_block(&ahead, (int64_t)(d / 4));
            row += (size_t)rows * d;
        }
        total = _mm256_fmadd_ps(best[0], _mm256_loadu_ps(query->weights + p * LANES), total);
        total = _mm256_fmadd_ps(best[1], _mm256_loadu_ps(query->weights + p * LANES + 8), total);
    }
    return add_lanes(total);
}

void maxsim_fp32(const FloatQuery *query, const float *tokens, size_t d, const Images *images, float *out)
{
    for (int64_t i = images->begin; i < images->end; i++) {
        const int64_t row = image_row(images, i);
        const int64_t count = images->offsets[row + 1] - images->offsets[row];
        const Ahead ahead = look_ahead(images, i, tokens, d * sizeof(float), query->panels);
        out[i] = count ? score_image(query, tokens + (size_t)images->offsets[row] * d, count, d, ahead) : -INFINITY;
    }
}
