// Products of one vector with the rows of a text or with the weights of a head, each sum in the order of OpenBLAS's
// kernel for AVX2. What that kernel leaves to plain code is multiplied and added without fusing, as there.

#define CHUNK 8  // products of a chain that is added to the sum as a whole
#define SIDE_BY_SIDE 16  // labels that the kernel works on together; of others it makes two chains a chunk
#define FUSED __attribute__((target("avx2,fma")))

static float lanes_sum(const float *lanes, int num) {
    float low[4];
    for (int lane = 0; lane < 4; lane++) low[lane] = num == 8 ? lanes[lane] + lanes[lane + 4] : lanes[lane];
    return (low[0] + low[1]) + (low[2] + low[3]);
}

// Of the states [T, 384] with a vector [384], into `out` [T].
FUSED static void weigh_tokens(const float *states, long num_tokens, const float *vector, float *out) {
    long whole = num_tokens - num_tokens % 4;
    for (long token = 0; token < num_tokens; token++) {
        const float *of = states + token * WIDTH;
        float lanes[8] = {0};
        int num = token >= whole && num_tokens - whole >= 2 && token < whole + 2 ? 4 : 8;
        if (token < whole) {
            __m256 sums = _mm256_setzero_ps();
            for (int k = 0; k < WIDTH; k += 8)
                sums = _mm256_fmadd_ps(_mm256_loadu_ps(of + k), _mm256_loadu_ps(vector + k), sums);
            _mm256_storeu_ps(lanes, sums);
        } else if (num == 8) {
            __m256 sums = _mm256_setzero_ps();
            for (int k = 0; k < WIDTH; k += 8)
                sums = _mm256_add_ps(sums, _mm256_mul_ps(_mm256_loadu_ps(of + k), _mm256_loadu_ps(vector + k)));
            _mm256_storeu_ps(lanes, sums);
        } else {
            __m128 sums = _mm_setzero_ps();
            for (int k = 0; k < WIDTH; k += 4)
                sums = _mm_add_ps(sums, _mm_mul_ps(_mm_loadu_ps(of + k), _mm_loadu_ps(vector + k)));
            _mm_storeu_ps(lanes, sums);
        }
        out[token] = lanes_sum(lanes, num);
    }
}

// The states [T, 384] with the share of each token, into `out` [384].
__attribute__((unused)) FUSED static void mix_tokens(const float *states, long num_tokens, const float *shares, float *out) {
    long whole = num_tokens - num_tokens % 4;
    for (int k = 0; k < WIDTH; k += 16) {
        __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
        for (long first = 0; first < whole;) {
            long end = first + CHUNK <= whole ? first + CHUNK : whole;
            __m256 a = _mm256_setzero_ps(), b = _mm256_setzero_ps();
            for (; first < end; first++) {
                __m256 share = _mm256_set1_ps(shares[first]);
                a = _mm256_fmadd_ps(share, _mm256_loadu_ps(states + first * WIDTH + k), a);
                b = _mm256_fmadd_ps(share, _mm256_loadu_ps(states + first * WIDTH + k + 8), b);
            }
            low = _mm256_add_ps(low, a), high = _mm256_add_ps(high, b);
        }
        for (long token = whole; token < num_tokens; token++) {
            __m256 share = _mm256_set1_ps(shares[token]);
            low = _mm256_add_ps(low, _mm256_mul_ps(share, _mm256_loadu_ps(states + token * WIDTH + k)));
            high = _mm256_add_ps(high, _mm256_mul_ps(share, _mm256_loadu_ps(states + token * WIDTH + k + 8)));
        }
        _mm256_storeu_ps(out + k, low);
        _mm256_storeu_ps(out + k + 8, high);
    }
}

// Of a vector [num], a multiple of 8, with `count` columns of weights [num, stride], 4 or 8, in two chains a chunk.
FUSED static void two_chains(const float *vector, long num, const float *weights, long stride, int count, float *out) {
    __m256i kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256 whole = _mm256_setzero_ps();
    for (long first = 0; first < num; first += CHUNK) {
        __m256 even = _mm256_setzero_ps(), odd = _mm256_setzero_ps();
        for (long k = first; k < first + CHUNK; k += 2) {
            even = _mm256_fmadd_ps(_mm256_set1_ps(vector[k]), _mm256_maskload_ps(weights + k * stride, kept), even);
            odd = _mm256_fmadd_ps(_mm256_set1_ps(vector[k + 1]), _mm256_maskload_ps(weights + (k + 1) * stride, kept), odd);
        }
        whole = _mm256_add_ps(whole, _mm256_add_ps(even, odd));
    }
    _mm256_maskstore_ps(out, kept, whole);
}

// The same with 16 columns, one chain a chunk.
FUSED static void one_chain(const float *vector, long num, const float *weights, long stride, float *out) {
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    for (long first = 0; first < num; first += CHUNK) {
        __m256 a = _mm256_setzero_ps(), b = _mm256_setzero_ps();
        for (long k = first; k < first + CHUNK; k++) {
            __m256 of = _mm256_set1_ps(vector[k]);
            a = _mm256_fmadd_ps(of, _mm256_loadu_ps(weights + k * stride), a);
            b = _mm256_fmadd_ps(of, _mm256_loadu_ps(weights + k * stride + 8), b);
        }
        low = _mm256_add_ps(low, a), high = _mm256_add_ps(high, b);
    }
    _mm256_storeu_ps(out, low);
    _mm256_storeu_ps(out + 8, high);
}

// Of a vector [num], a multiple of 8, with weights [num, labels], into `out` [labels]; not two labels, of which the
// kernel adds in yet another order.
static void weigh_labels(const float *vector, long num, const float *weights, long num_labels, float *out) {
    long whole = num_labels - num_labels % 4, label = 0;
    if (whole & 4) two_chains(vector, num, weights, num_labels, 4, out), label += 4;
    if (whole & 8) two_chains(vector, num, weights + label, num_labels, 8, out + label), label += 8;
    for (; label < whole; label += SIDE_BY_SIDE) one_chain(vector, num, weights + label, num_labels, out + label);
    if (num_labels == 3) {
        float sums[3] = {0};
        for (long k = 0; k < num; k += 2)
            for (int at = 0; at < 3; at++)
                sums[at] += vector[k] * weights[k * num_labels + whole + at]
                            + vector[k + 1] * weights[(k + 1) * num_labels + whole + at];
        memcpy(out + whole, sums, sizeof(sums));
        return;
    }
    for (label = whole; label < num_labels; label++) out[label] = 0;
    for (long k = 0; k < num; k++)
        for (label = whole; label < num_labels; label++) out[label] += vector[k] * weights[k * num_labels + label];
}
