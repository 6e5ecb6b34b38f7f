/* MaxSim for a few query tokens over fp32 tokens: lane = dimension. With one or two query tokens, panels of 16 lanes
 * would be mostly empty, and memory limits the speed anyway: this kernel scans one vector per image. */
#include "avx2.h"

/* Four sums in flight hide the latency of an addition. */
static float dot(const float *a, const float *b, size_t d)
{
    __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    size_t k = 0;
    for (; k + 32 <= d; k += 32)
        UNROLL for (int u = 0; u < 4; u++)
            sum[u] = _mm256_fmadd_ps(_mm256_loadu_ps(a + k + 8 * u), _mm256_loadu_ps(b + k + 8 * u), sum[u]);
    for (; k + 8 <= d; k += 8)
        sum[0] = _mm256_fmadd_ps(_mm256_loadu_ps(a + k), _mm256_loadu_ps(b + k), sum[0]);
    float total = add_lanes(_mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3])));
    for (; k < d; k++)
        total = fmaf(a[k], b[k], total);
    return total;
}

/* The images of a shortlist lie far apart, and the processor cannot predict such short reads: prefetch a few ahead. */
static void fetch_later(const Images *images, int64_t number, const float *tokens, size_t d)
{
    if (images->rows == NULL || number + 8 >= images->end)
        return;
    const char *line = (const char *)(tokens + (size_t)images->offsets[images->rows[number + 8]] * d);
    for (size_t byte = 0; byte < d * sizeof(float) && byte < 4096; byte += 64)
        _mm_prefetch(line + byte, _MM_HINT_T0);
}

void scan_fp32(const float *query, const float *weights, int64_t count, const float *tokens, size_t d,
               const Images *images, float *out)
{
    for (int64_t i = images->begin; i < images->end; i++) {
        const int64_t row = image_row(images, i);
        fetch_later(images, i, tokens, d);
        float total = images->offsets[row] < images->offsets[row + 1] ? 0.0f : -INFINITY;
        for (int64_t q = 0; q < count; q++) {
            float best = -INFINITY;
            for (int64_t t = images->offsets[row]; t < images->offsets[row + 1]; t++) {
                const float value = dot(query + (size_t)q * d, tokens + (size_t)t * d, d);
                best = value > best ? value : best;
            }
            total += weights[q] * best;
        }
        out[i] = total;
    }
}
