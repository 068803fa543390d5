// Poles and residues for one function on [1/bound, 1] (tools/make_poles.py makes them).
#pragma once

struct PoleTable {
    double bound;
    int count;
    double constant;
    const double* poles;
    const double* residues;
};
