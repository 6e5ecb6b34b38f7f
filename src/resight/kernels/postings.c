/* Compare histograms through an inverted file: every shared word adds to the image's total. */
#include "kernels.h"

/* One word at a time. The images of a list ascend, so the loop reads and writes the totals in order. */
#define ADD(GAIN)                                                                                                      \
    for (int64_t i = from; i < to; i++) {                                                                              \
        const float b = lists->values[i];                                                                              \
        const uint32_t image = (uint32_t)lists->images[i];                                                             \
        if (image >= count)                                                                                            \
            return 0;                                                                                                  \
        totals[image] += (GAIN);                                                                                       \
    }

int add_postings(const Postings *lists, const float *query, enum Gain gain, float *totals, uint32_t count)
{
    for (int64_t word = 0; word < lists->words; word++) {
        const int64_t from = lists->starts[word], to = lists->stops[word];
        const float a = query[word];
        if (gain == PRODUCT) {
            ADD(a * b)
        } else if (gain == OVERLAP) {
            ADD(2 * (a < b ? a : b))
        } else {
            ADD(a + b > 0 ? 4 * a * b / (a + b) : 0)
        }
    }
    return 1;
}
