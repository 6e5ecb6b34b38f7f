/* Key points for fuzz_kernels.c: pair_points on both kinds of processors, and count_support, against plain loops. */
static double cosine(const int8_t *a, const int8_t *b, size_t d)
{
    int64_t product = 0, one = 0, two = 0;
    for (size_t k = 0; k < d; k++)
        product += a[k] * b[k], one += a[k] * a[k], two += b[k] * b[k];
    return one && two ? (double)product / sqrt((double)one * (double)two) : 0;
}

/* Whether cosines decide clearly: rounding may choose either of two that are nearly equal. */
static int is_right(const PointPair *points, int64_t q, int32_t found, int mutual)
{
    const size_t d = points->d;
    const int8_t *row = points->query + (size_t)q * d;
    double best = -2, second = -2, rival = -2;
    int64_t nearest = 0;
    for (int64_t r = 0; r < points->rows; r++) {
        const double value = cosine(row, points->image + (size_t)r * d, d);
        if (value > best) {
            second = best, best = value, nearest = r;
        } else if (value > second) {
            second = value;
        }
    }
    for (int64_t other = 0; other < points->queries; other++)
        if (other != q)
            rival = fmax(rival, cosine(points->query + (size_t)other * d, points->image + (size_t)nearest * d, d));
    const double clear = 0.81 * (1 - second) - (1 - best);
    if (fabs(clear) < 1e-5 || fabs(best - second) < 1e-5 || (mutual && fabs(best - rival) < 1e-5))
        return found >= -1 && found < points->rows;
    return found == (clear > 0 && !(mutual && rival > best) ? nearest : -1);
}

static void fuzz_points(void)
{
    PointPair points = {.queries = draw(1, 40), .rows = draw(1, 40), .d = (size_t)(4 * draw(1, 40))};
    const int64_t lanes = (points.queries + LANES - 1) / LANES * LANES, least = draw(0, 1) ? 0 : -127;
    int8_t *query = make((size_t)points.queries, points.d), *image = make((size_t)points.rows, points.d);
    int32_t *nearest = make((size_t)lanes, sizeof *nearest);
    float *best = make((size_t)lanes, sizeof *best);
    for (size_t k = 0; k < (size_t)points.queries * points.d; k++)
        query[k] = (int8_t)draw(least, 127);
    for (size_t k = 0; k < (size_t)points.rows * points.d; k++)
        image[k] = (int8_t)draw(least, 127);
    for (int64_t r = 0; r < points.rows && r < points.queries; r += 2) /* some are nearly the same */
        memcpy(image + (size_t)r * points.d, query + (size_t)r * points.d, points.d - 1);
    points.query = query, points.image = image;
    const int mutual = (int)draw(0, 1);
    for (int vnni = 0; vnni < (__builtin_cpu_supports("avx512vnni") ? 2 : 1); vnni++) {
        if ((vnni ? pair_points_vnni : pair_points)(&points, 0.81f, mutual, nearest, best))
            abort();
        for (int64_t q = 0; q < points.queries; q++)
            if (!is_right(&points, q, nearest[q], mutual)) {
                fprintf(stderr, "pair_points, d = %zu, query row %lld: %d\n", points.d, (long long)q, nearest[q]);
                exit(1);
            }
    }
    free(query), free(image), free(nearest), free(best);
}

static void fuzz_support(void)
{
    const int64_t n = 4 * draw(0, 8), models = draw(0, 9), levels = draw(1, 5);
    double *values = make((size_t)(6 * n), sizeof *values), *similarities = make((size_t)(6 * models), sizeof *values);
    double *radii = make((size_t)levels, sizeof *radii);
    int32_t *counts = make((size_t)(models * levels), sizeof *counts);
    for (int64_t i = 0; i < 6 * n; i++)
        values[i] = i >= 4 * n && i < 5 * n ? draw(0, 9) ? draw(-3, 3) + 0.5 : NAN : draw(-400, 400);
    for (int64_t i = 0; i < 6 * models; i++)
        similarities[i] = i % 6 < 2 ? draw(-2, 2) : i % 6 < 4 ? draw(-50, 50) : i % 6 == 4 ? draw(-3, 3) : draw(-179, 180);
    for (int64_t i = 0; i < levels; i++)
        radii[i] = (double)draw(1, 500) + 0.25;
    const Matches matches = {values, values + n, values + 2 * n, values + 3 * n, values + 4 * n, values + 5 * n, n, 2, 35.5};
    count_support(&matches, similarities, models, radii, levels, counts);
    for (int64_t h = 0; h < models; h++)
        for (int64_t level = 0; level < levels; level++) {
            const double *model = similarities + 6 * h;
            int32_t inside = 0;
            for (int64_t i = 0; i < n; i++) {
                const double x = model[0] * values[i] - model[1] * values[n + i] + model[2] - values[2 * n + i];
                const double y = model[1] * values[i] + model[0] * values[n + i] + model[3] - values[3 * n + i];
                const double turn = fabs(remainder(values[5 * n + i] - model[5], 360));
                inside += hypot(x, y) < radii[level] && !(fabs(values[4 * n + i] - model[4]) > 2) && !(turn > 35.5);
            }
            if (counts[h * levels + level] != inside) {
                fprintf(stderr, "count_support: %d instead of %d\n", counts[h * levels + level], inside);
                exit(1);
            }
        }
    free(values), free(similarities), free(radii), free(counts);
}

static void fuzz_words(void)
{
    const int64_t rows = draw(1, 40), centres = draw(1, 300), wanted = draw(1, centres < 16 ? centres : 16);
    const size_t d = (size_t)(4 * draw(1, 20));
    float *from = make((size_t)rows * d, sizeof *from), *to = make((size_t)centres * d, sizeof *to);
    float *steps = make((size_t)centres, sizeof *steps), *halves = make((size_t)centres, sizeof *halves);
    int8_t *codes = make((size_t)centres, d);
    int32_t *numbers = make((size_t)(rows * wanted), sizeof *numbers);
    float *closeness = make((size_t)(rows * wanted), sizeof *closeness), longest = 0, slack = 0;
    const int same = draw(0, 4) == 0; /* more centres within the bound than are kept */
    for (size_t i = 0; i < (size_t)rows * d; i++)
        from[i] = (float)draw(-500, 500) / 16;
    for (size_t i = 0; i < (size_t)centres * d; i++)
        to[i] = same && i >= d ? to[i - d] : (float)draw(-500, 500) / 16;
    for (int64_t c = 0; c < centres; c++) {
        float largest = 1e-30f, squares = 0, lost = 0;
        for (size_t k = 0; k < d; k++)
            largest = fmaxf(largest, fabsf(to[(size_t)c * d + k]));
        steps[c] = largest / 127;
        for (size_t k = 0; k < d; k++) {
            const float value = to[(size_t)c * d + k], code = rintf(value / steps[c]);
            codes[(size_t)c * d + k] = (int8_t)code;
            squares += value * value;
            lost += (value - code * steps[c]) * (value - code * steps[c]);
        }
        halves[c] = squares / 2;
        longest = fmaxf(longest, sqrtf(squares));
        slack = fmaxf(slack, sqrtf(lost));
    }
    const Words words = {from, rows, to, codes, steps, halves, centres, d, longest, slack};
    for (int vnni = 0; vnni < (__builtin_cpu_supports("avx512vnni") ? 2 : 1); vnni++) {
        if ((vnni ? nearest_words_vnni : nearest_words)(&words, wanted, numbers, closeness))
            abort();
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < wanted; i++) { /* as many are nearer as come before it */
                const double least = closeness[r * wanted + i];
                int64_t nearer = 0, listed = 0;
                for (int64_t c = 0; c < centres; c++) {
                    double value = -halves[c];
                    for (size_t k = 0; k < d; k++)
                        value += (double)from[(size_t)r * d + k] * to[(size_t)c * d + k];
                    nearer += value > least + 0.5;
                    listed += c == numbers[r * wanted + i] && fabs(value - least) < 0.5;
                }
                if (nearer > i || !listed) {
                    fprintf(stderr, "nearest_words, row %lld: %lld nearer than number %lld\n", (long long)r,
                            (long long)nearer, (long long)i);
                    exit(1);
                }
            }
    }
    free(from), free(to), free(steps), free(halves), free(codes), free(numbers), free(closeness);
}
