/* 16 lanes of byte_blocks.h with AVX-512 VNNI. One instruction multiplies four bytes without sign by four with, and adds
 * them up in 32 bits. The query's bytes have 128 added, which each row's start takes away again. Sums are those of
 * byte_lanes_avx2.h, bit for bit. */
#define RESIGHT_VNNI
#include "avx2.h"

#define ROWS 12
#define FLIP 0x80

typedef __m512i Sums;
typedef __m512 Floats;

static int32_t start_sum(const int8_t *row, size_t d)
{
    int32_t sum = 0;
    for (size_t k = 0; k < d; k++)
        sum += row[k];
    return -128 * sum;
}

INLINE __m512i spread_row(const int8_t *row)
{
    int32_t word;
    memcpy(&word, row, sizeof word);
    return _mm512_set1_epi32(word);
}

#define START_SUM(row, d) start_sum(row, d)
#define SPREAD(value) _mm512_set1_epi32(value)
#define FILL(value) _mm512_set1_ps(value)
#define ADD_WORD(sum, panel, row) ((sum) = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(panel), spread_row(row)))
#define SCALE(sum, by) _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(by))
#define TRACK(found, value, row)                                                                                       \
    do {                                                                                                               \
        const __m512 seen = (value);                                                                                   \
        const __mmask16 nearer = _mm512_cmp_ps_mask(seen, (found).best, _CMP_GT_OQ);                                   \
        (found).second = _mm512_max_ps((found).second, _mm512_min_ps((found).best, seen));                             \
        (found).best = _mm512_max_ps((found).best, seen);                                                              \
        (found).number = _mm512_mask_mov_epi32((found).number, nearer, _mm512_set1_epi32(row));                        \
    } while (0)
#define LOAD_FLOATS(from) _mm512_loadu_ps(from)
#define SCALE_AND_SUBTRACT(value, by, less) _mm512_fmsub_ps(value, by, _mm512_set1_ps(less))
#define REACHES(value, least) ((unsigned)_mm512_cmp_ps_mask(value, _mm512_loadu_ps(least), _CMP_GE_OQ))
#define STORE_FLOATS(to, from) _mm512_storeu_ps(to, from)
#define STORE_SUMS(to, from) _mm512_storeu_si512(to, from)
