/* pair_points with AVX-512 VNNI. */
#include "byte_lanes_vnni.h"
#include "pair_points.h"

int pair_points_vnni(const PointPair *points, float squared_ratio, int mutual, int32_t *nearest, float *best)
{
    return pair(points, squared_ratio, mutual, nearest, best);
}
