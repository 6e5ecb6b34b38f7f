/* Posting lists for Python: checks their buffers, then runs a kernel without the interpreter's lock (see module.c). */
#include "module.h"

/* (query [w] f32, starts [w], stops [w], images [m] i32, values [m] f32, gain, totals [N] f32) */
PyObject *py_add_postings(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[6] = {{0}};
    int gain;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*iw*", &b[0], &b[1], &b[2], &b[3], &b[4], &gain, &b[5])) {
        release(b, 6);
        return NULL;
    }
    const int64_t words = length(&b[0], sizeof(float)), postings = length(&b[3], sizeof(int32_t)), images = length(&b[5], sizeof(float));
    int fits = words >= 0 && postings >= 0 && images >= 0 && images <= INT32_MAX && gain >= PRODUCT && gain <= CHI2 &&
               length(&b[1], sizeof(int64_t)) == words && length(&b[2], sizeof(int64_t)) == words &&
               length(&b[4], sizeof(float)) == postings;
    const Postings lists = {b[1].buf, b[2].buf, words, b[3].buf, b[4].buf};
    for (int64_t word = 0; fits && word < words; word++)
        fits = lists.starts[word] >= 0 && lists.starts[word] <= lists.stops[word] && lists.stops[word] <= postings;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = add_postings(&lists, b[0].buf, (enum Gain)gain, b[5].buf, (uint32_t)images);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 6, fits, 0);
}

/* (query [w, bytes] u8, weights [w] f64, starts [w], stops [w], images [m] i32, codes [m, bytes] u8, gains [8 bytes + 1]
 * f64, totals [N] f64) */
PyObject *py_add_codes(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[8] = {{0}};
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*w*", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &b[7])) {
        release(b, 8);
        return NULL;
    }
    const int64_t words = length(&b[1], sizeof(double)), postings = length(&b[4], sizeof(int32_t)), images = length(&b[7], sizeof(double));
    const int64_t gains = length(&b[6], sizeof(double)), bytes = (gains - 1) / 8;
    int fits = words >= 0 && postings >= 0 && images >= 0 && images <= INT32_MAX && gains > 8 && gains % 8 == 1 &&
               b[0].len == words * bytes && b[5].len == postings * bytes && length(&b[2], sizeof(int64_t)) == words &&
               length(&b[3], sizeof(int64_t)) == words;
    const CodeLists lists = {b[2].buf, b[3].buf, words, b[4].buf, b[5].buf, bytes};
    for (int64_t word = 0; fits && word < words; word++)
        fits = lists.starts[word] >= 0 && lists.starts[word] <= lists.stops[word] && lists.stops[word] <= postings;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS;
        fits = add_codes(&lists, b[0].buf, b[1].buf, b[6].buf, b[7].buf, (uint32_t)images);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 8, fits, 0);
}
