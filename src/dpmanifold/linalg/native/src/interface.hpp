// What the levels offer to the dispatcher: plain data and function pointers, nothing that a linker could merge.
#pragma once

#include "tables.hpp"

enum Function { NONE = 0, LOG = 1, ROOT = 2, INVERSE_ROOT = 3, EXP = 4, CHECK = 5, SYMMETRIZE = 6 };

// Bits of a status: CHECK and `inspect` set any of the first three, every other pass only the first. CLIPPED is no fault.
enum Status { UNUSABLE = 1, NOT_FINITE = 2, NOT_SYMMETRIC = 4, CLIPPED = 8 };

// Matrices that one thread takes at a time, at least.
constexpr long CHUNK = 64;

// Locks for the words of groups: group g is under lock g % LOCKS.
constexpr long LOCKS = 1024;

// One pass over n matrices: [congruence with one matrix] -> function -> [minus centre, clip] -> outputs.
// Outputs that are null are left out. `table` fits the function; `wide` is for matrices that are beyond it.
struct Pass {
    const double* x;        // (n, k, k), lower triangles are read; or lower triangles packed by rows, see `triangles`
    long n;
    int k;
    int function;
    int accurate;
    int factor_is_lower;
    const double* factor;   // (k, k) or null
    const double* center;   // (k, k), subtracted from the function's value, or null
    long long power;        // the result is that of 2^-power times the matrices (LOG and NONE)
    double radius;          // longer differences are shortened to this; infinite for none.
                            // CHECK: the largest |a_ij - a_ji|, as a share of the largest |a_ij|, that is symmetric
    const PoleTable* table;
    double* matrices;       // (n, k, k)
    double* coordinates;    // (n, k (k + 1) / 2)
    double* norms;          // (n,): of the difference before clipping
    unsigned char* status;  // (n,): UNUSABLE where the matrix is not positive definite within the bound, or not finite
    const PoleTable* wide;
    // Input
    int inspect;              // look at both triangles, as CHECK does, and go on with the symmetric part
    int triangles;            // x is (records, k (k + 1) / 2)
    double tolerance;         // for inspect: as `radius` for CHECK
    const long long* rows;    // (n,): which records of x to take, or null for the first n
    const long long* codes;   // the group of each record of x, or null
    const long long* powers;  // (groups,): with it, factor is (groups, k, k) and this replaces `power`
    // Output
    double* moved;            // (records, k (k + 1) / 2): lower triangles after the congruence, packed by rows
    const long long* places;  // (n,): where in `moved` each one goes, or null for its own number
    long long* words;         // (groups, 2, k (k + 1) / 2): exact sums, added to what is there (sums.hpp)
    double fixed;             // a power of two: entry v counts as the integer trunc(v fixed)
    unsigned char* locks;     // LOCKS bytes, 0, where several threads add to `words`; else null
    long long* counts;        // (2,): on a card, the numbers of marked and of clipped matrices are added to these
};

enum Kind { SPHERE = 0, HYPERBOLIC = 1, SHAPE = 2 };

// Sums of logarithms of n points, each at its group's base point; fields as in Pass.
struct Gradient {
    const double* x;        // (records, size)
    long n;
    int size;               // doubles per point
    int kind;
    double scale;           // points are multiplied by this: to curvature 1 or -1
    const double* base;     // (groups, size), scaled already
    double bound;           // logarithms are shortened to this
    const long long* rows;
    const long long* codes;
    long long* words;       // (groups, 2, size), one entry less for HYPERBOLIC
    double fixed;
    unsigned char* status;  // (n,): 1 where a point was left out
    unsigned char* locks;
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
    long (*gradient_memory)(const Gradient*);
    long (*gradient)(const Gradient*, long first_chunk, long last_chunk, void* memory);
    long (*image_memory)(const Images*);
    long (*describe)(const Images*, long first, long last, void* memory);
};

extern "C" {
const Level* dpm_level_baseline();
const Level* dpm_level_avx2();
const Level* dpm_level_avx512();
const Level* dpm_level_lane();
const Level* dpm_level_team();
}
