/* Every AVX2 file includes this header first: it sets the instruction set of that file alone, and defines the few
 * compiler keywords we need. It sets the target here and not by a compiler flag, so that module.c stays plain x86-64:
 * on a machine without AVX2, the module must load, check the processor and report that it cannot run. */
#ifndef RESIGHT_AVX2_H
#define RESIGHT_AVX2_H

#if defined(__clang__)
#if defined(RESIGHT_VNNI) /* defined before by a file that needs more: see byte_lanes_vnni.h */
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,popcnt"))), apply_to = function)
#endif
#include <immintrin.h>
#define UNROLL _Pragma("clang loop unroll(full)")
#define INLINE static inline __attribute__((always_inline))
#elif defined(__GNUC__)
#if defined(RESIGHT_VNNI)
#pragma GCC target("avx2,fma,f16c,popcnt,avx512f,avx512bw,avx512vl,avx512vnni")
#else
#pragma GCC target("avx2,fma,f16c,popcnt")
#endif
#include <immintrin.h>
#define UNROLL _Pragma("GCC unroll 16")
#define INLINE static inline __attribute__((always_inline))
#else
#include <immintrin.h>
#define UNROLL
#define INLINE static __forceinline
#endif

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* By default, the compiler adds several products together before it updates the accumulator. That costs registers and
 * a third of the speed. An empty instruction that claims to change a value keeps the order as written. */
INLINE __m256i keep_order(__m256i value)
{
#if defined(__GNUC__) || defined(__clang__)
    __asm__ volatile("" : "+x"(value));
#endif
    return value;
}

/* The same for two independent sums, which the processor may then compute in parallel. */
INLINE void keep_pair(__m256i *first, __m256i *second)
{
#if defined(__GNUC__) || defined(__clang__)
    __asm__ volatile("" : "+x"(*first), "+x"(*second));
#endif
    (void)first;
    (void)second;
}

/* Tokens of one image per block: 6 rows × 16 query lanes fill 12 of the 16 registers. */
#define BLOCK 6

/* Number of tokens in block `number` of `blocks`, balanced so that no block holds a single leftover token. */
INLINE int64_t share(int64_t tokens, int64_t blocks, int64_t number)
{
    return tokens / blocks + (number < tokens % blocks);
}

INLINE float add_lanes(__m256 value)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

/* Four bytes of a row in every lane. A row starts at any address, hence the copy instead of a cast. */
INLINE __m256i spread_word(const uint8_t *row)
{
    int32_t word;
    memcpy(&word, row, sizeof word);
    return _mm256_set1_epi32(word);
}

/* Address of the next image. The kernel prefetches its cache lines while it compares this one, a few per step. */
typedef struct {
    const char *at;
    const char *end;
    int64_t stride; /* bytes to prefetch per step of a block: 64 or 128 */
} Ahead;

INLINE Ahead look_ahead(const Images *images, int64_t number, const void *tokens, size_t row_bytes, int64_t panels)
{
    const int64_t next = image_row(images, number + 1 < images->end ? number + 1 : number);
    const char *start = (const char *)tokens + (size_t)images->offsets[next] * row_bytes;
    const char *end = (const char *)tokens + (size_t)images->offsets[next + 1] * row_bytes;
    const Ahead ahead = {start, end, panels == 1 ? 128 : 64};
    return ahead;
}

INLINE void fetch_step(const Ahead *ahead, const char *line)
{
    _mm_prefetch(line, _MM_HINT_T1);
    _mm_prefetch(line + (ahead->stride - 64), _MM_HINT_T1);
}

INLINE void finish_block(Ahead *ahead, int64_t steps)
{
    if (ahead->end - ahead->at > steps * ahead->stride)
        ahead->at += steps * ahead->stride;
}

#endif
