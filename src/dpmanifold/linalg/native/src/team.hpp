// The pass for matrices that are too large for one thread of a graphics card: a team of threads has one matrix.
//
// A team has four threads up to 16 x 16, eight up to 24 x 24, sixteen up to 32 x 32 and sixty-four beyond: as few as can
// hold a matrix, since what each of them does for the whole of it, the steps between columns, is done by all of them.
// A thread of a team holds some columns, whole, in registers (thread c of n has columns c, c + n, ...); what all of them
// need, such as a reflection, goes through memory that they share, two doubles at a time. Steps and formulas are those of
// tridiagonal.hpp and rational.hpp. On a processor, where it is for tests, a team is one thread that holds every column.
#pragma once

#include "choice.hpp"
#include "pass.hpp"

namespace {

#if defined(__CUDACC__)
#define DPM_SHARED_PAIR alignas(16)
#else
#define DPM_SHARED_PAIR
#endif

// Tables to choose from, matrix by matrix, where nothing public bounds the condition numbers: a table of few poles, one
// of some, and the largest one. Null where something does: then the work does not depend on the data.
struct Choice {
    const PoleTable *few, *some;
};
constexpr double FEW = 100.0, SOME = 1e4;

DPM_INLINE Choice choice_for(const Pass& pass, double condition) {
    const bool bounded = pass.radius < DPM_INFINITY || condition < SOME;
    return bounded ? Choice{nullptr, nullptr} : Choice{table_for(pass.function, FEW), table_for(pass.function, SOME)};
}

// Two neighbours in memory, the first at an even place: one access.
struct DPM_SHARED_PAIR Two {
    double first, second;
};

template <int K, int WARPS = 1>
struct Team {
#if defined(__CUDACC__)
    static constexpr int SIZE = K <= 16 ? 4 : K <= 24 ? 8 : K <= 32 ? 16 : 64;
#else
    static constexpr int SIZE = 1;
#endif
    static constexpr int COLUMNS = (K + SIZE - 1) / SIZE;                      // of one thread
    static constexpr int THREADS = SIZE < 32 && SIZE > 1 ? 32 * WARPS : SIZE;  // of a block
    static constexpr int MATRICES = THREADS / SIZE;
    static constexpr int STAGE = 8;                                      // rows by which the part of a matrix shrinks
    static constexpr int EVEN = K + K % 2;
    static constexpr int ODD = K | 1;                                    // rows of this length: columns without conflicts
    static constexpr int BATCH = SIZE == 1 ? 8 : SIZE < 32 ? SIZE : 32;  // poles that are factorised at once
    static constexpr int AT_ONCE = 2;                                    // of them, added up by one thread
    static constexpr int STAGES = (K - 2 + STAGE - 1) / STAGE;
    static constexpr int PACKED = K * (K + 1) / 2;
    static constexpr int COPIES = 4;  // of the sums, so that blocks do not wait for each other

    // Where the vector of reflection j stands; it is 0 before entry j + 1, and kept from the stage's first row on.
    static DPM_METHOD int reflection(int j) {
        const int stage = j / STAGE;
        return STAGE * (stage * EVEN - STAGE / 2 * stage * (stage - 1)) + (j - STAGE * stage) * (EVEN - STAGE * stage);
    }
    static constexpr int REFLECTIONS = STAGE * (STAGES * EVEN - STAGE / 2 * STAGES * (STAGES - 1));

    // Doubles of the square: a whole one for products, half of it or a batch of poles otherwise.
    static DPM_CONSTANT int square(int function, bool factor) {
        const int poles = BATCH * (K + ODD), entries = factor || function == EXP ? K * ODD : PACKED;
        return (entries > poles ? entries : poles) + 1 & ~1;
    }
    // Doubles of one team: the square, reflections, d, e, t, and partial sums with what else is passed around. They
    // begin at different banks, so that teams of a warp do not wait for each other.
    static DPM_CONSTANT int doubles(int function, bool factor) {
        const int all = square(function, factor) + (function == EXP ? K * ODD + 1 & ~1 : REFLECTIONS) + 3 * EVEN + 16;
        return SIZE > 1 && SIZE < 16 ? (all - SIZE + 15) / 16 * 16 + SIZE : all;
    }
    static DPM_CONSTANT int bytes(int function, bool factor) { return MATRICES * doubles(function, factor) * 8; }

    struct Memory {
        double *square, *reflections, *d, *e, *t, *w, *x, *partial;
        const double* first;  // the square of the block's first team
        int stride;           // from one team's square to the next one's
        int turn;             // which of the partial sums are next
    };

    static DPM_METHOD Memory arranged(double* first, int function, bool factor) {
        Memory m;
        m.first = first;
        m.stride = doubles(function, factor);
        double* base = first + number() * m.stride;
        m.square = base;
        m.reflections = base + square(function, factor);
        m.d = m.reflections + (function == EXP ? K * ODD + 1 & ~1 : REFLECTIONS);
        m.e = m.d + EVEN;
        m.t = m.e + EVEN;
        m.partial = m.t + EVEN;
        // Nobody needs the square while these are in use.
        m.w = base;
        m.x = base + EVEN;
        m.turn = 0;
        return m;
    }

    // ---------------------------------------------------------------- what a team does together

#if defined(__CUDACC__)
    static __device__ __forceinline__ int lane() { return threadIdx.x % SIZE; }
    static __device__ __forceinline__ int number() { return threadIdx.x / SIZE; }
    static __device__ __forceinline__ int copy() { return blockIdx.x % COPIES; }
    static __device__ __forceinline__ void wait() {
        if (SIZE > 32)
            __syncthreads();
        else
            __syncwarp();
    }
    // All teams of the block wait for each other.
    static __device__ __forceinline__ void everybody() {
        if (THREADS > 32)
            __syncthreads();
        else
            __syncwarp();
    }
    // What is read next, on its way.
    static __device__ __forceinline__ void expect(const double* start, int count) {
        for (int i = 16 * lane(); i < count; i += 16 * SIZE) asm volatile("prefetch.global.L2 [%0];" ::"l"(start + i));
    }
    template <typename Merge>
    static __device__ __forceinline__ double merged(double x, Memory& m, Merge merge) {
        DPM_UNROLL for (int step = (SIZE < 32 ? SIZE : 32) / 2; step; step /= 2)
            x = merge(x, __shfl_xor_sync(0xffffffffu, x, step));
        if (SIZE > 32) {
            double* partial = m.partial + 4 * m.turn;
            m.turn = 1 - m.turn;
            if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
            __syncthreads();
            x = merge(partial[0], partial[1]);
        }
        return x;
    }
    // Whether any thread of the warp, or of a larger team, says so: teams that share a warp go the same way.
    static __device__ __forceinline__ bool anywhere(bool here) {
        return SIZE > 32 ? __syncthreads_or(here) : __any_sync(0xffffffffu, here);
    }
    static __device__ __forceinline__ int most(int count) {
        return SIZE < 32 ? __reduce_max_sync(0xffffffffu, count) : count;
    }
#else
    static int lane() { return 0; }
    static int number() { return 0; }
    static int copy() { return 0; }
    static void wait() {}
    static void everybody() {}
    static void expect(const double*, int) {}
    template <typename Merge>
    static double merged(double x, Memory&, Merge) { return x; }
    static bool anywhere(bool here) { return here; }
    static int most(int count) { return count; }
#endif
    static DPM_METHOD double sum(double x, Memory& m) {
        return merged(x, m, [](double a, double b) { return a + b; });
    }
    // Two sums at once: they hide each other's latency.
    static DPM_METHOD void sums(double& x, double& y, Memory& m) {
#if defined(__CUDACC__)
        DPM_UNROLL for (int step = (SIZE < 32 ? SIZE : 32) / 2; step; step /= 2) {
            const double other = __shfl_xor_sync(0xffffffffu, x, step), another = __shfl_xor_sync(0xffffffffu, y, step);
            x += other, y += another;
        }
        if (SIZE > 32) {
            double* partial = m.partial + 4 * m.turn;
            m.turn = 1 - m.turn;
            if (threadIdx.x % 32 == 0) partial[2 * (threadIdx.x / 32)] = x, partial[2 * (threadIdx.x / 32) + 1] = y;
            __syncthreads();
            x = partial[0] + partial[2], y = partial[1] + partial[3];
        } else {
            __syncwarp();
        }
#endif
    }
    static DPM_METHOD double maximum(double x, Memory& m) {
        return merged(x, m, [](double a, double b) { return a > b ? a : b; });
    }
    // Whether any thread of the team says so.
    static DPM_METHOD bool someone(bool here, Memory& m) { return maximum(here ? 1.0 : 0.0, m) > 0; }

    // The columns of this thread; those of numbers beyond K belong to nobody, and are held as zeros.
    static DPM_METHOD int column(int own) { return lane() + own * SIZE; }

    static DPM_METHOD Two two(const double* place) { return *(const Two*)place; }

    // ---------------------------------------------------------------- between columns

    // Where the square keeps entry (l, c) of a triangle, l >= c: rows and columns are without conflicts of banks.
    static DPM_METHOD int packed_place(int l, int c) { return l * (l + 1) / 2 + c; }

    // Make columns symmetric from the entries on one side of the diagonal (below it, if `lower`).
    static DPM_METHOD void mirror(double a[COLUMNS][K], bool lower, Memory& m) {
        wait();
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            const int c = column(own);
            if (c < K) DPM_UNROLL for (int l = 0; l < K; ++l)
                if (lower ? l > c : l < c) m.square[lower ? packed_place(l, c) : packed_place(c, l)] = a[own][l];
        }
        wait();
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            const int c = column(own);
            if (c < K) DPM_UNROLL for (int l = 0; l < K; ++l)
                if (lower ? l < c : l > c) a[own][l] = m.square[lower ? packed_place(c, l) : packed_place(l, c)];
        }
        wait();
    }

    // Column c of f a, written to row c of the square.
    static DPM_METHOD void times(const double* f, bool lower, const double a[COLUMNS][K], Memory& m) {
        wait();
        DPM_UNROLL for (int start = 0; start < K; start += STAGE) {
            const int end = start + STAGE < K ? start + STAGE : K, most = lower ? end : K;
            for (int l = start; l < end; ++l) {
                double even[COLUMNS], odd[COLUMNS];
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) even[own] = odd[own] = 0.0;
                DPM_UNROLL for (int i = 0; i < K; ++i) {
                    if (i >= most) continue;
                    const double entry = !lower || i <= l ? f[l * K + i] : 0.0;
                    DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) (i % 2 ? odd : even)[own] += entry * a[own][i];
                }
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                    if (column(own) < K) m.square[column(own) * ODD + l] = even[own] + odd[own];
            }
        }
        wait();
    }

    // a <- f a f': F (F a)' with the entries below the diagonal.
    static DPM_METHOD void congruence(double a[COLUMNS][K], const double* f, bool lower, Memory& m) {
        times(f, lower, a, m);
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            if (column(own) < K) DPM_UNROLL for (int l = 0; l < K; ++l) a[own][l] = m.square[l * ODD + column(own)];
        times(f, lower, a, m);
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            const int c = column(own);
            if (c < K) DPM_UNROLL for (int l = 0; l < K; ++l)
                a[own][l] = l >= c ? m.square[c * ODD + l] : m.square[l * ODD + c];
        }
        wait();
    }

    // The largest of |diagonal entries|, or of the entries themselves.
    static DPM_METHOD double largest_diagonal(const double a[COLUMNS][K], bool size, Memory& m) {
        double top = size ? 0.0 : -DPM_INFINITY;
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l) {
                const double entry = size ? absolute(Vec{a[own][l]}).lane : a[own][l];
                if (entry > top) top = l == column(own) ? entry : top;
            }
        return maximum(top, m);
    }

    // Scale as `normalise` does: by an even power of two, to a largest diagonal entry of about 1.
    static DPM_METHOD long long normalised(double a[COLUMNS][K], Memory& m) {
        long long exponent = exponent_above(Vec{largest_diagonal(a, true, m)}).lane;
        exponent += exponent & 1;
        exponent = exponent > 1020 ? 1020 : exponent;
        const double scale = power_of_two(Ints{-exponent}).lane;
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l) a[own][l] *= scale;
        return exponent;
    }

    // ---------------------------------------------------------------- to tridiagonal form and back

    // Entry j of each own column, for j from `start` on.
    static DPM_METHOD double entry(const double* a, int start, int j) {
        double x = a[start];
        DPM_UNROLL for (int i = 1; i < STAGE; ++i)
            if (start + i < K && j == start + i) x = a[start + i];
        return x;
    }

    // y = S v over rows from `start` on, for the own columns: what is read from shared memory serves all of them.
    static DPM_METHOD void product(const double s[COLUMNS][K], const double* v, int start, double y[COLUMNS]) {
        double part[COLUMNS][4];
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int i = 0; i < 4; ++i) part[own][i] = 0.0;
        DPM_UNROLL for (int l = 0; l < K; l += 2)
            if (l >= start) {
                const Two pair = two(v + l - start);
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                    part[own][l % 4] += s[own][l] * pair.first;
                    if (l + 1 < K) part[own][l % 4 + 1] += s[own][l + 1] * pair.second;
                }
            }
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            y[own] = (part[own][0] + part[own][1]) + (part[own][2] + part[own][3]);
    }

    // Rows from `first` on, a stage of them: s -= v c, for a vector v that is kept from entry `start` on. Updates go by
    // stages, so that there are many of them that do not wait for each other.
    static DPM_METHOD void subtract(double s[COLUMNS][K], const double* v, int first, int start, const double c[COLUMNS]) {
        DPM_UNROLL for (int l = 0; l < K; l += 2) {
            if (l < first || l >= first + STAGE) continue;
            const Two pair = two(v + l - start);
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                s[own][l] -= pair.first * c[own];
                if (l + 1 < K) s[own][l + 1] -= pair.second * c[own];
            }
        }
    }

    // The reflections are those of `reflector`. With v = e + r x, where e is unit vector j + 1 and x what stands below
    // it in column j, the product A v = A e + r A x is formed before r is known; and what the next step needs of column
    // j + 1 is known before the update is done: so one exchange serves a step, and one pass updates and multiplies.
    static DPM_METHOD void tridiagonalise(double a[COLUMNS][K], Memory& m) {
        double x[COLUMNS], p[COLUMNS], here[COLUMNS];  // here: entry j + 1 of each column
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            if (column(own) == 0) m.d[0] = a[own][0];
            x[own] = announced(a[own][0], column(own), -1, m);
            here[own] = a[own][1];
        }
        if (K % 2 && lane() == 0) m.x[K] = 0.0;
        wait();
        product(a, m.x, 0, p);
        answer(p, here, -1, m);
        DPM_UNROLL for (int start = 0; start < K - 2; start += STAGE) {
            const int end = start + STAGE < K - 2 ? start + STAGE : K - 2;
            for (int j = start; j < end; ++j) {
                double tail = 0, across = 0;
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                    tail += x[own] * x[own], across += x[own] * p[own];
                sums(tail, across, m);
                const double *known = note(j - 1, m), head = known[0];
                // As in `reflector`, with fewer steps one after the other: t = 1 + |head|/length, r = 1/(head - beta).
                const bool clear = tail <= 1e-290;
                const double square = clear ? 1.0 : head * head + tail, root = reciprocal_root(Vec{square}).lane;
                const double length = square * root, size = absolute(Vec{head}).lane;
                const double inverse = reciprocal(Vec{size + length}).lane;
                const double t = clear ? 0.0 : 1.0 + size * root, r = clear ? 0.0 : head > 0 ? inverse : -inverse;
                const double along = known[2] + r * (2.0 * known[1] + r * across);  // v' A v
                const double shift = -0.5 * t * t * along, w_next = t * (known[2] + r * known[1]) + shift;
                if (lane() == 0) m.e[j] = clear ? head : head > 0 ? -length : length, m.t[j] = t;
                double *v = m.reflections + reflection(j), v_c[COLUMNS], w_c[COLUMNS];
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                    const int c = column(own);
                    v_c[own] = c == j + 1 ? 1.0 : r * x[own];
                    w_c[own] = c > j ? t * (here[own] + r * p[own]) + shift * v_c[own] : 0.0;
                    if (c < K) m.w[c] = w_c[own];
                    if (c >= start && c < K) v[c - start] = v_c[own];
                    const double updated = here[own] - w_c[own] - w_next * v_c[own];
                    if (c == j + 1) m.d[j + 1] = updated;
                    x[own] = announced(updated, c, j, m);
                }
                if (K % 2 && lane() == 0) v[K - start] = 0.0, m.w[K] = 0.0;
                wait();
                double part[COLUMNS][4];
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                    DPM_UNROLL for (int i = 0; i < 4; ++i) part[own][i] = 0.0;
                DPM_UNROLL for (int first = 0; first < K; first += STAGE) {
                    if (first < start) continue;
                    subtract(a, m.w, first, 0, v_c);
                    subtract(a, v, first, start, w_c);
                    DPM_UNROLL for (int l = 0; l < K; l += 2) {
                        if (l < first || l >= first + STAGE) continue;
                        const Two y = two(m.x + l);
                        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                            part[own][l % 4] += a[own][l] * y.first;
                            if (l + 1 < K) part[own][l % 4 + 1] += a[own][l + 1] * y.second;
                        }
                    }
                }
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                    p[own] = (part[own][0] + part[own][1]) + (part[own][2] + part[own][3]);
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) here[own] = entry_after(a[own], start, j);
                answer(p, here, j, m);
            }
        }
        wait();
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            const int c = column(own);
            if (c == K - 2) m.e[K - 2] = a[own][K - 1];
            if (c == K - 1) m.d[K - 1] = a[own][K - 1];
        }
        wait();
    }

    // Where three numbers about the step after j stand: the entry below the diagonal, and products of its column.
    static DPM_METHOD double* note(int j, Memory& m) { return m.partial + 8 + 4 * (j & 1); }

    // Make entry (j + 1, c) known, as far as it belongs to x of the next step; returns it as an entry of x.
    static DPM_METHOD double announced(double here, int c, int j, Memory& m) {
        if (c == j + 2) note(j, m)[0] = here;
        const double x = c > j + 2 && c < K ? here : 0.0;
        if (c < K) m.x[c] = x;
        return x;
    }

    // Who has column j + 2 tells its product with x, and its diagonal entry.
    static DPM_METHOD void answer(const double p[COLUMNS], const double here[COLUMNS], int j, Memory& m) {
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            if (column(own) == j + 2) note(j, m)[1] = p[own], note(j, m)[2] = here[own];
    }

    // Entry j + 2 of a column, for j of the stage from `start` on.
    static DPM_METHOD double entry_after(const double* a, int start, int j) {
        double x = a[start + 2];
        DPM_UNROLL for (int i = 1; i < STAGE; ++i)
            if (start + i + 2 < K && j == start + i) x = a[start + i + 2];
        return x;
    }

    // The way back takes two reflections at a time, as in tridiagonal.hpp: S - u z' - z u'.
    static DPM_METHOD void transform_back(double s[COLUMNS][K], Memory& m) {
        if ((K - 2) % 2) back_by_one(s, K - 3, m);
        DPM_UNROLL for (int stage = STAGES - 1; stage >= 0; --stage) {
            const int start = stage * STAGE, end = start + STAGE < K - 2 ? start + STAGE : (K - 2) / 2 * 2;
            for (int j = end - 1; j > start; j -= 2) {
                const double *n0 = m.reflections + reflection(j), *n1 = m.reflections + reflection(j - 1);
                const double t0 = m.t[j], t1 = m.t[j - 1];
                double c0[COLUMNS], c1[COLUMNS], y0[COLUMNS], y1[COLUMNS], cross = 0, m00 = 0, m01 = 0, m11 = 0;
                product(s, n0, start, y0);
                product(s, n1, start, y1);
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                    const int c = column(own);
                    const bool inside = c >= start && c < K;
                    c0[own] = inside ? n0[c - start] : 0.0, c1[own] = inside ? n1[c - start] : 0.0;
                    cross += c0[own] * c1[own];
                    m00 += c0[own] * y0[own], m01 += c0[own] * y1[own], m11 += c1[own] * y1[own];
                }
                sums(cross, m00, m);
                sums(m01, m11, m);
                const double mixed = t0 * t1 * cross;
                m00 *= 0.5, m01 *= 0.5, m11 *= 0.5;
                wait();  // everybody has read the last u and z
                double u0[COLUMNS], u1[COLUMNS];
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                    const int c = column(own);
                    u0[own] = t0 * c0[own] - mixed * c1[own], u1[own] = t1 * c1[own];
                    y0[own] -= u0[own] * m00 + u1[own] * m01;
                    y1[own] -= u0[own] * m01 + u1[own] * m11;
                    if (c < K) {
                        m.square[c] = u0[own], m.square[EVEN + c] = u1[own];
                        m.square[2 * EVEN + c] = y0[own], m.square[3 * EVEN + c] = y1[own];
                    }
                }
                wait();
                DPM_UNROLL for (int first = 0; first < K; first += STAGE) {
                    subtract(s, m.square + 2 * EVEN, first, 0, u0);
                    subtract(s, m.square + 3 * EVEN, first, 0, u1);
                    if (first < start) continue;
                    subtract(s, m.square, first, 0, y0);
                    subtract(s, m.square + EVEN, first, 0, y1);
                }
            }
        }
        wait();
    }

    static DPM_METHOD void back_by_one(double s[COLUMNS][K], int j, Memory& m) {
        constexpr int start = (K - 3) / STAGE * STAGE;
        const double *v = m.reflections + reflection(j), t = m.t[j];
        double v_c[COLUMNS], y[COLUMNS], dot = 0;
        product(s, v, start, y);
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            const int c = column(own);
            v_c[own] = c >= start && c < K ? v[c - start] : 0.0;
            y[own] *= t;
            dot += y[own] * v_c[own];
        }
        const double shift = -0.5 * t * sum(dot, m);
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            y[own] += shift * v_c[own];
            if (column(own) < K) m.w[column(own)] = y[own];
        }
        wait();
        DPM_UNROLL for (int first = 0; first < K; first += STAGE) {
            subtract(s, m.w, first, 0, v_c);
            if (first >= start) subtract(s, v, first, start, y);
        }
    }

    // ---------------------------------------------------------------- sums of resolvents

    // Scale T as `scale_to_unit` does.
    static DPM_METHOD long long scaled_to_unit(bool even, Memory& m) {
        double norm = 0;
        for (int i = lane(); i < K; i += SIZE) {
            double row = absolute(Vec{m.d[i]}).lane;
            if (i > 0) row += absolute(Vec{m.e[i - 1]}).lane;
            if (i + 1 < K) row += absolute(Vec{m.e[i]}).lane;
            norm = row > norm ? row : norm;
        }
        norm = maximum(norm, m);
        wait();
        long long exponent = exponent_above(Vec{norm}).lane;
        if (even) exponent += exponent & 1;
        const double scale = power_of_two(Ints{-exponent}).lane;
        for (int i = lane(); i < K; i += SIZE) {
            m.d[i] *= scale;
            if (i + 1 < K) m.e[i] *= scale;
        }
        wait();
        return exponent;
    }

    // Leading minors q of T + p, by q_{i+2} = (d_{i+1} + p) q_{i+1} - e_i^2 q_i: pivots are quotients of neighbours, with
    // the same errors as in rational.hpp, and no division stands in the way of the next one. Calls
    // take(i, q_i, q_{i+1}, e_i).
    template <typename Take>
    static DPM_METHOD void minors(double p, const Memory& m, Take take) {
        double before = 1.0, now = m.d[0] + p;
        for (int start = 0; start < K; start += STAGE) {
            // Read at once: what is taken may be written to the same memory, for all that the compiler knows.
            double d[STAGE], e[STAGE];
            DPM_UNROLL for (int i = 0; i < STAGE; ++i) {
                const bool more = start + i + 1 < K;
                d[i] = more ? m.d[start + i + 1] + p : 0.0, e[i] = more ? m.e[start + i] : 0.0;
            }
            const double scale = power_of_two(-exponent_above(absolute(Vec{now}))).lane;
            before *= scale, now *= scale;
            DPM_UNROLL for (int i = 0; i < STAGE; ++i)
                if (start + i < K) {
                    take(start + i, before, now, e[i]);
                    const double next = d[i] * now - e[i] * e[i] * before;
                    before = now, now = next;
                }
        }
    }

    // Whether some eigenvalue of T is below a bound, or something is not a number: a minor of T - bound tells.
    static DPM_METHOD bool is_below(double bound, Memory& m) {
        bool bad = false;
        minors(-bound, m, [&](int, double before, double now, double) { bad |= !(before > 0.0) || !(now > 0.0); });
        return bad;
    }

    // 1 where a product begins; before, it is 0, whose lower half is that of 1.
    static DPM_METHOD double begun(double h, bool here) {
#if defined(__CUDACC__)
        return __hiloint2double(here ? 0x3ff00000 : __double2hiint(h), __double2loint(h));
#else
        return here ? 1.0 : h;
#endif
    }

    // Entries on and above the diagonal of c + sum_j r_j (T + p_j)^-1; one pole per thread is factorised, then every
    // thread goes through the poles for its columns. Returns whether an eigenvalue is below `bound`,
    // where that is above 0.
    static DPM_METHOD bool resolvents(const PoleTable& table, double bound, double s[COLUMNS][K], Memory& m) {
        double *ratio = m.square, *diagonal = m.square + BATCH * K;  // (K, BATCH), and (BATCH, K) in rows of ODD
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int i = 0; i < K; ++i) s[own][i] = 0.0;
        bool bad = false;
        const int count = most(table.count);
        for (int first = 0; first < count; first += BATCH) {
            const int left = count - first < BATCH ? (count - first + AT_ONCE - 1) / AT_ONCE * AT_ONCE : BATCH;
            for (int q = lane(); q < left; q += SIZE) {
                // A pole too many has residue 0.
                const bool there = first + q < table.count;
                const double p = there ? table.poles[first + q] : 1.0, r = there ? table.residues[first + q] : 0.0;
                minors(p, m, [&](int i, double before, double now, double e) {
                    const double x = before * reciprocal(Vec{now}).lane;
                    diagonal[q * ODD + i] = r * x;
                    if (i + 1 < K) ratio[i * BATCH + q] = -e * x;
                });
                double g = diagonal[q * ODD + K - 1];
                DPM_UNROLL for (int i = K - 2; i >= 0; --i) {
                    const double u = ratio[i * BATCH + q];
                    g = diagonal[q * ODD + i] + u * u * g;
                    diagonal[q * ODD + i] = g;
                }
            }
            if (first == 0 && bound > 0) bad = lane() == SIZE - 1 && is_below(bound, m);
            wait();
            for (int q = 0; q < left; q += AT_ONCE) {
                // Entry (i, c) is g_c times the ratios from i to c - 1: h is their product, 1 at the diagonal.
                double g[COLUMNS][AT_ONCE], h[COLUMNS][AT_ONCE];
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                    DPM_UNROLL for (int b = 0; b < AT_ONCE; ++b) {
                        g[own][b] = diagonal[(q + b) * ODD + (column(own) < K ? column(own) : 0)];
                        h[own][b] = 0.0;
                    }
                DPM_UNROLL for (int i = K - 1; i >= 0; --i) {
                    double u[AT_ONCE];
                    DPM_UNROLL for (int b = 0; b < AT_ONCE; b += 2) {
                        const Two pair = i < K - 1 ? two(ratio + i * BATCH + q + b) : Two{0, 0};
                        u[b] = pair.first, u[b + 1] = pair.second;
                    }
                    DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                        if (i >= (own + 1) * SIZE) continue;  // below the diagonal
                        DPM_UNROLL for (int b = 0; b < AT_ONCE; ++b) {
                            h[own][b] *= u[b];
                            if (i >= own * SIZE) h[own][b] = begun(h[own][b], i == column(own));
                            s[own][i] += g[own][b] * h[own][b];
                        }
                    }
                }
            }
            wait();
        }
        // The constant last: the sum is rounded at its own size, not at the constant's.
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int i = 0; i < K; ++i)
                s[own][i] += i == column(own) ? table.constant : 0.0;
        return someone(bad, m);
    }

    // ---------------------------------------------------------------- functions

    // Which of four bounds some eigenvalue of T is below, a bit each: one thread asks about each of them, at a time.
    static DPM_METHOD int below_which(const double bounds[4], Memory& m) {
        int found = 0;
        for (int which = lane(); which < (SIZE > 4 ? SIZE : 4); which += SIZE) {
            double bound = bounds[0];
            DPM_UNROLL for (int i = 1; i < 4; ++i)
                if (which == i) bound = bounds[i];
            if (is_below(bound, m) && which < 4) found |= 1 << which;
        }
        return (int)sum((double)found, m);
    }

    // A function by its poles, as `of_general`; `a` becomes the result. With `only_norm`, the entries on and above the
    // diagonal of a matrix with the same norm.
    static DPM_METHOD bool of_poles(double a[COLUMNS][K], const Pass& pass, Choice choice, bool only_norm, long long& exponent,
                                  Memory& m) {
        tridiagonalise(a, m);
        exponent += scaled_to_unit(pass.function != LOG, m);
        bool bad;
        if (choice.few) {
            const PoleTable* widest = pass.wide ? pass.wide : pass.table;
            const double bounds[4] = {1 / choice.few->bound, 1 / choice.some->bound, 1 / widest->bound, DOUBTFUL};
            const int found = below_which(bounds, m);
            const PoleTable* table = found & 2 ? widest : found & 1 ? choice.some : choice.few;
            resolvents(*table, 0.0, a, m);
            bad = (found & 4) || (pass.inspect && (found & 8));
        } else {
            bad = resolvents(*pass.table, 1 / pass.table->bound, a, m);
            if (pass.wide && anywhere(bad)) {
                // Who was content with the small table does the same again: what a matrix gets is its own affair.
                const PoleTable table = bad ? *pass.wide : *pass.table;
                bad = resolvents(table, 1 / table.bound, a, m);
            }
        }
        // Near the edge of what is positive definite the caller decides.
        if (pass.inspect && !choice.few) bad |= someone(lane() == 0 && is_below(DOUBTFUL, m), m);
        if (!only_norm) {
            mirror(a, false, m);
            transform_back(a, m);
        }
        return bad;
    }

    // exp(a), as `exponentiate`; the polynomial by Horner's rule, so that two matrices are all that is held.
    static DPM_METHOD bool exponential_of(double a[COLUMNS][K], Memory& m) {
        const double shift = largest_diagonal(a, false, m);
        double square = 0, *x = m.reflections;
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l) {
                if (l == column(own)) a[own][l] -= shift;
                if (column(own) < K) square += a[own][l] * a[own][l];
            }
        const bool bad = !(sum(square, m) <= LONGEST * LONGEST);
        const double scale = exponential(Vec{shift}).lane;
        wait();
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l) {
                const int c = column(own);
                a[own][l] = bad ? 0.0 : a[own][l] * 0x1p-10;
                if (c < K) x[l * K + c] = a[own][l];
            }
        wait();
        double factorial = 20922789888000.0;  // 16!
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l) a[own][l] = l == column(own) ? 1.0 / factorial : 0.0;
        for (int degree = 15; degree >= 0; --degree) {
            factorial /= degree + 1;
            taken_back(a, x, degree ? 1.0 / factorial : 0.0, 0.0, m);
        }
        for (int doubling = 0; doubling < 10; ++doubling) {
            wait();
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                if (column(own) < K) DPM_UNROLL for (int l = 0; l < K; ++l) x[l * K + column(own)] = a[own][l];
            taken_back(a, x, 0.0, 2.0, m);
        }
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l)
                a[own][l] = l == column(own) ? scale * (1.0 + a[own][l]) : scale * a[own][l];
        return bad;
    }

    // a <- x a + diagonal + more a, from the entries below the diagonal; x and a commute.
    static DPM_METHOD void taken_back(double a[COLUMNS][K], const double* x, double diagonal, double more, Memory& m) {
        times(x, false, a, m);
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            const int c = column(own);
            DPM_UNROLL for (int l = 0; l < K; ++l) {
                const double entry = c >= K ? 0.0 : l >= c ? m.square[c * ODD + l] : m.square[l * ODD + c];
                a[own][l] = more * a[own][l] + entry + (l == c ? diagonal : 0.0);
            }
        }
    }

    // Whether no Cholesky factor exists after DOUBTFUL times the trace was taken off the diagonal, as CHECK asks.
    static DPM_METHOD bool is_doubtful(double a[COLUMNS][K], Memory& m) {
        double trace = 0;
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l)
                if (l == column(own)) trace += a[own][l];
        trace = sum(trace, m);
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l)
                if (l == column(own)) a[own][l] -= DOUBTFUL * trace;
        bool bad = false;
        DPM_UNROLL for (int start = 0; start < K; start += STAGE) {
            const int end = start + STAGE < K ? start + STAGE : K;
            for (int j = start; j < end; ++j) {
                double x[COLUMNS];
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                    x[own] = entry(a[own], start, j);
                    if (column(own) < K) m.x[column(own)] = x[own];
                }
                wait();
                const double pivot = m.x[j];
                bad |= !(pivot > 0.0 && pivot < DPM_INFINITY);
                DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                    const double share = column(own) > j ? x[own] / pivot : 0.0;
                    DPM_UNROLL for (int l = 0; l < K; ++l)
                        if (l >= start) a[own][l] -= (l > j ? m.x[l] : 0.0) * share;
                }
                wait();
            }
        }
        return someone(bad, m);
    }

    // ---------------------------------------------------------------- one matrix

    // Read matrix `from` of (n, k, k): lower triangles, or symmetric parts with a look at both triangles; or a packed one.
    static DPM_METHOD int read(const Pass& pass, long from, bool inspect, double tolerance, double a[COLUMNS][K], Memory& m) {
        int found = 0;
        double largest = 0, gap = 0, zero = 0;
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
            const int c = column(own);
            const double* x = pass.x + from * (pass.triangles ? PACKED : K * K);
            DPM_UNROLL for (int l = 0; l < K; ++l) {
                const int place = pass.triangles ? l * (l + 1) / 2 + c : l * K + c;
                a[own][l] = c < K && (inspect || l >= c) ? x[place] : 0.0;
            }
        }
        if (inspect) {
            // The upper triangle comes to the lower one, and goes back as the mean of both.
            wait();
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                const int c = column(own);
                if (c < K) DPM_UNROLL for (int l = 0; l < K; ++l) {
                    if (l < c) m.square[packed_place(c, l)] = a[own][l];
                    const double size = absolute(Vec{a[own][l]}).lane;
                    largest = size > largest ? size : largest;
                    zero += a[own][l] * 0.0;
                }
            }
            wait();
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own) {
                const int c = column(own);
                if (c < K) DPM_UNROLL for (int l = 0; l < K; ++l)
                    if (l > c) {
                        const double here = a[own][l] * 0.5, there = m.square[packed_place(l, c)] * 0.5;
                        const double half = absolute(Vec{here - there}).lane;
                        gap = half > gap ? half : gap;
                        a[own][l] = here + there;
                    }
            }
            mirror(a, true, m);
            largest = maximum(largest, m), gap = maximum(gap, m), zero = sum(zero, m);
            found = (zero == 0.0 ? 0 : NOT_FINITE) | (gap > 0.5 * tolerance * largest ? NOT_SYMMETRIC : 0);
        } else {
            mirror(a, true, m);
        }
        return found;
    }

    // a <- 2^exponent a in two steps; returns whether an entry is infinite or not a number.
    static DPM_METHOD bool unscaled(double a[COLUMNS][K], long long exponent, Memory& m) {
        exponent = exponent > 2044 ? 2044 : exponent < -2044 ? -2044 : exponent;
        const long long half = exponent >> 1;
        const double scale = power_of_two(Ints{half}).lane, rest = power_of_two(Ints{exponent - half}).lane;
        bool bad = false;
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l) {
                a[own][l] = a[own][l] * scale * rest;
                if (column(own) < K) bad |= !(absolute(Vec{a[own][l]}).lane < DPM_INFINITY);
            }
        return someone(bad, m);
    }

    // Write the lower triangle, packed by rows, of 2^exponent a.
    static DPM_METHOD void write_triangle(const double a[COLUMNS][K], long long exponent, double* out) {
        exponent = exponent > 2044 ? 2044 : exponent < -2044 ? -2044 : exponent;
        const long long half = exponent >> 1;
        const double scale = power_of_two(Ints{half}).lane, rest = power_of_two(Ints{exponent - half}).lane;
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l)
                if (l >= column(own)) out[l * (l + 1) / 2 + column(own)] = a[own][l] * scale * rest;
    }

    // One matrix, from its entries to all that was asked for; `there` is false for a team that has none left.
    template <int FUNCTION>
    static DPM_METHOD Counts one(const Pass& pass, Choice choice, long i, bool there, Memory& m) {
        double a[COLUMNS][K];
        const long from = pass.rows ? pass.rows[i] : i;
        const long long group = pass.codes ? pass.codes[from] : 0;
        const bool look = pass.inspect || FUNCTION == CHECK;
        const int found = read(pass, from, look, FUNCTION == CHECK ? pass.radius : pass.tolerance, a, m);
        bool bad = false;
        if constexpr (FUNCTION == CHECK) {
            normalised(a, m);
            const int status = found | (is_doubtful(a, m) ? UNUSABLE : 0);
            if (there && lane() == 0) pass.status[i] = (unsigned char)status;
            return Counts{there && lane() == 0 && status ? 1 : 0, 0};
        }
        long long exponent = 0;
        if (!(FUNCTION == EXP || (FUNCTION == NONE && !pass.factor))) {
            exponent = normalised(a, m);
            if (pass.factor) {
                const double* factor = pass.factor + (pass.powers ? group * K * K : 0);
                congruence(a, factor, pass.powers || pass.factor_is_lower, m);
            }
            exponent -= pass.powers ? pass.powers[group] : pass.power;
            if (pass.moved && there)
                write_triangle(a, exponent, pass.moved + (pass.places ? pass.places[i] : i) * PACKED);
            if (pass.factor && FUNCTION != NONE) exponent += normalised(a, m);
        }
        const bool whole = pass.matrices || pass.coordinates || pass.words || pass.center;
        if constexpr (FUNCTION == EXP) bad = exponential_of(a, m);
        if constexpr (FUNCTION == NONE) bad = unscaled(a, exponent, m);
        if constexpr (FUNCTION == LOG || FUNCTION == ROOT || FUNCTION == INVERSE_ROOT) {
            bad = of_poles(a, pass, choice, !whole, exponent, m);
            const double shift = (double)exponent * LN2_HIGH + (double)exponent * LN2_LOW;
            const long long half = exponent >> 1;
            const double scale = power_of_two(Ints{FUNCTION == ROOT ? half : -half}).lane;
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                DPM_UNROLL for (int l = 0; l < K; ++l) {
                    if (FUNCTION != LOG) a[own][l] *= scale;
                    if (FUNCTION == LOG) a[own][l] += l == column(own) ? shift : 0.0;
                }
        }
        return hand_out(pass, i, there, whole, group, bad, found, a, m);
    }

    // Subtract the centre, clip, and hand out, as `finish` does. Without `whole`, the entries above the diagonal count.
    static DPM_METHOD Counts hand_out(const Pass& pass, long i, bool there, bool whole, long long group, bool bad, int found,
                                      double a[COLUMNS][K], Memory& m) {
        bad |= found != 0;
        if (pass.center)
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                DPM_UNROLL for (int l = 0; l < K; ++l)
                    if (l >= column(own)) a[own][l] -= pass.center[l * K + column(own)];
        double weight = 1.0;
        bool far = false;
        if (pass.norms || pass.words || pass.radius < DPM_INFINITY) {
            double square = 0;
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                if (column(own) < K) DPM_UNROLL for (int l = 0; l < K; ++l) {
                    const int c = column(own);
                    const double share = l == c ? 1.0 : (whole ? l > c : l < c) ? 2.0 : 0.0;
                    square += share * (a[own][l] * a[own][l]);
                }
            const double norm = square_root(Vec{sum(square, m)}).lane;
            if (pass.norms && there && lane() == 0) pass.norms[i] = norm;
            // Short by what the norm of a result of this size may round, so that nothing is left outside.
            if (norm > pass.radius) weight = pass.radius * (1 - K * 0x1p-51) / norm;
            far = norm > pass.radius * EDGE;
            bad |= !(norm < DPM_INFINITY);
        }
        if (pass.radius < DPM_INFINITY)
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                DPM_UNROLL for (int l = 0; l < K; ++l) a[own][l] *= weight;
        if (pass.matrices) {
            mirror(a, true, m);
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                DPM_UNROLL for (int l = 0; l < K; ++l)
                    if (there && column(own) < K) pass.matrices[i * K * K + l * K + column(own)] = a[own][l];
        }
        if (pass.coordinates)
            DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
                DPM_UNROLL for (int l = 0; l < K; ++l) {
                    const int c = column(own);
                    double* out = pass.coordinates + i * PACKED;
                    if (there && l == c) out[c] = a[own][l];
                    if (there && l > c) out[K + c * K - c * (c + 1) / 2 + l - c - 1] = 1.4142135623730951 * a[own][l];
                }
        const int faulty = found | (bad ? UNUSABLE : 0);
        if (there && lane() == 0) pass.status[i] = (unsigned char)(faulty ? faulty : far ? CLIPPED : 0);
        if (pass.moved) bad |= far;  // these are for the caller to move
        if (pass.words && pass.codes && there && !bad) add(pass, a, group);
        if (pass.words && !pass.codes) add_all(pass, a, there && !bad, m);
        const int mine = there && lane() == 0;
        return Counts{mine && faulty ? 1 : 0, mine && !faulty && far ? 1 : 0};
    }

    // Add to the sums of the matrix's group.
    static DPM_METHOD void add(const Pass& pass, const double a[COLUMNS][K], long long group) {
        long long* words = pass.words + group * 2 * PACKED;
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l) {
                if (l < column(own)) continue;
                const Halves part = halves_of(Vec{a[own][l]}, pass.fixed);
                add_word(words + packed_place(l, column(own)), part.high.lane);
                add_word(words + PACKED + packed_place(l, column(own)), part.low.lane);
            }
    }

    // Add what counts of the block's matrices to its copy of the sums, entry by entry: first over the teams.
    static DPM_METHOD void add_all(const Pass& pass, const double a[COLUMNS][K], bool counts, Memory& m) {
        wait();
        DPM_UNROLL for (int own = 0; own < COLUMNS; ++own)
            DPM_UNROLL for (int l = 0; l < K; ++l)
                if (l >= column(own)) m.square[packed_place(l, column(own))] = counts ? a[own][l] : 0.0;
        everybody();
        long long* words = pass.words + copy() * 2 * PACKED;
        for (int i = number() * SIZE + lane(); i < PACKED; i += THREADS) {
            long long high = 0, low = 0;
            DPM_UNROLL for (int team = 0; team < MATRICES; ++team) {
                const Halves part = halves_of(Vec{m.first[team * m.stride + i]}, pass.fixed);
                high += part.high.lane, low += part.low.lane;
            }
            add_word(words + i, high);
            add_word(words + PACKED + i, low);
        }
        everybody();
    }

    static DPM_METHOD void add_word(long long* word, long long value) {
#if defined(__CUDACC__)
        atomicAdd((unsigned long long*)word, (unsigned long long)value);
#else
        *word += value;
#endif
    }

    // This block's share of a pass: matrices `first`, `first + step`, ... for its first team. All teams go round together.
    template <int FUNCTION>
    static DPM_METHOD Counts share(const Pass& pass, Choice choice, long first, long end, long step, double* memory) {
        const bool factor = pass.factor != nullptr;
        Memory m = arranged(memory, FUNCTION, factor);
        Counts counts{0, 0};
        for (; first < end; first += step) {
            const long mine = first + number();
            if (!pass.rows && mine + step < end)
                expect(pass.x + (mine + step) * (pass.triangles ? PACKED : K * K), pass.triangles ? PACKED : K * K);
            const Counts found = one<FUNCTION>(pass, choice, mine < end ? mine : end - 1, mine < end, m);
            counts.marked += found.marked, counts.clipped += found.clipped;
        }
        return counts;
    }
};

// Warps of a block on this card: as many as leave the most of them room in a multiprocessor's shared memory.
template <int K>
DPM_CONSTANT int team_warps(int function, bool factor) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
    const int room = 100 << 10;
#elif __CUDA_ARCH__ < 900
    const int room = 164 << 10;
#else
    const int room = 228 << 10;
#endif
    int best = 1, most = 0;
    for (int warps = 4; warps; warps /= 2) {
        const int block = warps * Team<K>::bytes(function, factor) + 1024;
        const int held = block > room ? 0 : warps * (room / block);
        if ((held < 12 ? held : 12) > most) best = warps, most = held < 12 ? held : 12;
    }
    return best;
}

}  // namespace
