// Covariance descriptors of images, one image at a time: features in planes of padded length, then their covariance.
//
// The features are those of dpmanifold.data.descriptors, with the same order of operations: differences before
// smoothing, so that flat ground gives exactly 0 and nothing leaves [-1, 1]. A card has the formulas of one pixel from
// here, and loops of its own (image_team.hpp).
#pragma once

#include "interface.hpp"
#include "vector.hpp"

namespace {

constexpr double FLAT = 0x1p-20;  // gradients shorter than this are rounding, and their angle 0

DPM_CONSTANT int features_of(int channels) { return channels == 1 ? 9 : 11; }

// What an RGB pixel's derivatives are taken of; the weights' rounded sum may exceed 1.
DPM_INLINE double mixture(double red, double green, double blue) {
    const double gray = (0.299 * red + 0.587 * green) + 0.114 * blue;
    return gray < 1.0 ? gray : 1.0;
}

// (1, 2, 1) across three differences, over 4; and (1, 4, 6, 4, 1) across five second differences, over 32.
DPM_INLINE Vec smooth3(Vec a, Vec b, Vec c) { return ((c + a) + 2.0 * b) * 0.25; }
DPM_INLINE Vec smooth5(Vec a, Vec b, Vec c, Vec d, Vec e) {
    return ((((b + d) * 4.0 + a) + e) + 6.0 * c) * 0.03125;
}

// Derivative features of LANES pixels whose padded top left neighbour is at `corner`.
DPM_INLINE void derivatives(const double* corner, long pitch, Vec* out) {
    Vec v[5][5];
    DPM_UNROLL for (int i = 0; i < 5; ++i)
        DPM_UNROLL for (int j = 0; j < 5; ++j) v[i][j] = load(corner + i * pitch + j);
    Vec step[3], rise[3], bend[5], bow[5];
    DPM_UNROLL for (int i = 0; i < 3; ++i) step[i] = v[i + 1][3] - v[i + 1][1], rise[i] = v[3][i + 1] - v[1][i + 1];
    DPM_UNROLL for (int i = 0; i < 5; ++i) {
        bend[i] = (v[i][4] - v[i][2]) - (v[i][2] - v[i][0]);
        bow[i] = (v[4][i] - v[2][i]) - (v[2][i] - v[0][i]);
    }
    out[0] = absolute(smooth3(step[0], step[1], step[2]));
    out[1] = absolute(smooth3(rise[0], rise[1], rise[2]));
    out[2] = absolute(smooth5(bend[0], bend[1], bend[2], bend[3], bend[4]));
    out[3] = absolute(smooth5(bow[0], bow[1], bow[2], bow[3], bow[4]));
    out[4] = square_root(out[0] * out[0] + out[1] * out[1]);
    out[5] = select(out[4] < FLAT, Vec{}, angle(out[0], out[1]));
}

#if !defined(__CUDACC__)

// Pixels whose products are added before they join the total: keeps the rounding of a long sum near that of a short one.
constexpr long SPAN = 16 * LANES;

DPM_INLINE long rounded_up(long n) { return (n + LANES - 1) / LANES * LANES; }

struct Planes {
    long stride;     // length of one plane: pixels, rounded up
    long pitch;      // length of one padded image row, rounded up
    double *features, *padded, *row;
    long doubles;
};

DPM_INLINE Planes arrange_planes(const Images& images, double* base) {
    Planes p;
    const int size = features_of(images.channels);
    p.pitch = rounded_up(images.width + 4) + LANES;
    p.stride = rounded_up(images.height * rounded_up(images.width) + LANES);
    p.features = base;
    p.padded = base + size * p.stride;
    p.row = p.padded + (images.height + 4) * p.pitch;
    p.doubles = size * p.stride + (images.height + 4) * p.pitch + 3 * images.width;
    return p;
}

// x / 255 for every byte, divided as numpy does.
struct Bytes {
    double share[256];
    Bytes() {
        for (int i = 0; i < 256; ++i) share[i] = i / 255.0;
    }
};

// `count` pixel values from position `start` on, as doubles.
DPM_INLINE void read_values(const Images& images, const Bytes& bytes, long start, long count, double* out) {
    if (images.kind == 0) {
        const unsigned char* p = (const unsigned char*)images.pixels + start;
        for (long i = 0; i < count; ++i) out[i] = bytes.share[p[i]];
    } else if (images.kind == 1) {
        const float* p = (const float*)images.pixels + start;
        for (long i = 0; i < count; ++i) out[i] = p[i];
    } else {
        const double* p = (const double*)images.pixels + start;
        for (long i = 0; i < count; ++i) out[i] = p[i];
    }
}

// The gray image with two reflected rows and columns on each side (d c b a | a b c d), and the intensity planes.
DPM_INLINE void read_image(const Images& images, const Bytes& bytes, long n, Planes& p) {
    const long h = images.height, w = images.width;
    for (long y = 0; y < h; ++y) {
        double* row = p.padded + (y + 2) * p.pitch;
        double* intensity = p.features + 2 * p.stride + y * w;
        const long start = (n * h + y) * w * images.channels;
        if (images.channels == 1) {
            read_values(images, bytes, start, w, row + 2);
            for (long x = 0; x < w; ++x) intensity[x] = row[x + 2];
        } else {
            read_values(images, bytes, start, 3 * w, p.row);
            for (long x = 0; x < w; ++x) {
                const double red = p.row[3 * x], green = p.row[3 * x + 1], blue = p.row[3 * x + 2];
                intensity[x] = red, intensity[p.stride + x] = green, intensity[2 * p.stride + x] = blue;
                row[x + 2] = mixture(red, green, blue);
            }
        }
        row[1] = row[2], row[0] = row[3];
        row[w + 2] = row[w + 1], row[w + 3] = row[w];
        for (long x = w + 4; x < p.pitch; ++x) row[x] = 0.0;
    }
    const long length = p.pitch * (long)sizeof(double);
    double* first = p.padded + 2 * p.pitch;
    double* last = p.padded + (h + 1) * p.pitch;
    __builtin_memcpy(first - p.pitch, first, length);
    __builtin_memcpy(first - 2 * p.pitch, first + p.pitch, length);
    __builtin_memcpy(last + p.pitch, last, length);
    __builtin_memcpy(last + 2 * p.pitch, last - p.pitch, length);
}

// Rows are written from left to right and top to bottom, so what a row's last vector writes beyond it is overwritten.
DPM_INLINE void fill_features(const Images& images, Planes& p, int size) {
    const long h = images.height, w = images.width;
    double* derived = p.features + (size - 6) * p.stride;
    for (long y = 0; y < h; ++y)
        for (long x = 0; x < w; x += LANES) {
            Vec out[6];
            derivatives(p.padded + y * p.pitch + x, p.pitch, out);
            for (int f = 0; f < 6; ++f) store(derived + f * p.stride + y * w + x, out[f]);
        }
}

// The features x and y, the same for every image.
DPM_INLINE void fill_positions(const Images& images, Planes& p) {
    for (long y = 0; y < images.height; ++y)
        for (long x = 0; x < images.width; ++x) {
            p.features[y * images.width + x] = images.columns[x];
            p.features[p.stride + y * images.width + x] = images.rows[y];
        }
}

DPM_INLINE double total(Vec x) {
    double sum = 0;
    for (int lane = 0; lane < LANES; ++lane) sum += x[lane];
    return sum;
}

// Subtract the means of features [begin, size); what stands beyond the last pixel becomes 0.
DPM_INLINE void centre(Planes& p, long pixels, int begin, int size) {
    const long end = rounded_up(pixels);
    for (int f = begin; f < size; ++f) {
        double* plane = p.features + f * p.stride;
        for (long i = pixels; i < end; ++i) plane[i] = 0.0;
        Vec even{}, odd{};
        long i = 0;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            even += load(plane + i);
            odd += load(plane + i + LANES);
        }
        if (i < end) even += load(plane + i);
        const double mean = total(even + odd) / (double)pixels;
        for (long i = 0; i < end; i += LANES) store(plane + i, load(plane + i) - mean);
        for (long i = pixels; i < end; ++i) plane[i] = 0.0;
    }
}

// Products of all pairs of planes, in tiles of 3 x 3 that stay in registers.
DPM_INLINE void covariance(const Planes& p, long pixels, int size, double eta, double* out) {
    const long end = rounded_up(pixels);
    for (int i = 0; i < size; i += 3)
        for (int j = 0; j <= i; j += 3) {
            const double *a[3], *b[3];
            for (int q = 0; q < 3; ++q) {
                a[q] = p.features + (i + q < size ? i + q : size - 1) * p.stride;
                b[q] = p.features + (j + q < size ? j + q : size - 1) * p.stride;
            }
            Vec sum[3][3] = {};
            for (long start = 0; start < end; start += SPAN) {
                const long stop = start + SPAN < end ? start + SPAN : end;
                Vec part[3][3] = {};
                for (long x = start; x < stop; x += LANES) {
                    Vec u[3], v[3];
                    for (int q = 0; q < 3; ++q) u[q] = load(a[q] + x), v[q] = load(b[q] + x);
                    for (int r = 0; r < 3; ++r)
                        for (int q = 0; q < 3; ++q) part[r][q] += u[r] * v[q];
                }
                for (int r = 0; r < 3; ++r)
                    for (int q = 0; q < 3; ++q) sum[r][q] += part[r][q];
            }
            for (int r = 0; r < 3 && i + r < size; ++r)
                for (int q = 0; q < 3 && j + q <= i + r; ++q) {
                    double value = total(sum[r][q]) / (double)pixels;
                    if (i + r == j + q) value += eta;
                    out[(i + r) * size + j + q] = out[(j + q) * size + i + r] = value;
                }
        }
}

long image_memory(const Images* images) { return arrange_planes(*images, nullptr).doubles * (long)sizeof(double); }

long describe(const Images* given, long first, long last, void* memory) {
    const Images images = *given;
    Planes p = arrange_planes(images, (double*)memory);
    const int size = features_of(images.channels);
    const long pixels = images.height * images.width;
    const Bytes bytes;
    fill_positions(images, p);
    centre(p, pixels, 0, 2);
    for (long n = first; n < last; ++n) {
        read_image(images, bytes, n, p);
        fill_features(images, p, size);
        centre(p, pixels, 2, size);
        covariance(p, pixels, size, images.eta, images.out + n * size * size);
    }
    return 0;
}

#endif  // a card has loops of its own

}  // namespace
