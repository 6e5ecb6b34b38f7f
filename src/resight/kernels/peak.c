/* The peak rates of one core: multiply-adds on registers alone, and bytes read without any arithmetic. Benchmarks
 * compare the kernels with these two limits. */
#include "avx2.h"

#define SUMS 12 /* in flight: more than the latency times the units of any processor with AVX2 */

double peak_fp32(int64_t rounds)
{
    __m256 sum[SUMS];
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = _mm256_set1_ps((float)i);
    const __m256 a = _mm256_set1_ps(1e-9f), b = _mm256_set1_ps(0.5f);
    for (int64_t r = 0; r < rounds; r++)
        UNROLL for (int i = 0; i < SUMS; i++) sum[i] = _mm256_fmadd_ps(a, b, sum[i]);
    UNROLL for (int i = 1; i < SUMS; i++) sum[0] = _mm256_add_ps(sum[0], sum[i]);
    return isnan(add_lanes(sum[0])) ? 0.0 : (double)rounds * SUMS * 8; /* used, so that the compiler keeps it */
}

double peak_int8(int64_t rounds)
{
    __m256i sum[SUMS];
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = _mm256_set1_epi16((short)i);
    __m256i a = _mm256_set1_epi8(3);
    const __m256i b = _mm256_set1_epi8(5);
    for (int64_t r = 0; r < rounds; r++)
        UNROLL for (int i = 0; i < SUMS; i++)
        {
            a = keep_order(a); /* otherwise the compiler would compute the product once */
            sum[i] = keep_order(_mm256_add_epi16(sum[i], _mm256_maddubs_epi16(a, b)));
        }
    UNROLL for (int i = 1; i < SUMS; i++) sum[0] = _mm256_xor_si256(sum[0], sum[i]);
    volatile int used = _mm256_extract_epi16(sum[0], 0); /* so that the compiler keeps it */
    (void)used;
    return (double)rounds * SUMS * 32;
}

/* Reads four streams a quarter apart, which is faster than one stream. */
double peak_read(const uint8_t *bytes, size_t count)
{
    const size_t stream = count / 4 / 64 * 64;
    __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t k = 0; k < stream; k += 64)
        UNROLL for (int i = 0; i < 4; i++)
        {
            const __m256i *line = (const __m256i *)(bytes + (size_t)i * stream + k);
            sum[i] = _mm256_add_epi64(sum[i], _mm256_add_epi64(_mm256_loadu_si256(line), _mm256_loadu_si256(line + 1)));
        }
    UNROLL for (int i = 1; i < 4; i++) sum[0] = _mm256_xor_si256(sum[0], sum[i]);
    volatile int used = _mm256_extract_epi16(sum[0], 0); /* so that the compiler keeps it */
    (void)used;
    return 4.0 * (double)stream;
}
