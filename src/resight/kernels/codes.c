/* Compare binary codes through an inverted file: every shared word adds to the image's total. */
#include "avx2.h"

INLINE uint32_t count_different(const uint8_t *a, const uint8_t *b, int64_t bytes)
{
    uint64_t different = 0, x, y;
    int64_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
        memcpy(&x, a + at, 8), memcpy(&y, b + at, 8);
        different += (uint64_t)_mm_popcnt_u64(x ^ y);
    }
    for (; at < bytes; at++)
        different += (uint64_t)_mm_popcnt_u32((unsigned)(a[at] ^ b[at]));
    return (uint32_t)different;
}

int add_codes(const CodeLists *lists, const uint8_t *query, const double *weights, const double *gains, double *totals,
              uint32_t count)
{
    const int64_t bytes = lists->bytes;
    for (int64_t word = 0; word < lists->words; word++) {
        const uint8_t *code = query + word * bytes;
        for (int64_t i = lists->starts[word]; i < lists->stops[word]; i++) {
            const uint32_t image = (uint32_t)lists->images[i];
            if (image >= count)
                return 0;
            totals[image] += weights[word] * gains[count_different(code, lists->codes + i * bytes, bytes)];
        }
    }
    return 1;
}
