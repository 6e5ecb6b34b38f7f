/* lay_over for Python: checks its buffers, then runs the kernel without the interpreter's lock (see module.c). */
#include "module.h"

#define MOST 1000000000 /* of each side of a table: with this, no product below overflows before it is compared */

static int are_numbers(const int32_t *numbers, int64_t count, int64_t below)
{
    int outside = 0;
    for (int64_t i = 0; i < count; i++)
        outside |= numbers[i] < 0 || numbers[i] >= below;
    return !outside;
}

/* Whether the product of `count` sides, each above 0, is `size`. */
static int is_product(int64_t size, const int64_t *sides, int count)
{
    for (int i = 0; i < count; i++) {
        if (sides[i] <= 0 || sides[i] > MOST || size <= 0 || size % sides[i])
            return 0;
        size /= sides[i];
    }
    return size == 1;
}

/* (values [P, d, 16] f32, near_x [P × 2, scales, columns, steps, 8] f32, near_y [P × 2, scales, rows, steps, 8] f32,
 *  inside [P × 2, scales, steps] u8, weights [scales, steps, steps] f32, (d, scales, columns, rows, steps),
 *  tokens [n, d] f32, mean [d] f32, columns [n] i32, rows [n] i32, offsets, begin, end, out) */
PyObject *py_lay_over(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer b[11] = {{0}};
    long long d, scales, columns, rows, steps, begin, end;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*(LLLLL)y*y*y*y*y*LLw*", &b[0], &b[1], &b[2], &b[3], &b[4], &d, &scales, &columns,
                          &rows, &steps, &b[5], &b[6], &b[7], &b[8], &b[9], &begin, &end, &b[10])) {
        release(b, 11);
        return NULL;
    }
    const int64_t values = length(&b[0], sizeof(float)), panels = d > 0 && d <= MOST ? values / (d * LANES) : 0;
    const int64_t tokens = length(&b[7], sizeof(int32_t));
    const Py_buffer no_rows = {0};
    Images images;
    int fits = is_product(values, (int64_t[]){panels, d, LANES}, 3) &&
               is_product(length(&b[1], sizeof(float)), (int64_t[]){panels, LANES, scales, columns, steps}, 5) &&
               is_product(length(&b[2], sizeof(float)), (int64_t[]){panels, LANES, scales, rows, steps}, 5) &&
               is_product(b[3].len, (int64_t[]){panels, 2, scales, steps}, 4) &&
               is_product(length(&b[4], sizeof(float)), (int64_t[]){scales, steps, steps}, 3) && tokens > 0 &&
               is_product(length(&b[5], sizeof(float)), (int64_t[]){tokens, d}, 2) &&
               length(&b[6], sizeof(float)) == d && length(&b[8], sizeof(int32_t)) == tokens &&
               are_numbers(b[7].buf, tokens, columns) && are_numbers(b[8].buf, tokens, rows) &&
               check_images(&images, &b[9], &no_rows, &b[10], begin, end, tokens);
    int failed = 0;
    if (fits) {
        const PlacedQuery query = {b[0].buf, b[1].buf, b[2].buf, b[3].buf, b[4].buf, panels, scales, columns, rows, steps};
        const PlacedTokens placed = {b[5].buf, b[6].buf, b[7].buf, b[8].buf};
        Py_BEGIN_ALLOW_THREADS;
        failed = lay_over(&query, &placed, (size_t)d, &images, b[10].buf);
        Py_END_ALLOW_THREADS;
    }
    return finish(b, 11, fits, failed);
}
