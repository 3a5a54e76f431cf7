// The loops of `products.h` over vectors of LANES numbers, for one kind of processor.

#define UNROLLED _Pragma("GCC unroll 8")

// One chain for each half: `rows` tokens from `states` on, `num` vectors of labels from `weights` on, into `out`;
// `at_once` halves, 1 or 2, are added up side by side.
#define CHAINED(rows, num, at_once)                                                                 \
    do {                                                                                            \
        VECTOR sums[rows][num][2];                                                                  \
        for (int first = 0; first < 2; first += at_once) {                                          \
            UNROLLED for (int r = 0; r < rows; r++)                                                 \
                UNROLLED for (int v = 0; v < num; v++)                                              \
                    UNROLLED for (int half = 0; half < at_once; half++) sums[r][v][first + half] = ZERO(); \
            for (int k = first * HALF; k < (first + 1) * HALF; k++)                                 \
                UNROLLED for (int half = 0; half < at_once; half++) {                               \
                    VECTOR of[num];                                                                 \
                    UNROLLED for (int v = 0; v < num; v++)                                          \
                        of[v] = LOAD(weights + (k + half * HALF) * num_padded + v * LANES);         \
                    UNROLLED for (int r = 0; r < rows; r++) {                                       \
                        VECTOR state = FILL(states[r * WIDTH + k + half * HALF]);                   \
                        UNROLLED for (int v = 0; v < num; v++)                                      \
                            sums[r][v][first + half] = FMA(state, of[v], sums[r][v][first + half]); \
                    }                                                                               \
                }                                                                                   \
        }                                                                                           \
        for (int r = 0; r < rows; r++)                                                              \
            for (int v = 0; v < num; v++)                                                           \
                STORE(out + r * num_padded + v * LANES, ADD(sums[r][v][0], sums[r][v][1]));         \
    } while (0)

// Two chains for each half, of even and of odd products.
#define PAIRED(rows, num, Vector, lanes, zero, load, store, fill, add, fma)                    \
    do {                                                                                       \
        Vector whole[rows][num];                                                               \
        UNROLLED for (int half = 0; half < 2; half++) {                                                 \
            Vector sums[rows][num][2];                                                         \
            UNROLLED for (int r = 0; r < (rows); r++)                           \
                UNROLLED for (int v = 0; v < (num); v++)                        \
                    sums[r][v][0] = sums[r][v][1] = zero();                                    \
            for (int k = half * HALF; k < (half + 1) * HALF; k += 2)                           \
                UNROLLED for (int odd = 0; odd < 2; odd++) {                    \
                    Vector of[num];                                                            \
                    UNROLLED for (int v = 0; v < (num); v++)                    \
                        of[v] = load(weights + (k + odd) * num_padded + v * lanes);            \
                    UNROLLED for (int r = 0; r < (rows); r++) {                 \
                        Vector state = fill(states[r * WIDTH + k + odd]);                      \
                        UNROLLED for (int v = 0; v < (num); v++)                \
                            sums[r][v][odd] = fma(state, of[v], sums[r][v][odd]);              \
                    }                                                                          \
                }                                                                              \
            UNROLLED for (int r = 0; r < (rows); r++)                           \
                UNROLLED for (int v = 0; v < (num); v++) {                      \
                    Vector sum = add(sums[r][v][0], sums[r][v][1]);                            \
                    whole[r][v] = half ? add(whole[r][v], sum) : sum;                          \
                }                                                                              \
        }                                                                                      \
        for (int r = 0; r < (rows); r++)                                                       \
            for (int v = 0; v < (num); v++) store(out + r * num_padded + v * lanes, whole[r][v]); \
    } while (0)

TARGET static void JOINED(chain_6_wide, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(6, NUM_WIDE, 1);
}

TARGET static void JOINED(chain_1_wide, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(1, NUM_WIDE, AT_ONCE);
}

TARGET static void JOINED(chain_2_wide, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(2, NUM_WIDE, AT_ONCE);
}

TARGET static void JOINED(chain_3_wide, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(3, NUM_WIDE, AT_ONCE);
}

TARGET static void JOINED(chain_1, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(1, 1, 2);
}

TARGET static void JOINED(chain_2, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(2, 1, 2);
}

TARGET static void JOINED(chain_3, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(3, 1, 2);
}

TARGET static void JOINED(chain_4, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(4, 1, 2);
}

TARGET static void JOINED(chain_6, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    CHAINED(6, 1, 2);
}

TARGET static void JOINED(pair_rows, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    PAIRED(4, NUM_PAIRED, VECTOR, LANES, ZERO, LOAD, STORE, FILL, ADD, FMA);
}

TARGET static void JOINED(pair_edge, ISA)(const float *states, const float *weights, long num_padded, float *out) {
    PAIRED(ROWS_OF_TILE, 1, __m256, 8, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps,
           _mm256_add_ps, _mm256_fmadd_ps);
}

typedef void (*JOINED(Tile, ISA))(const float *, const float *, long, float *);

// One chain for `rows` tokens, 1 to 4 or 6, and the labels from `first` on.
TARGET static void JOINED(chain, ISA)(const float *states, int rows, const float *weights, long first, long num_padded,
                                      long num_labels, float *out) {
    static const JOINED(Tile, ISA) narrow[7] = {
        0, JOINED(chain_1, ISA), JOINED(chain_2, ISA), JOINED(chain_3, ISA), JOINED(chain_4, ISA), 0, JOINED(chain_6, ISA)
    };
    static const JOINED(Tile, ISA) wide[7] = {
        0, JOINED(chain_1_wide, ISA), JOINED(chain_2_wide, ISA), JOINED(chain_3_wide, ISA), 0, 0, JOINED(chain_6_wide, ISA)
    };
    for (long at = first; at < num_labels;) {
        int is_wide = wide[rows] && at + NUM_WIDE * LANES <= num_padded;
        (is_wide ? wide : narrow)[rows](states, weights + at, num_padded, out + at);
        at += is_wide ? NUM_WIDE * LANES : LANES;
    }
}

// A text's products into `out` [T, labels], through `room` [ROWS_OF_TILE, num_padded].
TARGET static void JOINED(multiply, ISA)(const float *states, long num_tokens, const float *weights, long num_padded,
                                         long num_labels, float *out) {
    float room[ROWS_OF_TILE * MAX_LABELS];
    long whole = num_labels - num_labels % COLUMNS_OF_BLOCK;
    for (long at = 0; at < num_tokens;) {
        long left = num_tokens - at, in_block = at % ROWS_OF_BLOCK;
        int rows;
        const float *of = states + at * WIDTH;
        if (in_block + left >= ROWS_OF_BLOCK) {
            rows = ROWS_OF_TILE;
            JOINED(chain, ISA)(of, rows, weights, 0, num_padded, num_labels, room);
            if (in_block == 0 && whole) {
                JOINED(pair_edge, ISA)(of, weights, num_padded, room);
                JOINED(pair_edge, ISA)(of, weights + whole - EDGE, num_padded, room + whole - EDGE);
            }
        } else if (left >= 4) {
            rows = 4;
            for (long label = 0; label < whole; label += NUM_PAIRED * LANES)
                JOINED(pair_rows, ISA)(of, weights + label, num_padded, room + label);
            JOINED(chain, ISA)(of, rows, weights, whole, num_padded, num_labels, room);
        } else {
            rows = (int)left;
            JOINED(chain, ISA)(of, rows, weights, 0, num_padded, num_labels, room);
        }
        for (int row = 0; row < rows; row++)
            memcpy(out + (at + row) * num_labels, room + row * num_padded, num_labels * sizeof(float));
        at += rows;
    }
}
