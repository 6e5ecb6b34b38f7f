/* pair_points with AVX2. */
#include "byte_lanes_avx2.h"
#include "pair_points.h"

int pair_points(const PointPair *points, float squared_ratio, int mutual, int32_t *nearest, float *best)
{
    return pair(points, squared_ratio, mutual, nearest, best);
}
