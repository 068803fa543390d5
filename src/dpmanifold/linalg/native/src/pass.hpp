// The pass that every batched function is: load a block, apply a function, reduce or write, mark what was unusable.
#pragma once

#include "graded.hpp"
#include "inspect.hpp"
#include "interface.hpp"
#include "products.hpp"
#include "rational.hpp"
#include "small.hpp"
#include "sums.hpp"
#include "tridiagonal.hpp"

namespace {

// A smallest eigenvalue below this share of the (rounded up) largest one is lost to rounding.
constexpr double LOST = 0x1p-50;

// What counts as clipped: longer than this share of the radius, so that a result on the edge is counted as well.
constexpr double EDGE = 1 - 1e-9;

struct Memory {
    Vec *a, *s, *spare, *diagonals, *reflections, *poles, *squares, *factor;
    Halves *total;  // sums of all blocks, or the parts of one where there are groups
    long vectors;
};

// How many matrices of a block were marked, and how many clipped.
struct Counts {
    long marked, clipped;
};

DPM_INLINE Memory arrange(const Pass& pass, Vec* base) {
    const long k = pass.k, size = packed(pass.k);
    const bool squares = pass.accurate || pass.factor;
    const long square = pass.function == EXP ? 6 * k * k : squares ? 2 * k * k : 0;
    Memory m;
    long used = 0;
    auto take = [&](long count) {
        Vec* start = base ? base + used : nullptr;
        used += count;
        return start;
    };
    m.a = take(size);
    m.s = take(size);
    m.spare = take(pass.wide ? size : 0);
    m.total = (Halves*)take(pass.words ? 2 * size : 0);
    m.factor = take(pass.powers ? k * k : 0);
    m.diagonals = take(3 * (k + 1));
    m.reflections = take(8 * (k + 1));
    m.poles = take(2 * k * POLES);
    m.squares = take(square);
    m.vectors = used;
    return m;
}

// f at an eigenvalue of the scaled matrix, divided by the eigenvalue if asked (for columns of length sqrt(value)).
DPM_INLINE Vec at_eigenvalue(int function, Vec x) {
    if (function == LOG) return logarithm(x);
    return function == ROOT ? square_root(x) : 1.0 / square_root(x);
}

// Undo the scaling by 2^exponent: the logarithm is shifted, roots are multiplied.
DPM_INLINE void unscale(Vec* s, int k, int function, Ints exponent) {
    Vec e = to_double(exponent);
    if (function == LOG) {
        Vec high = e * LN2_HIGH, low = e * LN2_LOW;
        DPM_UNROLL for (int i = 0; i < k; ++i) s[at(i, i)] += high + low;
    } else {
        Ints half = exponent >> 1;
        Vec scale = power_of_two(function == ROOT ? half : -half);
        DPM_UNROLL for (int i = 0; i < packed(k); ++i) s[i] *= scale;
    }
}

// f of a small matrix from its eigenvalues; marks what is not positive definite.
template <int K>
DPM_INLINE Ints of_eigenvalues(Vec* values, const Vec* vectors, int function, double lost, Vec* s) {
    Vec low = values[0], high = values[0];
    DPM_UNROLL for (int i = 1; i < K; ++i) low = smaller(values[i], low), high = larger(values[i], high);
    Ints bad = ~(low > lost * high);
    DPM_UNROLL for (int i = 0; i < K; ++i) bad |= ~(values[i] > 0.0);
    DPM_UNROLL for (int i = 0; i < K; ++i) values[i] = at_eigenvalue(function, select(bad, broadcast(1.0), values[i]));
    recompose<K>(values, vectors, s);
    return bad;
}

DPM_INLINE Ints of_graded(Vec* a, int k, int function, Vec* s, Memory& m) {
    Vec *g = m.squares, *values = m.diagonals;
    Ints bad = cholesky(a, k);
    DPM_UNROLL for (int c = 0; c < k; ++c)
        DPM_UNROLL for (int i = 0; i < k; ++i)
            g[c * k + i] = select(bad, broadcast(i == c ? 1.0 : 0.0), i >= c ? a[at(i, c)] : Vec{});
    orthogonalise(g, k, values);
    DPM_UNROLL for (int c = 0; c < k; ++c) values[c] = at_eigenvalue(function, values[c]) / values[c];
    sum_of_squares(g, values, k, s);
    return bad;
}

// The general case. With `only_norm` the result is a matrix with the same Frobenius norm and eigenvalues.
template <int K>
DPM_INLINE Ints of_general(Vec* a, int size, const Pass& pass, bool only_norm, Vec* s, Ints& exponent, Memory& m) {
    const int k = K ? K : size;
    Vec *d = m.diagonals, *e = d + k + 1, *t = e + k + 1;
    tridiagonalise<K>(a, k, d, e, t, Reflections{m.reflections});
    exponent += scale_to_unit<K>(d, e, k, pass.function != LOG);
    Ints bad = below<K>(d, e, k, 1 / pass.table->bound);
    resolvent_sum<K>(d, e, k, *pass.table, s, m.poles);
    if (pass.wide && any(bad)) {
        // Lanes beyond the small table take the large one. The others keep what they have: a lane's bits are its own.
        resolvent_sum<K>(d, e, k, *pass.wide, m.spare, m.poles);
        DPM_UNROLL for (int i = 0; i < packed(k); ++i) s[i] = select(bad, m.spare[i], s[i]);
        bad = below<K>(d, e, k, 1 / pass.wide->bound);
    }
    // Near the edge of what is positive definite the caller decides.
    if (pass.inspect) bad |= below<K>(d, e, k, DOUBTFUL);
    if (!only_norm) transform_back<K>(a, t, k, s, Reflections{m.reflections});
    return bad;
}

// 2^exponent times `a`, in two steps: the exponents of factor and matrix may add up to more than a double has.
DPM_INLINE Ints unscaled(const Vec* a, int size, Ints exponent, Vec* out) {
    exponent = exponent > 2044 ? broadcast_bits(2044) : exponent < -2044 ? broadcast_bits(-2044) : exponent;
    const Ints half = exponent >> 1;
    const Vec scale = power_of_two(half), rest = power_of_two(exponent - half);
    Ints bad{};
    DPM_UNROLL for (int i = 0; i < size; ++i) {
        out[i] = a[i] * scale * rest;
        bad |= ~(absolute(out[i]) < DPM_INFINITY);
    }
    return bad;
}

// The groups of a block's records; lanes beyond the last one repeat it.
DPM_INLINE void groups_of(const Pass& pass, long first, long count, long long* group) {
    for (long lane = 0; lane < LANES; ++lane) {
        const long i = first + (lane < count ? lane : count - 1);
        group[lane] = pass.codes[pass.rows ? pass.rows[i] : i];
    }
}

// Read a block; returns what `inspect` found.
template <int K>
DPM_INLINE Ints read(const Pass& pass, long first, long count, Vec* a) {
    const int k = K ? K : pass.k;
    const long square = (long)k * k;
    const double* p[LANES];
    if (pass.triangles) {
        point_at(pass.x, packed(k), pass.rows, first, count, p);
        each_entry(p, packed(k), [&](long e, Vec v) DPM_LAMBDA { a[e] = v; });
        return Ints{};
    }
    if (!pass.inspect) {
        load_block(pass.x + first * square, count, k, a);
        return Ints{};
    }
    Entries entries;
    point_at(pass.x, square, nullptr, first, count, p);
    load_symmetric<K>(p, k, a, entries);
    return faults(entries, pass.tolerance);
}

// Scale a block and apply the congruence, keeping a copy if asked; returns the exponent that was taken out.
template <int K>
DPM_INLINE Ints move(const Pass& pass, long first, long count, const long long* group, Vec* a, Memory& m) {
    const int k = K ? K : pass.k;
    if (pass.function == EXP || (pass.function == NONE && !pass.factor)) return Ints{};
    Ints exponent = normalise(a, k);
    if (!pass.factor) return exponent - pass.power;
    if (pass.powers) {
        const double* p[LANES];
        Ints power;
        for (int lane = 0; lane < LANES; ++lane) {
            p[lane] = pass.factor + group[lane] * k * k;
            power[lane] = pass.powers[group[lane]];
        }
        each_entry(p, (long)k * k, [&](long e, Vec v) DPM_LAMBDA { m.factor[e] = v; });
        congruence<K>(a, k, m.factor, true, m.squares);
        exponent -= power;
    } else {
        congruence<K>(a, k, pass.factor, pass.factor_is_lower != 0, m.squares);
        exponent -= pass.power;
    }
    if (pass.moved) {
        double* p[LANES];
        for (long lane = 0; lane < count; ++lane)
            p[lane] = pass.moved + (pass.places ? pass.places[first + lane] : first + lane) * packed(k);
        unscaled(a, packed(k), exponent, m.squares);
        store_triangles(m.squares, count, packed(k), p);
    }
    if (pass.function != NONE) exponent += normalise(a, k);
    return exponent;
}

template <int K>
DPM_INLINE Ints apply(Vec* a, const Pass& pass, Ints exponent, bool only_norm, Memory& m, Vec*& s) {
    const int k = K ? K : pass.k;
    s = m.s;
    if (pass.function == EXP) {
        s = a;
        return exponentiate(a, k, m.squares);
    }
    if (pass.function == NONE) {
        s = a;
        return unscaled(a, packed(k), exponent, s);
    }
    Ints bad;
    if (pass.accurate)
        bad = of_graded(a, k, pass.function, s, m);
    else
        bad = of_general<K>(a, k, pass, only_norm, s, exponent, m);
    unscale(s, k, pass.function, exponent);
    return bad;
}

// Subtract the centre, clip, and hand out what was asked for. Bad lanes count as 0.
template <int K, typename Sums>
DPM_INLINE Counts finish(const Pass& pass, long first, long count, Vec* s, Ints bad, Ints found, const long long* group,
                         Sums total) {
    const int k = K ? K : pass.k;
    bad |= found != 0;
    if (pass.center)
        DPM_UNROLL for (int i = 0; i < k; ++i)
            DPM_UNROLL for (int j = 0; j <= i; ++j) s[at(i, j)] -= pass.center[i * k + j];
    Vec weight = broadcast(1.0);
    Ints far{};
    if (pass.norms || pass.words || pass.radius < DPM_INFINITY) {
        const Vec square = square_norm(s, k);
        bad |= ~(square < DPM_INFINITY);
        const Vec norm = square_root(square);
        if (pass.norms && count == LANES)
            store(pass.norms + first, norm);
        else if (pass.norms)
            for (long lane = 0; lane < count; ++lane) pass.norms[first + lane] = norm[lane];
        // Short by what the norm of a result of this size may round, so that nothing is left outside.
        weight = select(norm > pass.radius, pass.radius * (1 - k * 0x1p-51) / norm, weight);
        far = norm > pass.radius * EDGE;
    }
    if (pass.radius < DPM_INFINITY && (pass.matrices || pass.coordinates || pass.words))
        DPM_UNROLL for (int i = 0; i < packed(k); ++i) s[i] *= weight;
    if (pass.matrices) store_block(s, count, k, pass.matrices + first * k * k);
    if (pass.coordinates) store_coordinates(s, count, k, pass.coordinates + first * packed(k));
    Counts counts{0, 0};
    for (long lane = 0; lane < count; ++lane) pass.status[first + lane] = 0;
    if (any(bad | far))
        for (long lane = 0; lane < count; ++lane) {
            const int faulty = (int)found[lane] | (bad[lane] ? UNUSABLE : 0);
            pass.status[first + lane] = (unsigned char)(faulty ? faulty : far[lane] ? CLIPPED : 0);
            counts.marked += faulty != 0;
            counts.clipped += !faulty && far[lane];
        }
    if (pass.moved) bad |= far;  // these are for the caller to move
#if defined(__CUDACC__)
    for (long lane = count; lane < LANES; ++lane) bad[lane] = -1;
    if (pass.words && pass.codes) {
        if (!any(bad)) add_to_group(pass, s, packed(k), group[0]);
    } else if (pass.words) {
        DPM_UNROLL for (int i = 0; i < packed(k); ++i) total->add(i, select(bad, Vec{}, s[i]), pass.fixed);
    }
#else
    if (pass.words && pass.codes) {
        DPM_UNROLL for (int i = 0; i < packed(k); ++i) total[i] = halves_of(s[i], pass.fixed);
        scatter(pass, total, packed(k), group, count, bad);
    } else if (pass.words) {
        for (long lane = count; lane < LANES; ++lane) bad[lane] = -1;
        DPM_UNROLL for (int i = 0; i < packed(k); ++i) {
            const Halves part = halves_of(select(bad, Vec{}, s[i]), pass.fixed);
            total[i].high += part.high;
            total[i].low += part.low;
        }
    }
#endif
    return counts;
}

#if !defined(__CUDACC__)

template <int K>
long run_pass(const Pass* given, long first_chunk, long last_chunk, void* memory) {
    const Pass pass = *given;
    const int k = K ? K : pass.k;
    Memory m = arrange(pass, (Vec*)memory);
    long marked = 0;
    const bool whole = pass.matrices || pass.coordinates || pass.words || pass.center;
    if (pass.words)
        for (int i = 0; i < packed(k); ++i) m.total[i] = Halves{};
    const long end = last_chunk * CHUNK < pass.n ? last_chunk * CHUNK : pass.n;
    for (long first = first_chunk * CHUNK; first < end; first += LANES) {
        const long count = end - first < LANES ? end - first : LANES;
        long long group[LANES];
        if (pass.codes) groups_of(pass, first, count, group);
        const Ints found = read<K>(pass, first, count, m.a);
        const Ints exponent = move<K>(pass, first, count, group, m.a, m);
        Vec* s;
        const Ints bad = apply<K>(m.a, pass, exponent, !whole, m, s);
        marked += finish<K>(pass, first, count, s, bad, found, group, m.total).marked;
    }
    if (pass.words && !pass.codes) hand_in(pass, m.total, packed(k));
    return marked;
}

// The same for k = 2 and 3, from eigenvalues and for several blocks at a time.
template <int K>
long run_small(const Pass* given, long first_chunk, long last_chunk, void* memory) {
    const Pass pass = *given;
    Memory m = arrange(pass, (Vec*)memory);
    long marked = 0;
    Halves total[packed(K)];
    for (int i = 0; i < packed(K); ++i) total[i] = Halves{};
    const double lost = pass.inspect ? DOUBTFUL : LOST;
    const long end = last_chunk * CHUNK < pass.n ? last_chunk * CHUNK : pass.n;
    for (long first = first_chunk * CHUNK; first < end; first += TURNS * LANES) {
        Vec a[TURNS][packed(K)], s[packed(K)], values[TURNS][K], vectors[TURNS][K * K];
        Ints exponent[TURNS], unfit[TURNS], found[TURNS];
        long long group[TURNS][LANES];
        long count[TURNS];
        for (int b = 0; b < TURNS; ++b) {
            const long start = first + b * LANES, left = end - start;
            count[b] = left < 0 ? 0 : left < LANES ? left : LANES;
            // A block beyond the end does the first one's work again, and nobody looks at the result.
            const long from = count[b] ? start : first, many = count[b] ? count[b] : count[0];
            if (pass.codes) groups_of(pass, from, many, group[b]);
            found[b] = read<K>(pass, from, many, a[b]);
            exponent[b] = move<K>(pass, from, many, group[b], a[b], m);
        }
        for (int b = 0; b < TURNS; ++b) unfit[b] = beyond_diagonal<K>(a[b]);
        const bool by_formula = K == 2 && pass.function == LOG;
        if (!by_formula) diagonalise<K>(a, values, vectors);
        for (int b = 0; b < TURNS; ++b) {
            if (count[b] == 0) continue;
            const Ints bad = unfit[b] | (by_formula ? log_of_two(a[b], lost, s)
                                                    : of_eigenvalues<K>(values[b], vectors[b], pass.function, lost, s));
            unscale(s, K, pass.function, exponent[b]);
            marked += finish<K>(pass, first + b * LANES, count[b], s, bad, found[b], group[b], total).marked;
        }
    }
    if (pass.words && !pass.codes) hand_in(pass, total, packed(K));
    return marked;
}

template <int K>
long run_any(const Pass* pass, long first_chunk, long last_chunk, void* memory) {
    if (pass->function == SYMMETRIZE) return run_symmetrize<K>(pass, first_chunk, last_chunk);
    if (pass->function == CHECK) return run_check<K>(pass, first_chunk, last_chunk, arrange(*pass, (Vec*)memory));
    return run_pass<K>(pass, first_chunk, last_chunk, memory);
}

template <int K>
long run_any_small(const Pass* pass, long first_chunk, long last_chunk, void* memory) {
    const int f = pass->function;
    const bool small = !pass->accurate && (f == LOG || f == ROOT || f == INVERSE_ROOT);
    return (small ? run_small<K> : run_any<K>)(pass, first_chunk, last_chunk, memory);
}

long pass_memory(const Pass* pass) { return arrange(*pass, nullptr).vectors * (long)sizeof(Vec); }

// Sizes that are common enough to be worth their own code: there the compiler knows every loop's length.
long pass_of_size(const Pass* pass, long first_chunk, long last_chunk, void* memory) {
    switch (pass->k) {
        case 2: return run_any_small<2>(pass, first_chunk, last_chunk, memory);
        case 3: return run_any_small<3>(pass, first_chunk, last_chunk, memory);
        case 4: return run_any<4>(pass, first_chunk, last_chunk, memory);
        case 5: return run_any<5>(pass, first_chunk, last_chunk, memory);
        case 9: return run_any<9>(pass, first_chunk, last_chunk, memory);
        case 11: return run_any<11>(pass, first_chunk, last_chunk, memory);
        default: return run_any<0>(pass, first_chunk, last_chunk, memory);
    }
}

#endif  // a card has loops of its own (card.cu)

}  // namespace
