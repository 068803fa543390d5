// One lane: what a thread of a graphics card computes for small matrices, on a processor. For tests.
#define DPM_LANES 1
#include "level.hpp"

DPM_DEFINE_LEVEL(dpm_level_lane, "lane")
