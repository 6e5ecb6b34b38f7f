/* nearest_words with AVX2. */
#include "byte_lanes_avx2.h"
#include "nearest_words.h"

int nearest_words(const Words *words, int64_t wanted, int32_t *numbers, float *closeness)
{
    return find_words(words, wanted, numbers, closeness);
}
