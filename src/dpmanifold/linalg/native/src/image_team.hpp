// Covariance descriptors of images on a graphics card: the threads of a block have one image together.
//
// Its gray image lies in memory that they share. Each thread has a fixed share of the pixels, and goes over them twice:
// for the features' means, then for the products of what is left without them. Features are computed anew each time,
// by the formulas of descriptors.hpp. Partial sums are added in an order that depends on nothing but the numbers of
// threads and pixels, so an image gets the same bits in every run. On a processor, where it is for tests, a block is
// one thread.
#pragma once

#include "descriptors.hpp"

namespace {

template <int CHANNELS, int KIND>
struct ImageTeam {
#if defined(__CUDACC__)
    static constexpr int THREADS = 128;
#else
    static constexpr int THREADS = 1;
#endif
    static constexpr int WARPS = (THREADS + 31) / 32;
    static constexpr int SIZE = features_of(CHANNELS);
    static constexpr int PRODUCTS = SIZE * (SIZE + 1) / 2;

    // What a block shares beside the gray image.
    struct Own {
        double bytes[KIND == 0 ? 256 : 1];  // x / 255 for every byte
        double partial[WARPS][PRODUCTS];
        double total[PRODUCTS];
    };
    static_assert(sizeof(Own) <= 8192, "cards/descriptor_kernels.py leaves as much");

    struct Memory {
        double* gray;  // (height + 4, width + 4)
        Own* own;
    };

    // ---------------------------------------------------------------- what a block does together

#if defined(__CUDACC__)
    static_assert(THREADS % 32 == 0, "warps are whole");
    static __device__ __forceinline__ int thread() { return threadIdx.x; }
    static __device__ __forceinline__ void wait() { __syncthreads(); }

    // Lanes that are STEP apart share their sums: one keeps the lower half, the other the upper. In the end a lane has
    // `count` sums of the whole warp, from number `first` on.
    template <int COUNT, int STEP>
    static __device__ __forceinline__ void halve(Vec* x, int& first, int& count) {
        if constexpr (STEP > 0) {
            constexpr int HALF = (COUNT + 1) / 2;
            const bool upper = threadIdx.x & STEP;
            DPM_UNROLL for (int i = 0; i < HALF; ++i) {
                const double low = x[i].lane, high = i + HALF < COUNT ? x[i + HALF].lane : 0.0;
                x[i].lane = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, STEP);
            }
            first += upper ? HALF : 0;
            count = upper ? count - HALF : count < HALF ? count : HALF;
            halve<HALF, STEP / 2>(x, first, count);
        }
    }

    // The sums over all threads, in `total`.
    template <int COUNT>
    static __device__ __forceinline__ void add_up(Vec* x, Own& own) {
        constexpr int LEFT = (COUNT + 31) / 32;
        int first = 0, count = COUNT;
        halve<COUNT, 16>(x, first, count);
        DPM_UNROLL for (int i = 0; i < LEFT; ++i)
            if (i < count) own.partial[threadIdx.x / 32][first + i] = x[i].lane;
        wait();
        for (int i = threadIdx.x; i < COUNT; i += THREADS) {
            double sum = own.partial[0][i];
            DPM_UNROLL for (int warp = 1; warp < WARPS; ++warp) sum += own.partial[warp][i];
            own.total[i] = sum;
        }
        wait();
    }
#else
    static int thread() { return 0; }
    static void wait() {}
    template <int COUNT>
    static void add_up(const Vec* x, Own& own) {
        for (int i = 0; i < COUNT; ++i) own.total[i] = x[i].lane;
    }
#endif

    // This thread's share of the places in a table, row by row: every THREADS-th.
    struct Share {
        int height, width, down, right, y, x;
        DPM_METHOD Share(int height, int width)
            : height(height), width(width), down(THREADS / width), right(THREADS % width),
              y(thread() / width), x(thread() % width) {}
        DPM_METHOD bool left() const { return y < height; }
        DPM_METHOD void next() {
            y += down, x += right;
            if (x >= width) x -= width, ++y;
        }
    };

    // ---------------------------------------------------------------- one image

    static DPM_METHOD double value(const Images& images, long place, const Own& own) {
        if constexpr (KIND == 0) return own.bytes[((const unsigned char*)images.pixels)[place]];
        if constexpr (KIND == 1) return ((const float*)images.pixels)[place];
        return ((const double*)images.pixels)[place];
    }

    // Where a place beyond the border is reflected to: d c b a | a b c d | d c b a.
    static DPM_METHOD int reflected(int i, int n) { return i < 0 ? -1 - i : i < n ? i : 2 * n - 1 - i; }

    static DPM_METHOD void read(const Images& images, long n, Memory m) {
        const int h = (int)images.height, w = (int)images.width, pitch = w + 4;
        const long start = n * h * w;
        for (Share at(h + 4, pitch); at.left(); at.next()) {
            const long place = (start + reflected(at.y - 2, h) * w + reflected(at.x - 2, w)) * CHANNELS;
            double gray = value(images, place, *m.own);
            if constexpr (CHANNELS == 3)
                gray = mixture(gray, value(images, place + 1, *m.own), value(images, place + 2, *m.own));
            m.gray[at.y * pitch + at.x] = gray;
        }
    }

    static DPM_METHOD void features(const Images& images, long n, int y, int x, Memory m, Vec* out) {
        const int w = (int)images.width, pitch = w + 4;
        const double* corner = m.gray + y * pitch + x;
        out[0] = Vec{images.columns[x]};
        out[1] = Vec{images.rows[y]};
        if constexpr (CHANNELS == 1) {
            out[2] = Vec{corner[2 * pitch + 2]};
        } else {
            const long place = ((n * images.height + y) * w + x) * 3;
            DPM_UNROLL for (int c = 0; c < 3; ++c) out[2 + c] = Vec{value(images, place + c, *m.own)};
        }
        derivatives(corner, pitch, out + SIZE - 6);
    }

    static DPM_METHOD void one(const Images& images, long n, Memory m) {
        const int h = (int)images.height, w = (int)images.width;
        const double pixels = (double)h * w;
        read(images, n, m);
        wait();
        Vec mean[SIZE] = {};
        for (Share at(h, w); at.left(); at.next()) {
            Vec f[SIZE];
            features(images, n, at.y, at.x, m, f);
            DPM_UNROLL for (int i = 0; i < SIZE; ++i) mean[i] += f[i];
        }
        add_up<SIZE>(mean, *m.own);
        DPM_UNROLL for (int i = 0; i < SIZE; ++i) mean[i] = Vec{m.own->total[i] / pixels};
        Vec product[PRODUCTS] = {};
        for (Share at(h, w); at.left(); at.next()) {
            Vec f[SIZE];
            features(images, n, at.y, at.x, m, f);
            DPM_UNROLL for (int i = 0; i < SIZE; ++i) {
                f[i] -= mean[i];
                DPM_UNROLL for (int j = 0; j <= i; ++j) product[i * (i + 1) / 2 + j] += f[i] * f[j];
            }
        }
        add_up<PRODUCTS>(product, *m.own);
        double* out = images.out + n * SIZE * SIZE;
        for (int e = thread(); e < SIZE * SIZE; e += THREADS) {
            const int i = e / SIZE, j = e % SIZE, high = i > j ? i : j, low = i > j ? j : i;
            out[e] = m.own->total[high * (high + 1) / 2 + low] / pixels + (i == j ? images.eta : 0.0);
        }
    }

    // This block's share of the images: `first`, `first + step`, ...
    static DPM_METHOD void share(const Images& images, long first, long end, long step, Memory m) {
        if constexpr (KIND == 0)
            for (int i = thread(); i < 256; i += THREADS) m.own->bytes[i] = i / 255.0;
        wait();
        for (; first < end; first += step) one(images, first, m);
    }
};

}  // namespace
