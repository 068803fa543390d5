// Householder reduction of symmetric matrices to tridiagonal form, and the way back for a function of the result.
//
// A two-sided reflection H S H, H = I - t v v', is the rank-two update S - v w' - w v' with w = t S v - (t^2/2)(v'Sv) v.
// Memory traffic decides at k > 10, so each pass over the matrix applies one reflection's update and, in the same
// pass, forms the product that the next reflection needs; two rows at a time.
#pragma once

#include "layout.hpp"

namespace {

struct Reflections {
    Vec* buffers;  // 8 (k + 1) vectors; the reduction uses half of them: v, its successor, w, and the product y
};

// w = t y - (t^2/2)(v'y) v, where v lives on [first, k); y is wanted from `low` on.
DPM_INLINE void companion(const Vec* v, const Vec* y, Vec t, int low, int first, int k, Vec* w) {
    Vec dot{};
    DPM_UNROLL for (int i = low; i < first; ++i) w[i] = t * y[i];
    DPM_UNROLL for (int i = first; i < k; ++i) {
        w[i] = t * y[i];
        dot += w[i] * v[i];
    }
    Vec shift = -0.5 * t * dot;
    DPM_UNROLL for (int i = first; i < k; ++i) w[i] += shift * v[i];
}

// The reflection that clears column j below the subdiagonal; v (with v[j + 1] = 1) is kept in that column.
DPM_INLINE void reflector(Vec* a, int k, int j, Vec* v, Vec& subdiagonal, Vec& t) {
    Vec head = a[at(j + 1, j)], tail{};
    DPM_UNROLL for (int i = j + 2; i < k; ++i) tail += a[at(i, j)] * a[at(i, j)];
    // Matrices are scaled to norm about 1: squares below this are far below rounding, and count as nothing.
    Ints clear = tail <= 1e-290;
    Vec length = square_root(head * head + tail);
    Vec beta = select(head > 0.0, -length, length);
    Vec gap = head - beta;
    Vec inverse = 1.0 / select(clear, broadcast(1.0), beta * gap);
    subdiagonal = select(clear, head, beta);
    t = select(clear, Vec{}, -(gap * gap * inverse));
    Vec scale = select(clear, Vec{}, beta * inverse);
    v[j + 1] = broadcast(1.0);
    DPM_UNROLL for (int i = j + 2; i < k; ++i) a[at(i, j)] = v[i] = scale * a[at(i, j)];
}

// One pass over rows and columns [low, k): with UPDATE subtract v w' + w v', then y = S n.
template <bool UPDATE>
DPM_INLINE void trailing_pass(Vec* a, int k, int low, const Vec* v, const Vec* w, const Vec* n, Vec* y) {
    DPM_UNROLL for (int i = low; i < k; ++i) y[i] = Vec{};
    int i = low;
    DPM_UNROLL for (; i + 1 < k; i += 2) {
        Vec *upper = a + at(i, 0), *under = a + at(i + 1, 0);
        Vec n0 = n[i], n1 = n[i + 1], v0{}, w0{}, v1{}, w1{}, sum0{}, sum1{};
        if (UPDATE) v0 = v[i], w0 = w[i], v1 = v[i + 1], w1 = w[i + 1];
        DPM_UNROLL for (int l = low; l < i; ++l) {
            Vec p = upper[l], q = under[l];
            if (UPDATE) {
                p -= v0 * w[l];
                q -= v1 * w[l];
                p -= w0 * v[l];
                q -= w1 * v[l];
                upper[l] = p;
                under[l] = q;
            }
            sum0 += p * n[l];
            sum1 += q * n[l];
            Vec product = y[l] + p * n0;
            y[l] = product + q * n1;
        }
        Vec p = upper[i], q = under[i], r = under[i + 1];
        if (UPDATE) {
            upper[i] = p -= 2.0 * v0 * w0;
            under[i] = q -= v1 * w0 + w1 * v0;
            under[i + 1] = r -= 2.0 * v1 * w1;
        }
        y[i] += sum0 + p * n0 + q * n1;
        y[i + 1] += sum1 + q * n0 + r * n1;
    }
    DPM_UNROLL for (; i < k; ++i) {
        Vec* row = a + at(i, 0);
        Vec n0 = n[i], v0{}, w0{}, sum{};
        if (UPDATE) v0 = v[i], w0 = w[i];
        DPM_UNROLL for (int l = low; l < i; ++l) {
            Vec p = row[l];
            if (UPDATE) row[l] = p -= v0 * w[l] + w0 * v[l];
            sum += p * n[l];
            y[l] += p * n0;
        }
        Vec p = row[i];
        if (UPDATE) row[i] = p -= 2.0 * v0 * w0;
        y[i] += sum + p * n0;
    }
}

// Reduce the packed matrix `a` to diagonal d and subdiagonal e; reflections stay in `a`, their factors in t.
template <int K>
DPM_INLINE void tridiagonalise(Vec* a, int size, Vec* d, Vec* e, Vec* t, Reflections work) {
    const int k = K ? K : size;
    Vec *v = work.buffers, *next = v + k + 1, *w = next + k + 1, *y = w + k + 1;
    d[0] = a[0];
    if (k > 2) {
        reflector(a, k, 0, v, e[0], t[0]);
        trailing_pass<false>(a, k, 1, v, w, v, y);
    }
    DPM_UNROLL for (int j = 0; j < k - 2; ++j) {
        companion(v, y, t[j], j + 1, j + 1, k, w);
        // The column that makes the next reflection comes first.
        DPM_UNROLL for (int i = j + 1; i < k; ++i) a[at(i, j + 1)] -= v[i] * w[j + 1] + w[i] * v[j + 1];
        d[j + 1] = a[at(j + 1, j + 1)];
        if (j == k - 3) {
            a[at(k - 1, k - 1)] -= 2.0 * v[k - 1] * w[k - 1];
            break;
        }
        reflector(a, k, j + 1, next, e[j + 1], t[j + 1]);
        trailing_pass<true>(a, k, j + 2, v, w, next, y);
        Vec* swap = v;
        v = next;
        next = swap;
    }
    if (k > 1) {
        e[k - 2] = a[at(k - 1, k - 2)];
        d[k - 1] = a[at(k - 1, k - 1)];
    }
}

// The way back takes two reflections at a time, which halves the traffic to memory. What belongs to one index of both
// stands together, so that the inner loops need one pointer: u and z of the update S - u z' - z u' (summed over both),
// and the vectors n of the next two reflections with their products y = S n.
struct Pair {
    Vec u[2], z[2], n[2], y[2];
};

// Rows i .. i + ROWS - 1 of one pass over S: with UPDATE the update, with NEXT the products; n is 0 below `low`.
template <int ROWS, bool UPDATE, bool NEXT>
DPM_INLINE void return_rows(Vec* s, int i, int low, Pair* pairs) {
    Vec* row[ROWS];
    Vec u[ROWS][2] = {}, z[ROWS][2] = {}, n[ROWS][2] = {}, sum[ROWS][2] = {};
    DPM_UNROLL for (int r = 0; r < ROWS; ++r) {
        row[r] = s + at(i + r, 0);
        DPM_UNROLL for (int b = 0; b < 2; ++b) {
            if (UPDATE) u[r][b] = pairs[i + r].u[b], z[r][b] = pairs[i + r].z[b];
            if (NEXT) n[r][b] = pairs[i + r].n[b];
        }
    }
    DPM_UNROLL for (int l = 0; l < low; ++l) {
        Pair& p = pairs[l];
        Vec y0{}, y1{};
        if (NEXT) y0 = p.y[0], y1 = p.y[1];
        DPM_UNROLL for (int r = 0; r < ROWS; ++r) {
            Vec x = row[r][l];
            if (UPDATE) {
                x -= u[r][0] * p.z[0];
                x -= u[r][1] * p.z[1];
                row[r][l] = x;
            }
            y0 += x * n[r][0];
            y1 += x * n[r][1];
        }
        if (NEXT) p.y[0] = y0, p.y[1] = y1;
    }
    DPM_UNROLL for (int l = low; l < i; ++l) {
        Pair& p = pairs[l];
        Vec y0{}, y1{};
        if (NEXT) y0 = p.y[0], y1 = p.y[1];
        DPM_UNROLL for (int r = 0; r < ROWS; ++r) {
            Vec x = row[r][l];
            if (UPDATE) {
                x -= u[r][0] * p.z[0];
                x -= u[r][1] * p.z[1];
                x -= z[r][0] * p.u[0];
                x -= z[r][1] * p.u[1];
                row[r][l] = x;
            }
            if (NEXT) {
                sum[r][0] += x * p.n[0];
                sum[r][1] += x * p.n[1];
                y0 += x * n[r][0];
                y1 += x * n[r][1];
            }
        }
        if (NEXT) p.y[0] = y0, p.y[1] = y1;
    }
    // The triangle on the diagonal.
    DPM_UNROLL for (int r = 0; r < ROWS; ++r)
        DPM_UNROLL for (int q = 0; q <= r; ++q) {
            Vec x = row[r][i + q];
            if (UPDATE) {
                DPM_UNROLL for (int b = 0; b < 2; ++b) x -= u[r][b] * z[q][b] + z[r][b] * u[q][b];
                row[r][i + q] = x;
            }
            if (NEXT)
                DPM_UNROLL for (int b = 0; b < 2; ++b) {
                    sum[r][b] += x * n[q][b];
                    if (q < r) sum[q][b] += x * n[r][b];
                }
        }
    if (NEXT)
        DPM_UNROLL for (int r = 0; r < ROWS; ++r)
            DPM_UNROLL for (int b = 0; b < 2; ++b) pairs[i + r].y[b] += sum[r][b];
}

// One pass over S; u lives on [first, k), n on [low, k).
template <bool UPDATE, bool NEXT>
DPM_INLINE void return_pass(Vec* s, int k, int first, int low, Pair* pairs) {
    constexpr int ROWS = LANES == 8 ? 2 : 1;  // what the registers hold
    if (NEXT) {
        DPM_UNROLL for (int l = 0; l < k; ++l) pairs[l].y[0] = pairs[l].y[1] = Vec{};
        DPM_UNROLL for (int i = low; i < first; ++i) return_rows<1, false, true>(s, i, low, pairs);
    }
    int i = first;
    DPM_UNROLL for (; i + ROWS <= k; i += ROWS) return_rows<ROWS, UPDATE, NEXT>(s, i, low, pairs);
    DPM_UNROLL for (; i < k; ++i) return_rows<1, UPDATE, NEXT>(s, i, low, pairs);
}

// Make n the vectors of reflections j and j - 1: column entries below a 1, 0 above it. Reflection k - 2 is none.
DPM_INLINE void load_reflections(const Vec* a, int k, int j, Pair* pairs) {
    DPM_UNROLL for (int b = 0; b < 2; ++b) {
        const int top = j + 1 - b;
        DPM_UNROLL for (int i = 0; i < top; ++i) pairs[i].n[b] = Vec{};
        pairs[top].n[b] = broadcast(1.0);
        DPM_UNROLL for (int i = top + 1; i < k; ++i) pairs[i].n[b] = a[at(i, top - 1)];
    }
}

// From n (with factors t0, t1) and y = S n to u and z: with P = (I - t1 n1 n1')(I - t0 n0 n0') = I - u n',
// P S P' = S - u z' - z u' for z = y - u (n'y)/2.
DPM_INLINE void combine(Pair* pairs, Vec t0, Vec t1, int low, int k) {
    Vec cross{}, m00{}, m01{}, m11{};
    DPM_UNROLL for (int i = low; i < k; ++i) {
        const Pair& p = pairs[i];
        cross += p.n[0] * p.n[1];
        m00 += p.n[0] * p.y[0];
        m01 += p.n[0] * p.y[1];
        m11 += p.n[1] * p.y[1];
    }
    const Vec mixed = t0 * t1 * cross;
    m00 *= 0.5, m01 *= 0.5, m11 *= 0.5;
    DPM_UNROLL for (int i = 0; i < low; ++i) {
        Pair& p = pairs[i];
        p.u[0] = p.u[1] = Vec{};
        p.z[0] = p.y[0], p.z[1] = p.y[1];
    }
    DPM_UNROLL for (int i = low; i < k; ++i) {
        Pair& p = pairs[i];
        const Vec u0 = t0 * p.n[0] - mixed * p.n[1], u1 = t1 * p.n[1];
        p.u[0] = u0, p.u[1] = u1;
        p.z[0] = p.y[0] - (u0 * m00 + u1 * m01);
        p.z[1] = p.y[1] - (u0 * m01 + u1 * m11);
    }
}

// S <- Q S Q', with the reflections that `tridiagonalise` left in `a` and t.
template <int K>
DPM_INLINE void transform_back(const Vec* a, const Vec* t, int size, Vec* s, Reflections work) {
    const int k = K ? K : size;
    if (k < 3) return;
    Pair* pairs = (Pair*)work.buffers;
    // There are k - 2 reflections; an odd one out is paired with the identity.
    int j = k % 2 ? k - 2 : k - 3;
    Vec t0 = k % 2 ? Vec{} : t[j];
    load_reflections(a, k, j, pairs);
    return_pass<false, true>(s, k, k, j, pairs);
    DPM_UNROLL for (; j > 1; j -= 2) {
        combine(pairs, t0, t[j - 1], j, k);
        t0 = t[j - 2];
        load_reflections(a, k, j - 2, pairs);
        return_pass<true, true>(s, k, j, j - 2, pairs);
    }
    combine(pairs, t0, t[0], 1, k);
    return_pass<true, false>(s, k, 1, 1, pairs);
}

}  // namespace
