/* Dot products of 8-bit rows: panels of 16 query rows, one per lane, with blocks of other rows, summed up exactly.
 *
 * byte_lanes_avx2.h or byte_lanes_vnni.h comes first: they define how 16 lanes work on a kind of processor. Rows are
 * read in place, four bytes at a time. */

#define WORD 4
#define GROUP_BYTES (WORD * LANES)

typedef struct {
    int8_t *values;  /* [count rounded up to ROWS, d] */
    float *scales;   /* 1 / length */
    int32_t *starts; /* what a sum begins with */
    int64_t count;
} PointRows;

/* 1 / length; 0 for a row of zeros, whose cosine with everything is 0. */
static float invert_length(const int8_t *row, size_t d)
{
    int64_t squares = 0;
    for (size_t k = 0; k < d; k++)
        squares += (int64_t)row[k] * row[k];
    return squares ? (float)(1 / sqrt((double)squares)) : 0;
}

static void copy_row(const int8_t *row, size_t d, const PointRows *to, int64_t number)
{
    memcpy(to->values + (size_t)number * d, row, d);
    to->scales[number] = invert_length(row, d);
    to->starts[number] = START_SUM(row, d);
}

INLINE void sum_block(const uint8_t *panel, const PointRows *rows, int64_t first, size_t d, Sums sums[ROWS])
{
    const int8_t *three[(ROWS + 2) / 3]; /* an address can hold a factor of 1 or 2 */
    UNROLL for (int i = 0; i < (ROWS + 2) / 3; i++) three[i] = rows->values + (size_t)(first + 3 * i) * d;
    UNROLL for (int i = 0; i < ROWS; i++) sums[i] = SPREAD(rows->starts[first + i]);
    for (size_t k = 0; k < d; k += WORD, panel += GROUP_BYTES)
        UNROLL for (int i = 0; i < ROWS; i++)
            ADD_WORD(sums[i], panel, three[i / 3] + (i % 3 == 0 ? 0 : i % 3 == 1 ? d : 2 * d) + k);
}

static int make_rows(PointRows *rows, int64_t most, size_t d)
{
    const size_t padded = (size_t)(most + ROWS);
    rows->values = calloc(padded, d);
    rows->scales = calloc(padded, sizeof(float));
    rows->starts = calloc(padded, sizeof(int32_t));
    return rows->values && rows->scales && rows->starts;
}

static void free_rows(PointRows *rows)
{
    free(rows->values);
    free(rows->scales);
    free(rows->starts);
}
