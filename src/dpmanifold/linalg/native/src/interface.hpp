// What the levels offer to the dispatcher: plain data and function pointers, nothing that a linker could merge.
#pragma once

#include "tables.hpp"

enum Function { NONE = 0, LOG = 1, ROOT = 2, INVERSE_ROOT = 3, EXP = 4, CHECK = 5, SYMMETRIZE = 6 };

// Bits of a status: CHECK sets any of them, every other function only the first.
enum Status { UNUSABLE = 1, NOT_FINITE = 2, NOT_SYMMETRIC = 4 };

// Matrices whose sums are added in one go, in order: fixed, so that sums do not depend on the number of threads.
constexpr long CHUNK = 64;

// One pass over n matrices: [congruence with one matrix] -> function -> [minus centre, clip] -> outputs.
// Outputs that are null are left out. `table` fits the function; sums has one packed lower triangle per chunk.
struct Pass {
    const double* x;        // (n, k, k), lower triangles are read
    long n;
    int k;
    int function;
    int accurate;
    int factor_is_lower;
    const double* factor;   // (k, k) or null
    const double* center;   // (k, k), subtracted from the function's value, or null
    const double* weights;  // (n,), or null for ones
    long long power;        // the result is that of 2^-power times the matrices (LOG and NONE)
    double radius;          // longer differences are shortened to this; infinite for none.
                            // CHECK: the largest |a_ij - a_ji|, as a share of the largest |a_ij|, that is symmetric
    const PoleTable* table;
    double* matrices;       // (n, k, k)
    double* coordinates;    // (n, k (k + 1) / 2)
    double* norms;          // (n,): of the difference before clipping
    double* sums;           // (chunks, k (k + 1) / 2)
    unsigned char* status;  // (n,): UNUSABLE where the matrix is not positive definite within the bound, or not finite
};

struct Images {
    const void* pixels;     // (n, height, width) or (n, height, width, 3)
    long n;
    long height;
    long width;
    int channels;           // 1 or 3
    int kind;               // 0 uint8, 1 float, 2 double
    double eta;
    const double* columns;  // (width,): the feature x
    const double* rows;     // (height,): the feature y
    double* out;            // (n, size, size)
};

struct Level {
    const char* name;
    long (*pass_memory)(const Pass*);  // bytes of aligned working memory per thread
    // Returns how many matrices were marked.
    long (*pass)(const Pass*, long first_chunk, long last_chunk, void* memory);
    long (*image_memory)(const Images*);
    long (*describe)(const Images*, long first, long last, void* memory);
};

extern "C" {
const Level* dpm_level_baseline();
const Level* dpm_level_avx2();
const Level* dpm_level_avx512();
}
