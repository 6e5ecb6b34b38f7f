/* Nearest neighbours among the 8-bit key points of two images: the code that pair_points.c and pair_points_vnni.c share. */
#include "byte_blocks.h"

typedef struct {
    uint8_t *panels;  /* [panels, d / 4, 16, 4], zeros for unused lanes */
    float *lengths;   /* [panels × 16]: 1 / length, 0 for unused lanes */
    int64_t count, panels_count;
} PointPanels;

/* Each lane's best and second best row, and the number of the best: the first of equals. */
typedef struct {
    Floats best, second;
    Sums number;
} Nearest;

static void fill_panel(const int8_t *query, size_t d, const PointPanels *to)
{
    memset(to->panels, (uint8_t)FLIP, (size_t)to->panels_count * LANES * d);
    memset(to->lengths, 0, (size_t)to->panels_count * LANES * sizeof(float));
    for (int64_t q = 0; q < to->count; q++) {
        uint8_t *panel = to->panels + (size_t)(q / LANES) * LANES * d + (size_t)(q % LANES) * WORD;
        const int8_t *row = query + (size_t)q * d;
        to->lengths[q] = invert_length(row, d);
        for (size_t k = 0; k < d; k++) /* -128 has no opposite */
            panel[k / WORD * GROUP_BYTES + k % WORD] = (uint8_t)((row[k] == -128 ? -127 : row[k]) ^ FLIP);
    }
}

/* The nearest rows of one panel of queries. */
static void find_nearest(const uint8_t *panel, const float *lengths, const PointRows *rows, size_t d, int32_t *number,
                         float *best, float *second)
{
    Nearest found = {FILL(-INFINITY), FILL(-INFINITY), SPREAD(-1)};
    for (int64_t first = 0; first < rows->count; first += ROWS) {
        Sums sums[ROWS];
        sum_block(panel, rows, first, d, sums);
        if (first + ROWS <= rows->count) {
            UNROLL for (int i = 0; i < ROWS; i++) TRACK(found, SCALE(sums[i], rows->scales[first + i]), (int32_t)(first + i));
        } else {
            for (int i = 0; i < rows->count - first; i++)
                TRACK(found, SCALE(sums[i], rows->scales[first + i]), (int32_t)(first + i));
        }
    }
    float own[LANES], next[LANES];
    STORE_FLOATS(own, found.best);
    STORE_FLOATS(next, found.second);
    STORE_SUMS(number, found.number);
    for (int lane = 0; lane < LANES; lane++) {
        best[lane] = own[lane] * lengths[lane];
        second[lane] = next[lane] * lengths[lane];
    }
}

/* The query row nearest to each of `rows`: the first of equals. `number` and `best` hold one entry per row. */
static void look_back(const PointPanels *query, const PointRows *rows, size_t d, int32_t *number, float *best)
{
    for (int64_t r = 0; r < rows->count; r++)
        best[r] = -INFINITY;
    for (int64_t p = 0; p < query->panels_count; p++) {
        const int lanes = (int)(query->count - p * LANES < LANES ? query->count - p * LANES : LANES);
        for (int64_t first = 0; first < rows->count; first += ROWS) {
            Sums sums[ROWS];
            sum_block(query->panels + (size_t)p * LANES * d, rows, first, d, sums);
            for (int i = 0; i < ROWS && first + i < rows->count; i++) {
                float values[LANES];
                STORE_FLOATS(values, SCALE(sums[i], rows->scales[first + i]));
                for (int lane = 0; lane < lanes; lane++) {
                    const float value = values[lane] * query->lengths[p * LANES + lane];
                    if (value > best[first + i]) {
                        best[first + i] = value;
                        number[first + i] = (int32_t)(p * LANES + lane);
                    }
                }
            }
        }
    }
}

typedef struct {
    PointPanels query;
    PointRows image, chosen;
    float *second, *back_best;
    int32_t *back, *number;
} Room;

static void free_room(Room *room)
{
    free(room->query.panels), free(room->query.lengths), free(room->second), free(room->back_best), free(room->back);
    free(room->number);
    free_rows(&room->image);
    free_rows(&room->chosen);
}

static int make_room(Room *room, int64_t queries, int64_t rows, size_t d)
{
    const int64_t panels = (queries + LANES - 1) / LANES;
    const size_t lanes = (size_t)panels * LANES;
    room->query.panels = malloc(lanes * d);
    room->query.lengths = malloc(lanes * sizeof(float));
    room->query.count = queries;
    room->query.panels_count = panels;
    room->second = malloc(lanes * sizeof(float));
    room->back_best = malloc((lanes + 1) * sizeof(float));
    room->back = malloc((lanes + 1) * sizeof(int32_t));
    room->number = malloc((lanes + 1) * sizeof(int32_t));
    return room->query.panels && room->query.lengths && room->second && room->back_best && room->back && room->number &&
           make_rows(&room->image, rows, d) && make_rows(&room->chosen, queries, d);
}

/* Drops the query rows that are not the nearest to their own nearest row. */
static void keep_mutual(Room *room, const int8_t *image, size_t d, int32_t *nearest)
{
    for (int64_t q = 0; q < room->query.count; q++)
        if (nearest[q] >= 0) {
            room->number[room->chosen.count] = (int32_t)q;
            copy_row(image + (size_t)nearest[q] * d, d, &room->chosen, room->chosen.count++);
        }
    look_back(&room->query, &room->chosen, d, room->back, room->back_best);
    for (int64_t r = 0; r < room->chosen.count; r++)
        if (room->back[r] != room->number[r])
            nearest[room->number[r]] = -1;
}

static int pair(const PointPair *points, float squared_ratio, int mutual, int32_t *nearest, float *best)
{
    const size_t d = points->d;
    const int64_t padded = (points->queries + LANES - 1) / LANES * LANES;
    Room room = {0};
    const int failed = !make_room(&room, points->queries, points->rows, d);
    if (!failed) {
        fill_panel(points->query, d, &room.query);
        for (room.image.count = 0; room.image.count < points->rows; room.image.count++)
            copy_row(points->image + (size_t)room.image.count * d, d, &room.image, room.image.count);
        for (int64_t q = 0; q < padded; q += LANES)
            find_nearest(room.query.panels + (size_t)q * d, room.query.lengths + q, &room.image, d, nearest + q,
                         best + q, room.second + q);
        /* Lengths are 1: the square of a distance is 2 - 2 cos. */
        for (int64_t q = 0; q < padded; q++)
            if (q >= points->queries || !(1 - best[q] < squared_ratio * (1 - room.second[q])))
                nearest[q] = -1;
        if (mutual)
            keep_mutual(&room, points->image, d, nearest);
    }
    free_room(&room);
    return failed;
}
