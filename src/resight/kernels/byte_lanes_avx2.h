/* 16 lanes of byte_blocks.h with AVX2. maddubs multiplies a byte without sign by one with, and adds neighbours:
 * 2 × 128 × 127 fits into 16 bits. The sign moves from the row's byte to the query's. */
#include "avx2.h"

#define ROWS 4
#define FLIP 0

typedef struct {
    __m256i low, high;
} Sums;
typedef struct {
    __m256 low, high;
} Floats;

#define START_SUM(row, d) ((void)(row), (void)(d), 0)

INLINE Sums spread(int32_t value)
{
    const Sums all = {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
    return all;
}

INLINE Floats fill(float value)
{
    const Floats all = {_mm256_set1_ps(value), _mm256_set1_ps(value)};
    return all;
}

INLINE __m256i add_word(__m256i sum, const uint8_t *panel, __m256i size, __m256i word)
{
    const __m256i signed_query = _mm256_sign_epi8(_mm256_loadu_si256((const __m256i *)panel), word);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(size, signed_query), _mm256_set1_epi16(1)));
}

INLINE Sums add_words(Sums sum, const uint8_t *panel, const int8_t *row)
{
    const __m256i word = spread_word((const uint8_t *)row), size = _mm256_abs_epi8(word);
    const Sums added = {add_word(sum.low, panel, size, word), add_word(sum.high, panel + 32, size, word)};
    return added;
}

INLINE Floats scale(Sums sum, float by)
{
    const Floats scaled = {_mm256_mul_ps(_mm256_cvtepi32_ps(sum.low), _mm256_set1_ps(by)),
                           _mm256_mul_ps(_mm256_cvtepi32_ps(sum.high), _mm256_set1_ps(by))};
    return scaled;
}

INLINE void track(__m256 *best, __m256 *second, __m256i *number, __m256 value, int32_t row)
{
    const __m256 nearer = _mm256_cmp_ps(value, *best, _CMP_GT_OQ);
    *second = _mm256_max_ps(*second, _mm256_min_ps(*best, value));
    *best = _mm256_max_ps(*best, value);
    *number = _mm256_blendv_epi8(*number, _mm256_set1_epi32(row), _mm256_castps_si256(nearer));
}

INLINE Floats load_floats(const float *from)
{
    const Floats loaded = {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
    return loaded;
}

INLINE Floats scale_and_subtract(Floats value, Floats by, float less)
{
    const Floats left = {_mm256_fmsub_ps(value.low, by.low, _mm256_set1_ps(less)),
                         _mm256_fmsub_ps(value.high, by.high, _mm256_set1_ps(less))};
    return left;
}

INLINE unsigned reaches(Floats value, const float *least)
{
    const int low = _mm256_movemask_ps(_mm256_cmp_ps(value.low, _mm256_loadu_ps(least), _CMP_GE_OQ));
    const int high = _mm256_movemask_ps(_mm256_cmp_ps(value.high, _mm256_loadu_ps(least + 8), _CMP_GE_OQ));
    return (unsigned)(low | high << 8);
}

#define SPREAD(value) spread(value)
#define LOAD_FLOATS(from) load_floats(from)
#define SCALE_AND_SUBTRACT(value, by, less) scale_and_subtract(value, by, less)
#define REACHES(value, least) reaches(value, least)
#define FILL(value) fill(value)
#define ADD_WORD(sum, panel, row) ((sum) = add_words(sum, panel, row))
#define SCALE(sum, by) scale(sum, by)
#define TRACK(found, value, row)                                                                                       \
    do {                                                                                                               \
        const Floats seen = (value);                                                                                   \
        track(&(found).best.low, &(found).second.low, &(found).number.low, seen.low, row);                             \
        track(&(found).best.high, &(found).second.high, &(found).number.high, seen.high, row);                         \
    } while (0)
#define STORE_FLOATS(to, from)                                                                                         \
    do {                                                                                                               \
        const Floats values_ = (from);                                                                                 \
        _mm256_storeu_ps(to, values_.low), _mm256_storeu_ps((to) + 8, values_.high);                                   \
    } while (0)
#define STORE_SUMS(to, from)                                                                                           \
    (_mm256_storeu_si256((__m256i *)(to), (from).low), _mm256_storeu_si256((__m256i *)((to) + 8), (from).high))
