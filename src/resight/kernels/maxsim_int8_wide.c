/* MaxSim over 8-bit tokens with 32-bit sums: for tokens or queries that could overflow maxsim_int8's 16 bits.
 * A dot product of d dimensions is at most 255 × 64 × d, so 32 bits suffice for d up to 131,000. */
#include "dot_bytes.h"

/* This kernel uses one register more than maxsim_int8 (the ones), so one row fewer fits. */
#define WIDE_BLOCK 5

INLINE void dot_rows(const int rows, const ByteQuery *query, int64_t p, const ByteTokens *tokens, int64_t first,
                     size_t d, __m256 best[2])
{
    const int8_t *panel = query->values + (size_t)p * d * LANES, *end = panel + LANES * d;
    const uint8_t *near = tokens->values + (size_t)first * d, *far = near + (rows > 3 ? 3 * d : 0);
    const __m256i *start = (const __m256i *)(query->start32 + p * LANES);
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i low[WIDE_BLOCK], high[WIDE_BLOCK];
    for (int i = 0; i < rows; i++) {
        low[i] = _mm256_loadu_si256(start);
        high[i] = _mm256_loadu_si256(start + 1);
    }
    for (; panel < end; panel += GROUP, near += 4, far += 4) {
        const __m256i query_low = _mm256_loadu_si256((const __m256i *)panel);
        const __m256i query_high = _mm256_loadu_si256((const __m256i *)(panel + 32));
        UNROLL for (int i = 0; i < rows; i++)
        {
            const __m256i word = spread_word(BYTE_ROW(i));
            low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(_mm256_maddubs_epi16(word, query_low), ones));
            high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(_mm256_maddubs_epi16(word, query_high), ones));
        }
    }
    const __m256 step_low = _mm256_loadu_ps(query->steps + p * LANES);
    const __m256 step_high = _mm256_loadu_ps(query->steps + p * LANES + 8);
    for (int i = 0; i < rows; i++) {
        const float *step = tokens->steps + first + i, *shift = tokens->shifts + first + i;
        best[0] = better(best[0], low[i], step_low, step, shift);
        best[1] = better(best[1], high[i], step_high, step, shift);
    }
}

static float score_image(const ByteQuery *query, const ByteTokens *tokens, int64_t first, int64_t count, size_t d)
{
    const int64_t blocks = (count + WIDE_BLOCK - 1) / WIDE_BLOCK;
    __m256 total = _mm256_setzero_ps();
    for (int64_t p = 0; p < query->panels; p++) {
        __m256 best[2] = {_mm256_set1_ps(-INFINITY), _mm256_set1_ps(-INFINITY)};
        int64_t token = first;
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t rows = share(count, blocks, b);
            switch (rows) {
            case 1: dot_rows(1, query, p, tokens, token, d, best); break;
            case 2: dot_rows(2, query, p, tokens, token, d, best); break;
            case 3: dot_rows(3, query, p, tokens, token, d, best); break;
            case 4: dot_rows(4, query, p, tokens, token, d, best); break;
            default: dot_rows(5, query, p, tokens, token, d, best); break;
            }
            token += rows;
        }
        total = _mm256_fmadd_ps(best[0], _mm256_loadu_ps(query->weights + p * LANES), total);
        total = _mm256_fmadd_ps(best[1], _mm256_loadu_ps(query->weights + p * LANES + 8), total);
    }
    return add_lanes(total);
}

void maxsim_int8_wide(const ByteQuery *query, const ByteTokens *tokens, size_t d, const Images *images, float *out)
{
    for (int64_t i = images->begin; i < images->end; i++) {
        const int64_t row = image_row(images, i), first = images->offsets[row];
        const int64_t count = images->offsets[row + 1] - first;
        out[i] = count ? score_image(query, tokens, first, count, d) : -INFINITY;
    }
}
