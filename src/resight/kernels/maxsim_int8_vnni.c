/* MaxSim over 8-bit tokens with AVX-512 VNNI: one instruction multiplies four bytes and adds them up in 32 bits, so that
 * nothing overflows. Two panels share the rows that they read. Scores are those of maxsim_int8_wide, bit for bit. */
#define RESIGHT_VNNI
#include "dot_bytes.h"

#define ROWS 8

INLINE __m512 better_wide(__m512 best, __m512i sum, __m512 lane_step, float step, float shift)
{
    const __m512 scale = _mm512_mul_ps(lane_step, _mm512_set1_ps(step));
    return _mm512_max_ps(best, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, _mm512_set1_ps(shift)));
}

/* `panels` is 1 or 2: a constant in each call, as is `rows`, so that the sums stay in registers. */
INLINE void dot_rows(const int rows, const int panels, const ByteQuery *query, int64_t p, const ByteTokens *tokens,
                     int64_t first, size_t d, __m512 best[2], Ahead ahead)
{
    const int8_t *panel = query->values + (size_t)p * d * LANES, *end = panel + LANES * d;
    const int8_t *last = panel + LANES * (d & ~(size_t)15);
    const uint8_t *three[3];
    __m512i sums[2][ROWS];
    UNROLL for (int i = 0; i < 3; i++) three[i] = tokens->values + (size_t)(first + (3 * i < rows ? 3 * i : 0)) * d;
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < panels; j++) sums[j][i] = _mm512_loadu_si512(query->start32 + (p + j) * LANES);
    while (panel < end) {
        const int8_t *until = panel < last ? panel + 4 * GROUP : end;
        if (panel < last) {
            fetch_step(&ahead, ahead.at);
            ahead.at += ahead.stride;
        }
        for (; panel < until; panel += GROUP) {
            const __m512i one = _mm512_loadu_si512(panel);
            const __m512i two = panels > 1 ? _mm512_loadu_si512(panel + LANES * d) : one;
            UNROLL for (int i = 0; i < rows; i++)
            {
                int32_t word;
                memcpy(&word, three[i / 3] + (i % 3 == 0 ? 0 : i % 3 == 1 ? d : 2 * d), sizeof word);
                const __m512i bytes = _mm512_set1_epi32(word);
                sums[0][i] = _mm512_dpbusd_epi32(sums[0][i], bytes, one);
                if (panels > 1)
                    sums[1][i] = _mm512_dpbusd_epi32(sums[1][i], bytes, two);
            }
            UNROLL for (int i = 0; i < 3; i++) three[i] += 4;
        }
    }
    UNROLL for (int j = 0; j < panels; j++)
    {
        const __m512 steps = _mm512_loadu_ps(query->steps + (p + j) * LANES);
        UNROLL for (int i = 0; i < rows; i++)
            best[j] = better_wide(best[j], sums[j][i], steps, tokens->steps[first + i], tokens->shifts[first + i]);
    }
}

INLINE void dot_block(int64_t rows, const int panels, const ByteQuery *query, int64_t p, const ByteTokens *tokens,
                      int64_t first, size_t d, __m512 best[2], Ahead ahead)
{
    switch (rows) {
    case 1: dot_rows(1, panels, query, p, tokens, first, d, best, ahead); break;
    case 2: dot_rows(2, panels, query, p, tokens, first, d, best, ahead); break;
    case 3: dot_rows(3, panels, query, p, tokens, first, d, best, ahead); break;
    case 4: dot_rows(4, panels, query, p, tokens, first, d, best, ahead); break;
    case 5: dot_rows(5, panels, query, p, tokens, first, d, best, ahead); break;
    case 6: dot_rows(6, panels, query, p, tokens, first, d, best, ahead); break;
    case 7: dot_rows(7, panels, query, p, tokens, first, d, best, ahead); break;
    default: dot_rows(8, panels, query, p, tokens, first, d, best, ahead); break;
    }
}

/* In the order of maxsim_int8_wide: sums of floats depend on it. */
INLINE __m256 add_weighted(__m256 total, __m512 best, const float *weights)
{
    total = _mm256_fmadd_ps(_mm512_castps512_ps256(best), _mm256_loadu_ps(weights), total);
    const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(best), 1));
    return _mm256_fmadd_ps(high, _mm256_loadu_ps(weights + 8), total);
}

static float score_image(const ByteQuery *query, const ByteTokens *tokens, int64_t first, int64_t count, size_t d, Ahead ahead)
{
    const int64_t blocks = (count + ROWS - 1) / ROWS;
    __m256 total = _mm256_setzero_ps();
    for (int64_t p = 0; p < query->panels; p += 2) {
        const int pair = p + 1 < query->panels;
        __m512 best[2] = {_mm512_set1_ps(-INFINITY), _mm512_set1_ps(-INFINITY)};
        int64_t token = first;
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t rows = share(count, blocks, b);
            if (pair)
                dot_block(rows, 2, query, p, tokens, token, d, best, ahead);
            else
                dot_block(rows, 1, query, p, tokens, token, d, best, ahead);
            finish_block(&ahead, (int64_t)(d / 16));
            token += rows;
        }
        total = add_weighted(total, best[0], query->weights + p * LANES);
        if (pair)
            total = add_weighted(total, best[1], query->weights + (p + 1) * LANES);
    }
    return add_lanes(total);
}

void maxsim_int8_vnni(const ByteQuery *query, const ByteTokens *tokens, size_t d, const Images *images, float *out)
{
    for (int64_t i = images->begin; i < images->end; i++) {
        const int64_t row = image_row(images, i), first = images->offsets[row];
        const int64_t count = images->offsets[row + 1] - first;
        const Ahead ahead = look_ahead(images, i, tokens->values, d, (query->panels + 1) / 2);
        out[i] = count ? score_image(query, tokens, first, count, d, ahead) : -INFINITY;
    }
}
