/* How many matches of key points agree with each of many similarities, at several radii. */
#include "avx2.h"

typedef struct {
    __m256d real, imaginary, shift_x, shift_y, growth, turn;
} Similarity;

INLINE __m256d size_of(__m256d value)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), value);
}

/* Squared distances of four matches' ends from where the similarity maps them. */
INLINE __m256d square_distances(const Matches *matches, const Similarity *model, int64_t i)
{
    const __m256d x = _mm256_loadu_pd(matches->query_x + i), y = _mm256_loadu_pd(matches->query_y + i);
    const __m256d mapped_x = _mm256_fmadd_pd(model->real, x, _mm256_fnmadd_pd(model->imaginary, y, model->shift_x));
    const __m256d mapped_y = _mm256_fmadd_pd(model->imaginary, x, _mm256_fmadd_pd(model->real, y, model->shift_y));
    const __m256d off_x = _mm256_sub_pd(mapped_x, _mm256_loadu_pd(matches->image_x + i));
    const __m256d off_y = _mm256_sub_pd(mapped_y, _mm256_loadu_pd(matches->image_y + i));
    return _mm256_fmadd_pd(off_x, off_x, _mm256_mul_pd(off_y, off_y));
}

/* All bits of a lane are set where size or angle disagree; what is unknown (NaN) agrees. */
INLINE __m256d find_apart(const Matches *matches, const Similarity *model, int64_t i)
{
    const __m256d growth = size_of(_mm256_sub_pd(_mm256_loadu_pd(matches->growth + i), model->growth));
    const __m256d turn = _mm256_sub_pd(_mm256_loadu_pd(matches->turn + i), model->turn);
    const __m256d rounds = _mm256_round_pd(_mm256_mul_pd(turn, _mm256_set1_pd(1 / 360.0)),
                                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256d wrapped = size_of(_mm256_fnmadd_pd(rounds, _mm256_set1_pd(360), turn));
    return _mm256_or_pd(_mm256_cmp_pd(growth, _mm256_set1_pd(matches->most_growth), _CMP_GT_OQ),
                        _mm256_cmp_pd(wrapped, _mm256_set1_pd(matches->most_turn), _CMP_GT_OQ));
}

void count_support(const Matches *matches, const double *similarities, int64_t count, const double *radii, int64_t levels,
                   int32_t *counts)
{
    for (int64_t h = 0; h < count; h++) {
        const double *values = similarities + 6 * h;
        const Similarity model = {_mm256_set1_pd(values[0]), _mm256_set1_pd(values[1]), _mm256_set1_pd(values[2]),
                                  _mm256_set1_pd(values[3]), _mm256_set1_pd(values[4]), _mm256_set1_pd(values[5])};
        int32_t *inside = counts + h * levels;
        memset(inside, 0, (size_t)levels * sizeof *inside);
        for (int64_t i = 0; i < matches->count; i += 4) {
            const __m256d squares = square_distances(matches, &model, i), apart = find_apart(matches, &model, i);
            for (int64_t level = 0; level < levels; level++) {
                const __m256d near = _mm256_cmp_pd(squares, _mm256_set1_pd(radii[level] * radii[level]), _CMP_LT_OQ);
                inside[level] += (int32_t)_mm_popcnt_u32((unsigned)_mm256_movemask_pd(_mm256_andnot_pd(apart, near)));
            }
        }
    }
}
