/* MaxSim over 4-bit product codes: a table of 16 entries fits a register, and one shuffle looks up 32 tokens.
 *
 * Entries are 0..63, so that four of them add up in 8 bits. Sums of four then go to two 16-bit sums: `all` adds low
 * and high byte together, modulo 2^16, and `odd` the high byte alone; the low byte's sum is all - 256 × odd.
 * Two blocks share every loaded table. A block that is not full repeats one of its tokens, which changes no maximum. */
#include "avx2.h"

/* Halves of bytes → bytes: 32 tokens per register, one register per part. */
static void expand(const uint8_t *codes, size_t parts, __m256i *into)
{
    const __m256i low_half = _mm256_set1_epi8(15);
    for (size_t j = 0; j < parts; j++) {
        const __m128i pair = _mm_loadu_si128((const __m128i *)(codes + 16 * j));
        const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(pair), _mm_srli_epi16(pair, 4), 1);
        into[j] = _mm256_and_si256(both, low_half);
    }
}

INLINE __m256i load_table(const uint8_t *table)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
}

/* The largest of 32 sums, which are stored as the sums of 16 low bytes and 16 high bytes. */
INLINE uint16_t largest(__m256i all, __m256i odd)
{
    const __m256i even = _mm256_sub_epi16(all, _mm256_slli_epi16(odd, 8));
    const __m256i both = _mm256_max_epu16(even, odd);
    const __m128i half = _mm_max_epu16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    const __m128i least = _mm_minpos_epu16(_mm_xor_si128(half, _mm_set1_epi16(-1)));
    return (uint16_t)~_mm_extract_epi16(least, 0);
}

/* best[block][queries]: the best sum of each query token in two expanded blocks. */
static void score_blocks(const uint8_t *tables, const TableQuery *query, __m256i *const blocks[2], uint16_t *const best[2])
{
    for (int64_t q = 0; q < query->queries; q += 2) {
        __m256i all[4], odd[4];
        for (int i = 0; i < 4; i++)
            all[i] = odd[i] = _mm256_setzero_si256();
        for (size_t j = 0; j < query->parts; j += 4, tables += 128) {
            UNROLL for (int z = 0; z < 2; z++)
            {
                const __m256i t0 = load_table(tables + 64 * z), t1 = load_table(tables + 64 * z + 16);
                const __m256i t2 = load_table(tables + 64 * z + 32), t3 = load_table(tables + 64 * z + 48);
                UNROLL for (int b = 0; b < 2; b++)
                {
                    const __m256i *codes = blocks[b] + j;
                    const __m256i sum = _mm256_add_epi8(
                        _mm256_add_epi8(_mm256_shuffle_epi8(t0, codes[0]), _mm256_shuffle_epi8(t1, codes[1])),
                        _mm256_add_epi8(_mm256_shuffle_epi8(t2, codes[2]), _mm256_shuffle_epi8(t3, codes[3])));
                    all[2 * z + b] = keep_order(_mm256_add_epi16(all[2 * z + b], sum));
                    odd[2 * z + b] = keep_order(_mm256_add_epi16(odd[2 * z + b], _mm256_srli_epi16(sum, 8)));
                }
            }
        }
        for (int z = 0; z < 2; z++)
            for (int b = 0; b < 2; b++)
                best[b][q + z] = largest(all[2 * z + b], odd[2 * z + b]);
    }
}

/* Blocks come in one stream across images; an image is done after its last block. */
typedef struct {
    const Images *images;
    int64_t number, block; /* the next block to take */
} Stream;

/* Image number of the next block, or the end of the list. It skips images without blocks. */
static int64_t take(Stream *stream, int64_t *block)
{
    while (stream->number < stream->images->end) {
        const int64_t row = image_row(stream->images, stream->number);
        if (stream->block < 0)
            stream->block = stream->images->offsets[row];
        if (stream->block < stream->images->offsets[row + 1]) {
            *block = stream->block++;
            return stream->number;
        }
        stream->number++;
        stream->block = -1;
    }
    return stream->number;
}

static float combine(const TableQuery *query, const uint16_t *best)
{
    float total = 0.0f;
    for (int64_t q = 0; q < query->queries; q++)
        total = total + ((float)best[q] * query->scales[q] + query->biases[q]);
    return total;
}

int maxsim_pq4(const uint8_t *tables, const TableQuery *query, const uint8_t *codes, const Images *images, float *out)
{
    const size_t parts = query->parts, queries = (size_t)query->queries;
    __m256i *expanded = _mm_malloc(2 * parts * sizeof(__m256i), 32);
    uint16_t *sums = malloc(3 * queries * sizeof *sums);
    const int failed = !(expanded && sums);
    if (!failed) {
        __m256i *const blocks[2] = {expanded, expanded + parts};
        uint16_t *const best[2] = {sums, sums + queries};
        uint16_t *running = sums + 2 * queries;
        int64_t open = -1; /* the image that `running` belongs to */
        Stream stream = {images, images->begin, -1};
        for (int64_t i = images->begin; i < images->end; i++)
            out[i] = -INFINITY;
        for (;;) {
            int64_t block = 0, owners[2];
            for (int b = 0; b < 2; b++) {
                owners[b] = take(&stream, &block);
                if (owners[b] < images->end)
                    expand(codes + (size_t)block * parts * 16, parts, blocks[b]);
                else if (b == 1)
                    memcpy(blocks[1], blocks[0], parts * sizeof(__m256i));
            }
            if (owners[0] >= images->end)
                break;
            score_blocks(tables, query, blocks, best);
            for (int b = 0; b < 2 && owners[b] < images->end; b++) {
                if (owners[b] != open)
                    memset(running, 0, queries * sizeof *running);
                open = owners[b];
                for (size_t q = 0; q < queries; q++)
                    running[q] = best[b][q] > running[q] ? best[b][q] : running[q];
                out[open] = combine(query, running);
            }
        }
    }
    _mm_free(expanded);
    free(sums);
    return failed;
}
