/* nearest_words with AVX-512 VNNI. */
#include "byte_lanes_vnni.h"
#include "nearest_words.h"

int nearest_words_vnni(const Words *words, int64_t wanted, int32_t *numbers, float *closeness)
{
    return find_words(words, wanted, numbers, closeness);
}
