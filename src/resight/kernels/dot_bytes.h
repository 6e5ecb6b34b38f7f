/* Shared by maxsim_int8.c and maxsim_int8_wide.c: addresses of rows, and the conversion of integer sums to values. */
#ifndef RESIGHT_DOT_BYTES_H
#define RESIGHT_DOT_BYTES_H

#include "avx2.h"

/* Bytes of a panel that four dimensions of 16 query tokens take. */
#define GROUP (4 * LANES)

/* Address of row i of a block: see dot_block.h for the two pointers. */
#define BYTE_ROW(i) (((i) < 3 ? near : far) + ((i) % 3 == 0 ? 0 : (i) % 3 == 1 ? d : 2 * d))

/* Each token has its own step, so integer sums of two tokens cannot be compared: scale first, then take the best. */
INLINE __m256 better(__m256 best, __m256i sum, __m256 lane_step, const float *step, const float *shift)
{
    const __m256 scale = _mm256_mul_ps(lane_step, _mm256_broadcast_ss(step));
    return _mm256_max_ps(best, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, _mm256_broadcast_ss(shift)));
}

#endif
