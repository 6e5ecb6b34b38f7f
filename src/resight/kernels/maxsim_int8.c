/* MaxSim over 8-bit tokens with 16-bit sums: the fast kernel.
 *
 * maddubs multiplies unsigned database bytes with signed query bytes and adds neighbours: 255 × 64 × 2 = 32,640 fits.
 * Sums then run modulo 2^16, and only the final sum must fit: an overflow on the way cancels out.
 * A lane adds every other pair of dimensions, so by Cauchy-Schwarz its final sum is at most the product of the lengths
 * of those halves of token and query. The caller has checked that this product is below 2^15. */
#include "dot_bytes.h"

/* A sixth row would need all 16 registers, and the compiler would then keep some sums in memory. */
#define ROWS 5

#define BYTE_STEP(u)                                                                                                   \
    do {                                                                                                               \
        const __m256i query_low = _mm256_loadu_si256((const __m256i *)(panel + GROUP * (u)));                          \
        const __m256i query_high = _mm256_loadu_si256((const __m256i *)(panel + GROUP * (u) + 32));                    \
        UNROLL for (int i = 0; i < rows; i++)                                                                          \
        {                                                                                                              \
            const __m256i word = keep_order(spread_word(BYTE_ROW(i) + 4 * (u)));                                       \
            low[i] = _mm256_add_epi16(low[i], _mm256_maddubs_epi16(word, query_low));                                  \
            high[i] = _mm256_add_epi16(high[i], _mm256_maddubs_epi16(word, query_high));                               \
            keep_pair(&low[i], &high[i]);                                                                              \
        }                                                                                                              \
    } while (0)

INLINE void dot_rows(const int rows, const ByteQuery *query, int64_t p, const ByteTokens *tokens, int64_t first,
                     size_t d, __m256 best[2], Ahead ahead)
{
    const int8_t *panel = query->values + (size_t)p * d * LANES;
    const int8_t *end = panel + LANES * d, *last = panel + LANES * (d & ~(size_t)15);
    const uint8_t *near = tokens->values + (size_t)first * d, *far = near + (rows > 3 ? 3 * d : 0);
    const __m256i *start = (const __m256i *)(query->start16 + p * 2 * LANES);
    __m256i low[ROWS], high[ROWS];
    for (int i = 0; i < rows; i++) {
        low[i] = _mm256_loadu_si256(start);
        high[i] = _mm256_loadu_si256(start + 1);
    }
    for (; panel < last; panel += 4 * GROUP, near += 16, far += 16) {
        fetch_step(&ahead, ahead.at);
        ahead.at += ahead.stride;
        BYTE_STEP(0);
        BYTE_STEP(1);
        BYTE_STEP(2);
        BYTE_STEP(3);
    }
    for (; panel < end; panel += GROUP, near += 4, far += 4)
        BYTE_STEP(0);
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256 step_low = _mm256_loadu_ps(query->steps + p * LANES);
    const __m256 step_high = _mm256_loadu_ps(query->steps + p * LANES + 8);
    for (int i = 0; i < rows; i++) {
        const float *step = tokens->steps + first + i, *shift = tokens->shifts + first + i;
        best[0] = better(best[0], _mm256_madd_epi16(low[i], ones), step_low, step, shift);
        best[1] = better(best[1], _mm256_madd_epi16(high[i], ones), step_high, step, shift);
    }
}

static float score_image(const ByteQuery *query, const ByteTokens *tokens, int64_t first, int64_t count, size_t d,
                         Ahead ahead)
{
    const int64_t blocks = (count + ROWS - 1) / ROWS;
    __m256 total = _mm256_setzero_ps();
    for (int64_t p = 0; p < query->panels; p++) {
        __m256 best[2] = {_mm256_set1_ps(-INFINITY), _mm256_set1_ps(-INFINITY)};
        int64_t token = first;
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t rows = share(count, blocks, b);
            switch (rows) {
            case 1: dot_rows(1, query, p, tokens, token, d, best, ahead); break;
            case 2: dot_rows(2, query, p, tokens, token, d, best, ahead); break;
            case 3: dot_rows(3, query, p, tokens, token, d, best, ahead); break;
            case 4: dot_rows(4, query, p, tokens, token, d, best, ahead); break;
            default: dot_rows(5, query, p, tokens, token, d, best, ahead); break;
            }
            finish_block(&ahead, (int64_t)(d / 16));
            token += rows;
        }
        total = _mm256_fmadd_ps(best[0], _mm256_loadu_ps(query->weights + p * LANES), total);
        total = _mm256_fmadd_ps(best[1], _mm256_loadu_ps(query->weights + p * LANES + 8), total);
    }
    return add_lanes(total);
}

void maxsim_int8(const ByteQuery *query, const ByteTokens *tokens, size_t d, const Images *images, float *out)
{
    for (int64_t i = images->begin; i < images->end; i++) {
        const int64_t row = image_row(images, i), first = images->offsets[row];
        const int64_t count = images->offsets[row + 1] - first;
        const Ahead ahead = look_ahead(images, i, tokens->values, d, query->panels);
        out[i] = count ? score_image(query, tokens, first, count, d, ahead) : -INFINITY;
    }
}
