/* Key points for Python: checks buffers, then runs a kernel without the interpreter's lock (see module.c). */
#include "module.h"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

/* Whether processor and operating system can run pair_points_vnni. */
PyObject *py_has_vnni(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
#if defined(_MSC_VER)
    int info[4];
    __cpuidex(info, 7, 0);
    const int wanted = (1 << 16) | (1 << 30) | (1 << 31); /* AVX-512 F, BW, VL */
    const int has = (info[1] & wanted) == wanted && (info[2] & (1 << 11)) && (_xgetbv(0) & 0xe6) == 0xe6;
#else
    __builtin_cpu_init();
    const int has = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512vnni");
#endif
    return PyBool_FromLong(has);
}

/* (query [Kq, d] i8, image [n, d] i8, d, squared_ratio, mutual, vnni, nearest [Kq, up to 16] i32, best [the same] f32) */
PyObject *py_pair_points(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[4] = {{0}};
    long long d;
    float squared_ratio;
    int mutual, vnni;
    if (!PyArg_ParseTuple(args, "y*y*Lfppw*w*", &b[0], &b[1], &d, &squared_ratio, &mutual, &vnni, &b[2], &b[3])) {
        release(b, 4);
        return NULL;
    }
    const int whole = d > 0 && d % 4 == 0 && d <= INT32_MAX / (128 * 128) && b[0].len % d == 0 && b[1].len % d == 0;
    const int64_t queries = whole ? b[0].len / d : 0, rows = whole ? b[1].len / d : 0;
    const int64_t lanes = (queries + LANES - 1) / LANES * LANES;
    const int fits = whole && rows <= INT32_MAX && queries <= INT32_MAX - LANES &&
                     length(&b[2], sizeof(int32_t)) == lanes && length(&b[3], sizeof(float)) == lanes;
    int failed = 0;
    if (fits) {
        const PointPair points = {b[0].buf, b[1].buf, queries, rows, (size_t)d};
        Py_BEGIN_ALLOW_THREADS;
        failed = (vnni ? pair_points_vnni : pair_points)(&points, squared_ratio, mutual, b[2].buf, b[3].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 4, fits, failed);
}

/* (matches [6, n] f64, n a multiple of 4, most growth, most turn, similarities [h, 6] f64, radii [levels] f64, counts
 * [h, levels] i32) */
PyObject *py_count_support(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[4] = {{0}};
    double most_growth, most_turn;
    if (!PyArg_ParseTuple(args, "y*ddy*y*w*", &b[0], &most_growth, &most_turn, &b[1], &b[2], &b[3])) {
        release(b, 4);
        return NULL;
    }
    const int64_t values = length(&b[0], sizeof(double)), levels = length(&b[2], sizeof(double));
    const int64_t numbers = length(&b[1], sizeof(double)), n = values / 6;
    const int fits = values >= 0 && values % 24 == 0 && n <= INT32_MAX && numbers >= 0 && numbers % 6 == 0 && levels > 0 &&
                     levels <= 1000 && length(&b[3], sizeof(int32_t)) == numbers / 6 * levels;
    if (fits) {
        const double *at = b[0].buf;
        const Matches matches = {at, at + n, at + 2 * n, at + 3 * n, at + 4 * n, at + 5 * n, n, most_growth, most_turn};
        Py_BEGIN_ALLOW_THREADS;
        count_support(&matches, b[1].buf, numbers / 6, b[2].buf, levels, b[3].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 4, fits, 0);
}

/* (rows [n, d] f32, centres [C, d] f32, codes [C, d] i8, steps [C] f32, halves [C] f32, d, longest, slack, wanted, vnni,
 * numbers [n, wanted] i32, closeness [n, wanted] f32) */
PyObject *py_nearest_words(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[7] = {{0}};
    long long d, wanted;
    float longest, slack;
    int vnni;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*LffLpw*w*", &b[0], &b[1], &b[2], &b[3], &b[4], &d, &longest, &slack, &wanted, &vnni,
                          &b[5], &b[6])) {
        release(b, 7);
        return NULL;
    }
    const int64_t values = length(&b[0], sizeof(float)), centres = length(&b[3], sizeof(float));
    const int whole = d > 0 && d % 4 == 0 && d <= INT32_MAX / (128 * 128) && values >= 0 && values % d == 0;
    const int64_t rows = whole ? values / d : 0;
    const int fits = whole && centres > 0 && centres <= INT32_MAX && wanted > 0 && wanted <= MOST_WORDS && wanted <= centres &&
                     length(&b[1], sizeof(float)) == centres * d && b[2].len == centres * d &&
                     length(&b[4], sizeof(float)) == centres && length(&b[5], sizeof(int32_t)) == rows * wanted &&
                     length(&b[6], sizeof(float)) == rows * wanted;
    int failed = 0;
    if (fits) {
        const Words words = {b[0].buf, rows, b[1].buf, b[2].buf, b[3].buf, b[4].buf, centres, (size_t)d, longest, slack};
        Py_BEGIN_ALLOW_THREADS;
        failed = (vnni ? nearest_words_vnni : nearest_words)(&words, wanted, b[5].buf, b[6].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 7, fits, failed);
}
