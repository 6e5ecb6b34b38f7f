/* The C kernels: their inputs and outputs. All arrays are row-major and belong to the caller.
 *
 * A kernel scores images [begin, end) of a list: MaxSim, the weighted sum over query tokens of the best dot product
 * with a token of the image. Kernels read database tokens in place. The caller rearranges only the query, into panels
 * of 16 lanes: lane = query token, so that the maximum over an image's tokens never crosses lanes.
 * An image without tokens scores minus infinity. */
#ifndef RESIGHT_KERNELS_H
#define RESIGHT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define LANES 16
#define WIDE_LANES 32 /* of a panel of bytes */

typedef struct {
    const int64_t *offsets; /* [N + 1]: image r holds tokens offsets[r] to offsets[r + 1] */
    const int64_t *rows;    /* images to score, or NULL: all of them in order */
    int64_t begin, end;
} Images;

static inline int64_t image_row(const Images *images, int64_t number)
{
    return images->rows ? images->rows[number] : number;
}

/* A query for the fp32 and fp16 kernels. */
typedef struct {
    const float *values;  /* [panels, d, 16] */
    const float *weights; /* [panels × 16]: 1 / Kq, and 0 for the unused lanes of the last panel */
    int64_t panels;
} FloatQuery;

/* A query in 7 bits. `start16` and `start32` remove the 128 added to every database value. */
typedef struct {
    const int8_t *values;   /* [panels, d / 4, 16, 4] in -64..64 */
    const int16_t *start16; /* [panels, 16, 2], modulo 2^16 */
    const int32_t *start32; /* [panels, 16] */
    const float *steps;     /* [panels × 16]: the value of one unit of a lane */
    const float *weights;   /* [panels × 16] */
    int64_t panels;
} ByteQuery;

/* Tokens in 8 bits: x ≈ step × (value - 128), and a number per token to add to its dot product. */
typedef struct {
    const uint8_t *values; /* [n, d], d a multiple of 4 */
    const float *steps;    /* [n] */
    const float *shifts;   /* [n] */
    int64_t count;
} ByteTokens;

void maxsim_fp32(const FloatQuery *query, const float *tokens, size_t d, const Images *images, float *out);
int maxsim_fp16(const FloatQuery *query, const uint16_t *tokens, size_t d, const Images *images, float *out);

/* maxsim_int8 adds in 16 bits: the caller ensures that no lane overflows. maxsim_int8_wide adds in 32, as does
 * maxsim_int8_vnni, which needs AVX-512 VNNI and gives the same scores. */
void maxsim_int8(const ByteQuery *query, const ByteTokens *tokens, size_t d, const Images *images, float *out);
void maxsim_int8_wide(const ByteQuery *query, const ByteTokens *tokens, size_t d, const Images *images, float *out);
void maxsim_int8_vnni(const ByteQuery *query, const ByteTokens *tokens, size_t d, const Images *images, float *out);

/* For a few query tokens: lane = dimension. query [count, d] row-major; the rows of a byte query are padded with zeros
 * to `width`, a multiple of 32, and each query token has one step and one weight. */
void scan_fp32(const float *query, const float *weights, int64_t count, const float *tokens, size_t d,
               const Images *images, float *out);
int scan_int8(const int8_t *query, const float *steps, const float *weights, int64_t count, size_t width,
              const ByteTokens *tokens, size_t d, const Images *images, float *out);

/* Product quantisation. Tables hold the dot product of a query token with every centroid, as small integers:
 * score = sum over query tokens of scale × (best sum of entries) + bias.
 * pq4: tables [queries / 2, parts / 4, 2, 4, 16] in 0..63, codes [blocks, parts, 16] for 32 tokens per block
 * (low halves: tokens 0 to 15, high halves: 16 to 31), offsets count blocks. queries is even, parts a multiple of 4.
 * pq8: tables [panels, parts, 256, 16], codes [n, parts]. */
typedef struct {
    const float *scales;
    const float *biases;
    int64_t queries;
    size_t parts;
} TableQuery;

int maxsim_pq4(const uint8_t *tables, const TableQuery *query, const uint8_t *codes, const Images *images, float *out);
void maxsim_pq8(const int16_t *tables, const TableQuery *query, const uint8_t *codes, const Images *images, float *out);

/* Residual quantisation: score = bias + scale × the sum over query tokens of the best sum of entries.
 * tables [panels, parts, 256, 32], aligned to 32 bytes; the sum of any `parts` entries stays below 256; codes
 * [n, parts]. */
void maxsim_rq(const uint8_t *tables, int64_t panels, size_t parts, float scale, float bias, const uint8_t *codes,
               const Images *images, float *out);

/* A query that lay_over places over images at some scales and shifts. Half a panel of query tokens, one per lane, has
 * tables of how near each token comes to the distinct places of image tokens: 1 if it lands on one, less with distance,
 * 0 if it lands outside the image. */
typedef struct {
    const float *values;   /* [panels, d, 16] */
    const float *near_x;   /* [panels × 2, scales, columns, steps, 8] */
    const float *near_y;   /* [panels × 2, scales, rows, steps, 8] */
    const uint8_t *inside; /* [panels × 2, scales, steps]: 0 if all eight land outside with this shift along y */
    const float *weights;  /* [scales, steps along y, steps along x]: multiply the sum over query tokens; not negative */
    int64_t panels, scales, columns, rows, steps;
} PlacedQuery;

/* Tokens of images and the number of each one's column and row in the tables above. Neighbours in one row cost less. */
typedef struct {
    const float *values; /* [n, d] */
    const float *mean;   /* [d], to be subtracted; the rest is scaled to unit length */
    const int32_t *columns, *rows; /* [n] */
} PlacedTokens;

/* The best score over all scales and shifts; 0 for an image without tokens, NaN if a token is not finite. */
int lay_over(const PlacedQuery *query, const PlacedTokens *tokens, size_t d, const Images *images, float *out);

/* Posting lists of some words: list w runs from starts[w] to stops[w] of `images` and `values`. A word with value a in
 * the query and b in the image adds to the image's total: */
enum Gain { PRODUCT, /* a b */ OVERLAP, /* a + b - |a - b| */ CHI2 /* a + b - (a - b)² / (a + b) */ };

typedef struct {
    const int64_t *starts, *stops;
    int64_t words;
    const int32_t *images;
    const float *values;
} Postings;

/* Adds to totals [count]; returns 0 as soon as a list names an image beyond them. */
int add_postings(const Postings *lists, const float *query, enum Gain gain, float *totals, uint32_t count);

/* The same with a binary code of `bytes` bytes per image and word instead of a value. */
typedef struct {
    const int64_t *starts, *stops;
    int64_t words;
    const int32_t *images;
    const uint8_t *codes;
    int64_t bytes;
} CodeLists;

/* Adds weights[w] × gains[number of differing bits] to totals [count]; returns 0 as soon as a list names an image
 * beyond them. query [words, bytes], gains [8 × bytes + 1]. */
int add_codes(const CodeLists *lists, const uint8_t *query, const double *weights, const double *gains, double *totals,
              uint32_t count);

/* Key points of a query and an image in 8 bits, row-major; only their directions count. */
typedef struct {
    const int8_t *query; /* [queries, d], d a multiple of 4 */
    const int8_t *image; /* [rows, d] */
    int64_t queries, rows;
    size_t d;
} PointPair;

/* The row nearest to each query row by cosine, or -1: where 1 - cos is not below squared_ratio × that of the second
 * nearest, or, if mutual, where another query row is nearer to it. nearest and best have room for the query rows rounded
 * up to a multiple of 16. The second function needs AVX-512 VNNI and gives the same. Both return whether memory lacked. */
int pair_points(const PointPair *points, float squared_ratio, int mutual, int32_t *nearest, float *best);
int pair_points_vnni(const PointPair *points, float squared_ratio, int mutual, int32_t *nearest, float *best);

/* Rows, and the centres of visual words; d a multiple of 4. A centre is about step × its bytes. */
#define MOST_WORDS 16
typedef struct {
    const float *rows; /* [row_count, d] */
    int64_t row_count;
    const float *centres; /* [centre_count, d] */
    const int8_t *codes;  /* [centre_count, d] in -127..127 */
    const float *steps;   /* [centre_count] */
    const float *halves;  /* [centre_count]: half of the squared length */
    int64_t centre_count;
    size_t d;
    float longest, slack; /* the largest length of a centre, and of its difference from step × bytes */
} Words;

/* The `wanted` (at most MOST_WORDS) centres nearest to each row, nearest first, by x · c - |c|² / 2, which is
 * `closeness`. Both are [row_count, wanted]. The second function needs AVX-512 VNNI. Return whether memory lacked. */
int nearest_words(const Words *words, int64_t wanted, int32_t *numbers, float *closeness);
int nearest_words_vnni(const Words *words, int64_t wanted, int32_t *numbers, float *closeness);

/* Matched key points of query and image, and by how much size (log) and angle (degrees) change; NaN: unknown. */
typedef struct {
    const double *query_x, *query_y, *image_x, *image_y, *growth, *turn; /* [count] each */
    int64_t count;                                                       /* a multiple of 4 */
    double most_growth, most_turn;                                       /* differences from the model that still agree */
} Matches;

/* Of each similarity (real and imaginary part of scale and rotation, shift along x and y, log of scale, rotation in
 * degrees): how many matches it maps nearer than each radius, with size and angle that agree. counts [count, levels] */
void count_support(const Matches *matches, const double *similarities, int64_t count, const double *radii, int64_t levels,
                   int32_t *counts);

/* Peak rates of one core, as limits for the other kernels: multiply-adds on registers alone, and bytes read from memory
 * without any arithmetic. Each returns the number of its operations. */
double peak_fp32(int64_t rounds);
double peak_int8(int64_t rounds);
double peak_read(const uint8_t *bytes, size_t count);

#endif
