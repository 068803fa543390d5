// One instruction set's kernels as a Level; included by the level_*.cpp files after DPM_LANES is set.
#pragma once

#include "descriptors.hpp"
#include "pass.hpp"
#include "vectors.hpp"

#define DPM_DEFINE_LEVEL(function, name)                                                            \
    extern "C" const Level* function() {                                                            \
        static const Level level = {name,         pass_memory,  pass_of_size, gradient_memory,      \
                                    run_gradient, image_memory, describe};                          \
        return &level;                                                                              \
    }
