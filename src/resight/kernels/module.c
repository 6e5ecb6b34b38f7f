/* The Python module resight.kernels._native: checks every buffer, then runs a kernel without the interpreter's lock.
 *
 * Arguments are contiguous buffers (numpy arrays); a missing list of rows is None. Sizes that do not fit together
 * raise ValueError, so that no argument makes a kernel read or write outside its arrays. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* mincore */
#endif
#include "module.h"

#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#if !defined(_WIN32)
#include <sys/mman.h>
#include <unistd.h>
#endif

static int are_listed_inside(const Images *images, int64_t count, int64_t tokens)
{
    for (int64_t i = images->begin; i < images->end; i++) {
        const int64_t row = images->rows[i];
        if (row < 0 || row >= count || images->offsets[row] < 0 || images->offsets[row] > images->offsets[row + 1] ||
            images->offsets[row + 1] > tokens)
            return 0;
    }
    return 1;
}

/* There may be a million images in order: without branches, this check takes a fraction of their scan. Each difference
 * below is negative (its highest bit is set) if its rule is broken; it can only wrap around after another rule broke. */
static int are_inside(const Images *images, int64_t tokens)
{
    uint64_t broken = 0;
    for (int64_t i = images->begin; i < images->end; i++) {
        const uint64_t from = (uint64_t)images->offsets[i], to = (uint64_t)images->offsets[i + 1];
        broken |= from | to | ((uint64_t)tokens - from) | ((uint64_t)tokens - to) | (to - from);
    }
    return !(broken >> 63);
}

int check_images(Images *images, const Py_buffer *offsets, const Py_buffer *rows, const Py_buffer *out,
                 long long begin, long long end, int64_t tokens)
{
    const int64_t bounds = length(offsets, sizeof(int64_t)), listed = rows->buf ? length(rows, sizeof(int64_t)) : bounds - 1;
    if (bounds < 1 || listed < 0 || begin < 0 || end < begin || end > listed || end > length(out, sizeof(float))) {
        PyErr_SetString(PyExc_ValueError, "offsets, rows and out do not fit together");
        return 0;
    }
    images->offsets = offsets->buf;
    images->rows = rows->buf;
    images->begin = begin;
    images->end = end;
    if (rows->buf ? are_listed_inside(images, bounds - 1, tokens) : are_inside(images, tokens))
        return 1;
    PyErr_SetString(PyExc_ValueError, "an image lies outside the tokens");
    return 0;
}

/* (values [P, d, 16] f32, weights [P × 16] f32, d, tokens [n, d], offsets, rows, begin, end, out), n × d of `size` bytes */
static PyObject *run_float(PyObject *args, size_t size)
{
    Py_buffer b[6] = {{0}};
    long long d, begin, end;
    if (!PyArg_ParseTuple(args, "y*y*Ly*y*z*LLw*", &b[0], &b[1], &d, &b[2], &b[3], &b[4], &begin, &end, &b[5])) {
        release(b, 6);
        return NULL;
    }
    Images images;
    const int64_t lanes = length(&b[1], sizeof(float)), values = length(&b[2], size);
    const int fits = d > 0 && lanes > 0 && lanes % LANES == 0 && length(&b[0], sizeof(float)) == lanes * d &&
                     values >= 0 && values % d == 0 && check_images(&images, &b[3], &b[4], &b[5], begin, end, values / d);
    int failed = 0;
    if (fits) {
        const FloatQuery query = {b[0].buf, b[1].buf, lanes / LANES};
        Py_BEGIN_ALLOW_THREADS;
        if (size == sizeof(float))
            maxsim_fp32(&query, b[2].buf, (size_t)d, &images, b[5].buf);
        else
            failed = maxsim_fp16(&query, b[2].buf, (size_t)d, &images, b[5].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 6, fits, failed);
}

static PyObject *py_fp32(PyObject *self, PyObject *args)
{
    (void)self;
    return run_float(args, sizeof(float));
}

static PyObject *py_fp16(PyObject *self, PyObject *args)
{
    (void)self;
    return run_float(args, sizeof(uint16_t));
}

/* (query [Kq, d] f32, weights [Kq] f32, d, tokens [n, d] f32, offsets, rows, begin, end, out) */
static PyObject *py_scan_fp32(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[6] = {{0}};
    long long d, begin, end;
    if (!PyArg_ParseTuple(args, "y*y*Ly*y*z*LLw*", &b[0], &b[1], &d, &b[2], &b[3], &b[4], &begin, &end, &b[5])) {
        release(b, 6);
        return NULL;
    }
    Images images;
    const int64_t count = length(&b[1], sizeof(float)), values = length(&b[2], sizeof(float));
    const int fits = d > 0 && count > 0 && length(&b[0], sizeof(float)) == count * d && values >= 0 &&
                     values % d == 0 && check_images(&images, &b[3], &b[4], &b[5], begin, end, values / d);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        scan_fp32(b[0].buf, b[1].buf, count, b[2].buf, (size_t)d, &images, b[5].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 6, fits, 0);
}

static int check_bytes(ByteTokens *tokens, const Py_buffer *values, const Py_buffer *steps, const Py_buffer *shifts, long long d)
{
    tokens->values = values->buf;
    tokens->steps = steps->buf;
    tokens->shifts = shifts->buf;
    tokens->count = length(steps, sizeof(float));
    return d > 0 && d % 4 == 0 && tokens->count >= 0 && values->len / d == tokens->count && values->len % d == 0 &&
           length(shifts, sizeof(float)) == tokens->count;
}

/* (values [P, d/4, 16, 4] i8, start16 [P, 16, 2] i16, start32 [P, 16] i32, steps [P × 16], weights [P × 16], d,
 *  tokens [n, d] u8, steps [n], shifts [n], offsets, rows, begin, end, out, sums: 0 narrow, 1 wide, 2 with VNNI) */
static PyObject *py_int8(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[11] = {{0}};
    long long d, begin, end;
    int sums;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*Ly*y*y*y*z*LLw*i", &b[0], &b[1], &b[2], &b[3], &b[4], &d, &b[5], &b[6], &b[7],
                          &b[8], &b[9], &begin, &end, &b[10], &sums)) {
        release(b, 11);
        return NULL;
    }
    Images images;
    ByteTokens tokens;
    const int64_t lanes = length(&b[4], sizeof(float));
    const int fits = check_bytes(&tokens, &b[5], &b[6], &b[7], d) && lanes > 0 && lanes % LANES == 0 &&
                     b[0].len == lanes * d && length(&b[1], sizeof(int16_t)) == 2 * lanes &&
                     length(&b[2], sizeof(int32_t)) == lanes && length(&b[3], sizeof(float)) == lanes &&
                     check_images(&images, &b[8], &b[9], &b[10], begin, end, tokens.count);
    if (fits) {
        const ByteQuery query = {b[0].buf, b[1].buf, b[2].buf, b[3].buf, b[4].buf, lanes / LANES};
        Py_BEGIN_ALLOW_THREADS;
        (sums == 2 ? maxsim_int8_vnni : sums ? maxsim_int8_wide : maxsim_int8)(&query, &tokens, (size_t)d, &images, b[10].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 11, fits, 0);
}

/* (query [Kq, width] i8, steps [Kq], weights [Kq], d, tokens [n, d] u8, steps [n], shifts [n], offsets, rows, begin, end, out) */
static PyObject *py_scan_int8(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[9] = {{0}};
    long long d, begin, end;
    if (!PyArg_ParseTuple(args, "y*y*y*Ly*y*y*y*z*LLw*", &b[0], &b[1], &b[2], &d, &b[3], &b[4], &b[5], &b[6], &b[7], &begin,
                          &end, &b[8])) {
        release(b, 9);
        return NULL;
    }
    Images images;
    ByteTokens tokens;
    const int64_t count = length(&b[2], sizeof(float)), width = (d + 31) / 32 * 32;
    const int fits = check_bytes(&tokens, &b[3], &b[4], &b[5], d) && count > 0 && b[0].len == count * width &&
                     length(&b[1], sizeof(float)) == count &&
                     check_images(&images, &b[6], &b[7], &b[8], begin, end, tokens.count);
    int failed = 0;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        failed = scan_int8(b[0].buf, b[1].buf, b[2].buf, count, (size_t)width, &tokens, (size_t)d, &images, b[8].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 9, fits, failed);
}

/* (tables, scales [queries], biases [queries], parts, bits, codes, offsets, rows, begin, end, out) */
static PyObject *py_pq(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[7] = {{0}};
    long long parts, bits, begin, end;
    if (!PyArg_ParseTuple(args, "y*y*y*LLy*y*z*LLw*", &b[0], &b[1], &b[2], &parts, &bits, &b[3], &b[4], &b[5], &begin, &end,
                          &b[6])) {
        release(b, 7);
        return NULL;
    }
    Images images;
    const int64_t queries = length(&b[1], sizeof(float));
    const int64_t row_bytes = bits == 4 ? parts * 16 : parts;
    int fits = (bits == 4 || bits == 8) && parts > 0 && queries > 0 && length(&b[2], sizeof(float)) == queries &&
               b[3].len % row_bytes == 0;
    fits = fits && (bits == 4 ? queries % 2 == 0 && parts % 4 == 0 && b[0].len == queries * parts * 16
                              : queries % LANES == 0 && length(&b[0], sizeof(int16_t)) == queries * parts * 256);
    fits = fits && check_images(&images, &b[4], &b[5], &b[6], begin, end, b[3].len / row_bytes);
    int failed = 0;
    if (fits) {
        const TableQuery query = {b[1].buf, b[2].buf, queries, (size_t)parts};
        Py_BEGIN_ALLOW_THREADS;
        if (bits == 4)
            failed = maxsim_pq4(b[0].buf, &query, b[3].buf, &images, b[6].buf);
        else
            maxsim_pq8(b[0].buf, &query, b[3].buf, &images, b[6].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 7, fits, failed);
}

/* (tables [panels, parts, 256, 32] u8, parts, scale, bias, codes [n, parts] u8, offsets, rows, begin, end, out) */
static PyObject *py_rq(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[5] = {{0}};
    long long parts, begin, end;
    float scale, bias;
    if (!PyArg_ParseTuple(args, "y*Lffy*y*z*LLw*", &b[0], &parts, &scale, &bias, &b[1], &b[2], &b[3], &begin, &end, &b[4])) {
        release(b, 5);
        return NULL;
    }
    Images images;
    const int64_t panel = parts > 0 && parts <= 1024 ? parts * 256 * WIDE_LANES : 0;
    const int fits = panel && b[0].len > 0 && b[0].len % panel == 0 && (uintptr_t)b[0].buf % WIDE_LANES == 0 &&
                     b[1].len % parts == 0 && check_images(&images, &b[2], &b[3], &b[4], begin, end, b[1].len / parts);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        maxsim_rq(b[0].buf, b[0].len / panel, (size_t)parts, scale, bias, b[1].buf, &images, b[4].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 5, fits, 0);
}

#if !defined(_WIN32)
#define SAMPLES 64

/* Whether some images' first pages are in memory: requesting a thousand present pages costs a tenth of their scores. */
static int are_there(const Images *images, uintptr_t base, uintptr_t row_bytes, uintptr_t page)
{
    const int64_t stride = images->end / SAMPLES + 1;
    for (int64_t i = 0; i < images->end; i += stride) {
        const uintptr_t from = base + (uintptr_t)images->offsets[images->rows[i]] * row_bytes;
        unsigned char there = 0;
        if (images->offsets[images->rows[i]] < images->offsets[images->rows[i] + 1] &&
            (mincore((void *)(from - from % page), 1, (void *)&there) || !(there & 1)))
            return 0;
    }
    return 1;
}

static void ask(const Images *images, uintptr_t base, uintptr_t row_bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (are_there(images, base, row_bytes, page))
        return;
    for (int64_t i = 0; i < images->end; i++) {
        const uintptr_t from = base + (uintptr_t)images->offsets[images->rows[i]] * row_bytes;
        const uintptr_t to = base + (uintptr_t)images->offsets[images->rows[i] + 1] * row_bytes;
        if (from < to)
            madvise((void *)(from - from % page), (size_t)(to - (from - from % page)), MADV_WILLNEED);
    }
}
#endif

/* (tokens, row_bytes, offsets, rows): requests the pages of these images from disk, all at once. */
static PyObject *py_will_need(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[3] = {{0}};
    long long row_bytes;
    if (!PyArg_ParseTuple(args, "y*Ly*y*", &b[0], &row_bytes, &b[1], &b[2])) {
        release(b, 3);
        return NULL;
    }
    Images images;
    const int64_t count = length(&b[2], sizeof(int64_t));
    Py_buffer out = {0};
    out.len = (Py_ssize_t)(count * (int64_t)sizeof(float)); /* no kernel writes to it: only the list is checked */
    const int fits = row_bytes > 0 && count >= 0 && check_images(&images, &b[1], &b[2], &out, 0, count, b[0].len / row_bytes);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
#if !defined(_WIN32)
        ask(&images, (uintptr_t)b[0].buf, (uintptr_t)row_bytes);
#endif
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 3, fits, 0);
}

/* (kind, rounds) → multiply-adds done; kind 0: fp32, 1: int8 */
static PyObject *py_peak(PyObject *self, PyObject *args)
{
    (void)self;
    long long kind, rounds;
    if (!PyArg_ParseTuple(args, "LL", &kind, &rounds))
        return NULL;
    double done;
    Py_BEGIN_ALLOW_THREADS;
    done = kind ? peak_int8(rounds) : peak_fp32(rounds);
    Py_END_ALLOW_THREADS;
    return PyFloat_FromDouble(done);
}

/* (bytes) → bytes read */
static PyObject *py_peak_read(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer bytes = {0};
    if (!PyArg_ParseTuple(args, "y*", &bytes))
        return NULL;
    double done;
    Py_BEGIN_ALLOW_THREADS;
    done = peak_read(bytes.buf, (size_t)bytes.len);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&bytes);
    return PyFloat_FromDouble(done);
}

/* Whether this processor and operating system can run the kernels. */
static int is_supported(void)
{
#if defined(_MSC_VER)
    int info[4];
    __cpuidex(info, 1, 0);
    const int wanted = (1 << 12) | (1 << 27) | (1 << 29); /* FMA, OSXSAVE, F16C */
    if ((info[2] & wanted) != wanted || (_xgetbv(0) & 6) != 6)
        return 0;
    __cpuidex(info, 7, 0);
    return (info[1] & (1 << 5)) != 0; /* AVX2 */
#else
    unsigned int a, b, c, d; /* some compilers do not know the name "f16c" */
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & (1u << 29)) != 0;
#endif
}

static PyMethodDef methods[] = {
    {"maxsim_fp32", py_fp32, METH_VARARGS, NULL},     {"maxsim_fp16", py_fp16, METH_VARARGS, NULL},
    {"maxsim_int8", py_int8, METH_VARARGS, NULL},     {"scan_fp32", py_scan_fp32, METH_VARARGS, NULL},
    {"scan_int8", py_scan_int8, METH_VARARGS, NULL},  {"maxsim_pq", py_pq, METH_VARARGS, NULL},
    {"will_need", py_will_need, METH_VARARGS, NULL},  {"peak", py_peak, METH_VARARGS, NULL},
    {"peak_read", py_peak_read, METH_VARARGS, NULL},  {"add_postings", py_add_postings, METH_VARARGS, NULL},
    {"add_codes", py_add_codes, METH_VARARGS, NULL},  {"maxsim_rq", py_rq, METH_VARARGS, NULL},
    {"lay_over", py_lay_over, METH_VARARGS, NULL},    {"pair_points", py_pair_points, METH_VARARGS, NULL},
    {"nearest_words", py_nearest_words, METH_VARARGS, NULL}, {"has_vnni", py_has_vnni, METH_NOARGS, NULL},
        {"count_support", py_count_support, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void)
{
    if (!is_supported()) {
        PyErr_SetString(PyExc_ImportError, "this processor lacks AVX2, FMA or F16C");
        return NULL;
    }
    return PyModule_Create(&definition);
}
