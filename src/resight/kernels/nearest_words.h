/* The nearest centres of rows, proven exact: the code that nearest_words.c and nearest_words_vnni.c share.
 *
 * Bytes give x · c - |c|² / 2 up to a bound: with x = x' + e and c = c' + f, where x' and c' are what the bytes stand
 * for, |x · c - x' · c'| <= |e| |c| + |x'| |f|. A centre that lies within two bounds of the best so far is kept, and
 * only those that are left at the end are compared in float32. */
#include "byte_blocks.h"

#define MOST_KEPT 256
#define ROUNDING 1e-5f

/* What is known of one row of a panel. */
typedef struct {
    float best[MOST_WORDS]; /* the largest values so far, falling */
    float twice_bound, least;
    int filled, kept, overflown;
    int32_t numbers[MOST_KEPT];
    float values[MOST_KEPT];
} Finder;

static float dot(const float *a, const float *b, size_t d)
{
    __m256 sum = _mm256_setzero_ps();
    size_t k = 0;
    for (; k + 8 <= d; k += 8)
        sum = _mm256_fmadd_ps(_mm256_loadu_ps(a + k), _mm256_loadu_ps(b + k), sum);
    float total = add_lanes(sum);
    for (; k < d; k++)
        total += a[k] * b[k];
    return total;
}

/* Puts the bytes of a row into its lane. Returns the value of one unit, and sets the finder's bound. */
static float fill_lane(const Words *words, const float *row, uint8_t *panel, Finder *finder)
{
    float largest = 0, squares = 0, lost = 0;
    for (size_t k = 0; k < words->d; k++)
        largest = fmaxf(largest, fabsf(row[k]));
    const float step = largest / 127, inverse = largest > 0 ? 127 / largest : 0;
    for (size_t k = 0; k < words->d; k++) {
        const float code = rintf(row[k] * inverse), off = row[k] - code * step;
        panel[k / WORD * GROUP_BYTES + k % WORD] = (uint8_t)((int8_t)code ^ FLIP);
        squares += row[k] * row[k];
        lost += off * off;
    }
    const float length = sqrtf(squares), slack = sqrtf(lost);
    const float bound = slack * words->longest + (length + slack) * words->slack;
    finder->twice_bound = 2 * bound + ROUNDING * (1 + length) * (1 + words->longest) * (1 + words->longest);
    finder->least = -INFINITY;
    finder->filled = finder->kept = finder->overflown = 0;
    return step;
}

/* Drops what can no longer be among the nearest. */
static void compact(Finder *finder)
{
    int left = 0;
    for (int i = 0; i < finder->kept; i++)
        if (finder->values[i] >= finder->least) {
            finder->values[left] = finder->values[i];
            finder->numbers[left++] = finder->numbers[i];
        }
    finder->kept = left;
}

static void offer(Finder *finder, int wanted, int32_t number, float value)
{
    if (finder->kept == MOST_KEPT)
        compact(finder);
    if (finder->kept == MOST_KEPT) {
        finder->overflown = 1;
        return;
    }
    finder->values[finder->kept] = value;
    finder->numbers[finder->kept++] = number;
    int at = finder->filled < wanted ? finder->filled++ : wanted;
    if (at == wanted && !(value > finder->best[--at]))
        return;
    for (; at > 0 && value > finder->best[at - 1]; at--)
        finder->best[at] = finder->best[at - 1];
    finder->best[at] = value;
    if (finder->filled == wanted)
        finder->least = finder->best[wanted - 1] - finder->twice_bound;
}

/* Compares in float32: all centres if `numbers` is NULL. Of equals the first comes first. */
static void settle(const Words *words, const float *row, const int32_t *numbers, int64_t count, int wanted, int32_t *found,
                   float *closeness)
{
    for (int i = 0; i < wanted; i++) {
        found[i] = 0;
        closeness[i] = -INFINITY;
    }
    for (int64_t i = 0; i < count; i++) {
        const int32_t number = numbers ? numbers[i] : (int32_t)i;
        const float value = dot(row, words->centres + (size_t)number * words->d, words->d) - words->halves[number];
        if (!(value > closeness[wanted - 1]))
            continue;
        int at = wanted - 1;
        for (; at > 0 && value > closeness[at - 1]; at--) {
            closeness[at] = closeness[at - 1];
            found[at] = found[at - 1];
        }
        closeness[at] = value;
        found[at] = number;
    }
}

static void scan_panel(const uint8_t *panel, const float *steps, const PointRows *centres, const Words *words, int lanes,
                       int wanted, Finder *finders)
{
    float least[LANES];
    for (int lane = 0; lane < LANES; lane++)
        least[lane] = lane < lanes ? -INFINITY : INFINITY;
    const Floats step = LOAD_FLOATS(steps);
    for (int64_t first = 0; first < centres->count; first += ROWS) {
        Sums sums[ROWS];
        sum_block(panel, centres, first, words->d, sums);
        for (int i = 0; i < ROWS && first + i < centres->count; i++) {
            const Floats value = SCALE_AND_SUBTRACT(SCALE(sums[i], centres->scales[first + i]), step, words->halves[first + i]);
            unsigned reached = REACHES(value, least);
            if (!reached)
                continue;
            float values[LANES];
            STORE_FLOATS(values, value);
            for (int lane = 0; reached; lane++, reached >>= 1)
                if (reached & 1) {
                    offer(finders + lane, wanted, (int32_t)(first + i), values[lane]);
                    least[lane] = finders[lane].overflown ? INFINITY : finders[lane].least;
                }
        }
    }
}

static int find_words(const Words *words, int64_t wanted, int32_t *numbers, float *closeness)
{
    const size_t d = words->d;
    PointRows centres = {0};
    uint8_t *panel = malloc(d * LANES);
    Finder *finders = malloc(LANES * sizeof *finders);
    const int failed = !make_rows(&centres, words->centre_count, d) || !panel || !finders;
    for (; !failed && centres.count < words->centre_count; centres.count++) {
        copy_row(words->codes + (size_t)centres.count * d, d, &centres, centres.count);
        centres.scales[centres.count] = words->steps[centres.count];
    }
    for (int64_t from = 0; !failed && from < words->row_count; from += LANES) {
        const int lanes = (int)(words->row_count - from < LANES ? words->row_count - from : LANES);
        float steps[LANES] = {0};
        memset(panel, (uint8_t)FLIP, d * LANES);
        for (int lane = 0; lane < lanes; lane++)
            steps[lane] = fill_lane(words, words->rows + (size_t)(from + lane) * d, panel + lane * WORD, finders + lane);
        scan_panel(panel, steps, &centres, words, lanes, (int)wanted, finders);
        for (int lane = 0; lane < lanes; lane++) {
            const int64_t row = from + lane;
            compact(finders + lane);
            const int all = finders[lane].overflown || finders[lane].kept < wanted;
            settle(words, words->rows + (size_t)row * d, all ? NULL : finders[lane].numbers,
                   all ? words->centre_count : finders[lane].kept, (int)wanted, numbers + row * wanted,
                   closeness + row * wanted);
        }
    }
    free_rows(&centres);
    free(panel);
    free(finders);
    return failed;
}
