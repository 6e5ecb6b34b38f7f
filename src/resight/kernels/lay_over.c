/* A query laid over images at many scales and shifts: how well tokens agree and lie in the same places.
 *
 * For every scale and shift (x, y), and every query token, the best image token by likeness × near_x × near_y. Tokens of
 * one image on the same height share near_y: the kernel first takes the best of each height for every shift along x,
 * then the best over the heights for every shift along y. That is exact, since near_y is never negative, and on a grid
 * of c × r tokens it takes c × r × steps + r × steps² products instead of c × r × steps². Lanes hold query tokens. */
#include "dot_block.h"

#define HALF (LANES / 2)
#define SHIFTS 8 /* along x at a time: their best values stay in registers */
#define SHORTEST 1e-9f

typedef struct {
    float *centred; /* [tokens, d] */
    float *likeness; /* [tokens, 16] */
    float *across;  /* [heights, SHIFTS, 8] */
    float *totals;  /* [scales, steps, steps, 8] */
    int64_t *starts; /* [heights + 1]: the first token of each height */
} Scratch;

/* Half a panel of query tokens over one image at one scale. */
typedef struct {
    const float *likeness, *near_x, *near_y;
    const uint8_t *inside; /* [steps] */
    const int32_t *columns, *rows;
    const int64_t *starts;
    int64_t heights, steps;
    float *across, *totals;
} Meeting;

/* Rows minus the mean, of unit length. Returns 0 at a row whose length is not a finite number. */
static int centre_rows(const float *tokens, const float *mean, int64_t count, size_t d, float *out)
{
    for (int64_t t = 0; t < count; t++, tokens += d, out += d) {
        __m256 sum = _mm256_setzero_ps();
        size_t k = 0;
        for (; k + 8 <= d; k += 8) {
            const __m256 value = _mm256_sub_ps(_mm256_loadu_ps(tokens + k), _mm256_loadu_ps(mean + k));
            _mm256_storeu_ps(out + k, value);
            sum = _mm256_fmadd_ps(value, value, sum);
        }
        float square = add_lanes(sum);
        for (; k < d; k++) {
            out[k] = tokens[k] - mean[k];
            square += out[k] * out[k];
        }
        if (!isfinite(square))
            return 0;
        const float length = sqrtf(square), factor = 1 / (length > SHORTEST ? length : SHORTEST);
        for (k = 0; k < d; k++)
            out[k] *= factor;
    }
    return 1;
}

INLINE void like_rows(const int rows, const float *panel, const float *tokens, size_t d, float *out, Ahead ahead)
{
    __m256 low[BLOCK], high[BLOCK];
    dot_sums(rows, panel, tokens, d, low, high, ahead);
    for (int i = 0; i < rows; i++) {
        _mm256_storeu_ps(out + LANES * i, _mm256_max_ps(low[i], _mm256_setzero_ps()));
        _mm256_storeu_ps(out + LANES * i + HALF, _mm256_max_ps(high[i], _mm256_setzero_ps()));
    }
}

/* max(0, dot product) of every token with the 16 query tokens of a panel. */
static void compare_rows(const float *panel, const float *tokens, int64_t count, size_t d, float *out, Ahead ahead)
{
    const int64_t blocks = (count + BLOCK - 1) / BLOCK;
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t rows = share(count, blocks, b);
        switch (rows) {
        case 1: like_rows(1, panel, tokens, d, out, ahead); break;
        case 2: like_rows(2, panel, tokens, d, out, ahead); break;
        case 3: like_rows(3, panel, tokens, d, out, ahead); break;
        case 4: like_rows(4, panel, tokens, d, out, ahead); break;
        case 5: like_rows(5, panel, tokens, d, out, ahead); break;
        default: like_rows(6, panel, tokens, d, out, ahead); break;
        }
        finish_block(&ahead, (int64_t)(d / 4));
        tokens += (size_t)rows * d;
        out += rows * LANES;
    }
}

/* Shifts from, …, from + width - 1 along x, with all shifts along y. */
INLINE void meet_shifts(const int width, const Meeting *of, int64_t from)
{
    for (int64_t h = 0; h < of->heights; h++) {
        __m256 best[SHIFTS];
        UNROLL for (int k = 0; k < width; k++) best[k] = _mm256_setzero_ps();
        for (int64_t t = of->starts[h]; t < of->starts[h + 1]; t++) {
            const __m256 likeness = _mm256_loadu_ps(of->likeness + t * LANES);
            const float *near = of->near_x + ((int64_t)of->columns[t] * of->steps + from) * HALF;
            UNROLL for (int k = 0; k < width; k++) best[k] =
                _mm256_max_ps(best[k], _mm256_mul_ps(likeness, _mm256_loadu_ps(near + k * HALF)));
        }
        UNROLL for (int k = 0; k < width; k++) _mm256_storeu_ps(of->across + (h * SHIFTS + k) * HALF, best[k]);
    }
    for (int64_t y = 0; y < of->steps; y++) {
        if (!of->inside[y])
            continue;
        __m256 best[SHIFTS];
        UNROLL for (int k = 0; k < width; k++) best[k] = _mm256_setzero_ps();
        for (int64_t h = 0; h < of->heights; h++) {
            const int64_t row = of->rows[of->starts[h]];
            const __m256 near = _mm256_loadu_ps(of->near_y + (row * of->steps + y) * HALF);
            const float *across = of->across + h * SHIFTS * HALF;
            UNROLL for (int k = 0; k < width; k++) best[k] =
                _mm256_max_ps(best[k], _mm256_mul_ps(near, _mm256_loadu_ps(across + k * HALF)));
        }
        float *total = of->totals + (y * of->steps + from) * HALF;
        UNROLL for (int k = 0; k < width; k++)
            _mm256_storeu_ps(total + k * HALF, _mm256_add_ps(_mm256_loadu_ps(total + k * HALF), best[k]));
    }
}

static void meet(const Meeting *of)
{
    const int64_t blocks = (of->steps + SHIFTS - 1) / SHIFTS;
    for (int64_t b = 0, from = 0; b < blocks; from += share(of->steps, blocks, b++))
        switch (share(of->steps, blocks, b)) {
        case 1: meet_shifts(1, of, from); break;
        case 2: meet_shifts(2, of, from); break;
        case 3: meet_shifts(3, of, from); break;
        case 4: meet_shifts(4, of, from); break;
        case 5: meet_shifts(5, of, from); break;
        case 6: meet_shifts(6, of, from); break;
        case 7: meet_shifts(7, of, from); break;
        default: meet_shifts(8, of, from); break;
        }
}

static float score_image(const PlacedQuery *query, const PlacedTokens *tokens, int64_t from, int64_t count, size_t d,
                         const Scratch *scratch, Ahead ahead)
{
    const int64_t shifts = query->steps * query->steps, halves = 2 * query->panels;
    if (!centre_rows(tokens->values + (size_t)from * d, tokens->mean, count, d, scratch->centred))
        return NAN;
    int64_t heights = 0;
    for (int64_t t = 0; t < count; t++)
        if (t == 0 || tokens->rows[from + t] != tokens->rows[from + t - 1])
            scratch->starts[heights++] = t;
    scratch->starts[heights] = count;
    memset(scratch->totals, 0, (size_t)(query->scales * shifts * HALF) * sizeof(float));
    for (int64_t half = 0; half < halves; half++) {
        if (half % 2 == 0)
            compare_rows(query->values + (size_t)(half / 2) * d * LANES, scratch->centred, count, d, scratch->likeness, ahead);
        for (int64_t scale = 0; scale < query->scales; scale++) {
            const int64_t table = half * query->scales + scale;
            const Meeting meeting = {
                .likeness = scratch->likeness + half % 2 * HALF,
                .near_x = query->near_x + table * query->columns * query->steps * HALF,
                .near_y = query->near_y + table * query->rows * query->steps * HALF,
                .inside = query->inside + table * query->steps,
                .columns = tokens->columns + from,
                .rows = tokens->rows + from,
                .starts = scratch->starts,
                .heights = heights,
                .steps = query->steps,
                .across = scratch->across,
                .totals = scratch->totals + scale * shifts * HALF,
            };
            meet(&meeting);
        }
    }
    float best = 0;
    for (int64_t s = 0; s < query->scales * shifts; s++) {
        const float score = add_lanes(_mm256_loadu_ps(scratch->totals + s * HALF)) * query->weights[s];
        best = score > best ? score : best;
    }
    return best;
}

int lay_over(const PlacedQuery *query, const PlacedTokens *tokens, size_t d, const Images *images, float *out)
{
    int64_t most = 1;
    for (int64_t i = images->begin; i < images->end; i++) {
        const int64_t row = image_row(images, i), count = images->offsets[row + 1] - images->offsets[row];
        most = count > most ? count : most;
    }
    const Scratch scratch = {
        .centred = malloc((size_t)most * d * sizeof(float)),
        .likeness = malloc((size_t)most * LANES * sizeof(float)),
        .across = malloc((size_t)most * SHIFTS * HALF * sizeof(float)),
        .totals = malloc((size_t)(query->scales * query->steps * query->steps * HALF) * sizeof(float)),
        .starts = malloc((size_t)(most + 1) * sizeof(int64_t)),
    };
    const int failed = !scratch.centred || !scratch.likeness || !scratch.across || !scratch.totals || !scratch.starts;
    for (int64_t i = images->begin; i < images->end && !failed; i++) {
        const int64_t row = image_row(images, i), from = images->offsets[row], count = images->offsets[row + 1] - from;
        const Ahead ahead = look_ahead(images, i, tokens->values, d * sizeof(float), query->panels);
        out[i] = count ? score_image(query, tokens, from, count, d, &scratch, ahead) : 0;
    }
    free(scratch.centred);
    free(scratch.likeness);
    free(scratch.across);
    free(scratch.totals);
    free(scratch.starts);
    return failed;
}
