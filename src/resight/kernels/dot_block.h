/* The fp32 micro-kernel that maxsim_fp32.c, maxsim_fp16.c and lay_over.c share: up to 6 tokens against one panel of 16 lanes. */
#ifndef RESIGHT_DOT_BLOCK_H
#define RESIGHT_DOT_BLOCK_H

#include "avx2.h"

/* One dimension: broadcasts a row's value to all lanes and multiplies it with the panel's two registers.
 * Two pointers reach the rows, because an address can hold a factor of 1 or 2 but not of 3 to 5. */
#define DOT_STEP(u)                                                                                                    \
    do {                                                                                                               \
        const __m256 query_low = _mm256_loadu_ps(panel + LANES * (u));                                                 \
        const __m256 query_high = _mm256_loadu_ps(panel + LANES * (u) + 8);                                            \
        UNROLL for (int i = 0; i < rows; i++)                                                                          \
        {                                                                                                              \
            const float *from = (i < 3 ? near : far) + (i % 3 == 0 ? 0 : i % 3 == 1 ? d : 2 * d);                      \
            const __m256 value = _mm256_broadcast_ss(from + (u));                                                      \
            low[i] = _mm256_fmadd_ps(value, query_low, low[i]);                                                        \
            high[i] = _mm256_fmadd_ps(value, query_high, high[i]);                                                     \
        }                                                                                                              \
    } while (0)

INLINE void dot_sums(const int rows, const float *panel, const float *tokens, size_t d, __m256 low[BLOCK],
                     __m256 high[BLOCK], Ahead ahead)
{
    for (int i = 0; i < rows; i++)
        low[i] = high[i] = _mm256_setzero_ps();
    const float *near = tokens, *far = tokens + (rows > 3 ? 3 * d : 0);
    const float *last = panel + LANES * (d & ~(size_t)3), *end = panel + LANES * d;
    for (; panel < last; panel += 4 * LANES, near += 4, far += 4) {
        fetch_step(&ahead, ahead.at);
        ahead.at += ahead.stride;
        DOT_STEP(0);
        DOT_STEP(1);
        DOT_STEP(2);
        DOT_STEP(3);
    }
    for (; panel < end; panel += LANES, near += 1, far += 1)
        DOT_STEP(0);
}

INLINE void dot_rows(const int rows, const float *panel, const float *tokens, size_t d, __m256 best[2], Ahead ahead)
{
    __m256 low[BLOCK], high[BLOCK];
    dot_sums(rows, panel, tokens, d, low, high, ahead);
    for (int i = 0; i < rows; i++) {
        best[0] = _mm256_max_ps(best[0], low[i]);
        best[1] = _mm256_max_ps(best[1], high[i]);
    }
}

/* The row count is a constant in each call, so that the accumulators stay in registers. */
INLINE void dot_block(int64_t rows, const float *panel, const float *tokens, size_t d, __m256 best[2], Ahead ahead)
{
    switch (rows) {
    case 1: dot_rows(1, panel, tokens, d, best, ahead); break;
    case 2: dot_rows(2, panel, tokens, d, best, ahead); break;
    case 3: dot_rows(3, panel, tokens, d, best, ahead); break;
    case 4: dot_rows(4, panel, tokens, d, best, ahead); break;
    case 5: dot_rows(5, panel, tokens, d, best, ahead); break;
    default: dot_rows(6, panel, tokens, d, best, ahead); break;
    }
}

#endif
