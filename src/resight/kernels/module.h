/* Shared by the files of the Python module: checks and releases of buffers. */
#ifndef RESIGHT_MODULE_H
#define RESIGHT_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernels.h"

PyObject *py_add_postings(PyObject *self, PyObject *args);
PyObject *py_add_codes(PyObject *self, PyObject *args);
PyObject *py_lay_over(PyObject *self, PyObject *args);
PyObject *py_pair_points(PyObject *self, PyObject *args);
PyObject *py_count_support(PyObject *self, PyObject *args);
PyObject *py_nearest_words(PyObject *self, PyObject *args);
PyObject *py_has_vnni(PyObject *self, PyObject *args);

/* Fills `images` and checks that each of them lies within `tokens` rows. Returns 0 with an error set if not. */
int check_images(Images *images, const Py_buffer *offsets, const Py_buffer *rows, const Py_buffer *out, long long begin,
                 long long end, int64_t tokens);

/* Number of items of `size` bytes in a buffer; -1 if it holds a fraction of an item or is misaligned. */
static inline int64_t length(const Py_buffer *buffer, size_t size)
{
    return buffer->len % (Py_ssize_t)size || (uintptr_t)buffer->buf % size ? -1 : (int64_t)(buffer->len / (Py_ssize_t)size);
}

static inline void release(Py_buffer *buffers, int count)
{
    for (int i = 0; i < count; i++)
        if (buffers[i].obj)
            PyBuffer_Release(&buffers[i]);
}

static inline PyObject *finish(Py_buffer *buffers, int count, int fits, int failed)
{
    release(buffers, count);
    if (!fits && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "the arrays' sizes do not fit together");
    if (fits && failed)
        return PyErr_NoMemory();
    return fits ? Py_NewRef(Py_None) : NULL;
}

#endif
