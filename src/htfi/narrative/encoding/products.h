// Products of the states of a text's tokens, [T, 384], with the weights of heads, [384, S], in one fixed order.
//
// The order is that in which OpenBLAS adds on processors with AVX2 (its kernel "Haswell", which also serves AMD's): so
// the bits are those that numpy gives there, on every processor. A sum has two halves of 192 products, each a chain of
// fused multiply-adds, or two chains, of the even and of the odd products; the halves' sums are added at the end. Which
// of the two it is follows from where the token and the label stand among all (`products_tile.h`).

#include <string.h>

#define WIDTH 384
#define HALF 192
#define ROWS_OF_BLOCK 12
#define ROWS_OF_TILE 6
#define COLUMNS_OF_BLOCK 16
#define MAX_LABELS 512  // padded
#define EDGE 8  // labels at both ends of the whole blocks

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define JOIN_NAMES(name, suffix) name##_##suffix
#define JOINED(name, suffix) JOIN_NAMES(name, suffix)

#define ISA avx512
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define VECTOR __m512
#define LANES 16
#define NUM_WIDE 4
#define NUM_PAIRED 2
#define AT_ONCE 2  // halves of one to three tokens
#define ZERO _mm512_setzero_ps
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define FILL _mm512_set1_ps
#define ADD _mm512_add_ps
#define FMA _mm512_fmadd_ps
#include "products_tile.h"
#undef ISA
#undef TARGET
#undef VECTOR
#undef LANES
#undef NUM_WIDE
#undef NUM_PAIRED
#undef AT_ONCE
#undef UNROLLED
#undef CHAINED
#undef PAIRED
#undef ZERO
#undef LOAD
#undef STORE
#undef FILL
#undef ADD
#undef FMA

#define ISA avx2
#define TARGET __attribute__((target("avx2,fma")))
#define VECTOR __m256
#define LANES 8
#define NUM_WIDE 2
#define NUM_PAIRED 1
#define AT_ONCE 1
#define ZERO _mm256_setzero_ps
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define FILL _mm256_set1_ps
#define ADD _mm256_add_ps
#define FMA _mm256_fmadd_ps
#include "products_tile.h"

#include "products_vectors.h"

// Of the processor's instructions: 2 AVX-512, 1 AVX2, 0 neither, and nothing is multiplied here.
static int best_products_level(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return __builtin_cpu_supports("avx512f") ? 2 : 1;
}

static void multiply_text(const float *states, long num_tokens, const float *weights, long num_padded, long num_labels,
                          float *out, int level) {
    if (level == 2) multiply_avx512(states, num_tokens, weights, num_padded, num_labels, out);
    else multiply_avx2(states, num_tokens, weights, num_padded, num_labels, out);
}

#else

static int best_products_level(void) { return 0; }

static void multiply_text(const float *states, long num_tokens, const float *weights, long num_padded, long num_labels,
                          float *out, int level) {
    (void)states, (void)num_tokens, (void)weights, (void)num_padded, (void)num_labels, (void)out, (void)level;
}

static void weigh_tokens(const float *states, long num_tokens, const float *vector, float *out) {
    (void)states, (void)num_tokens, (void)vector, (void)out;
}

static void mix_tokens(const float *states, long num_tokens, const float *shares, float *out) {
    (void)states, (void)num_tokens, (void)shares, (void)out;
}

static void weigh_labels(const float *vector, long num, const float *weights, long num_labels, float *out) {
    (void)vector, (void)num, (void)weights, (void)num_labels, (void)out;
}

#endif
