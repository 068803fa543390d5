// One lane: what a thread of a graphics card computes for small matrices, on a processor. For tests.
//
// Images are described by a block of one thread.
#define DPM_LANES 1
#include "image_team.hpp"
#include "level.hpp"

namespace {

template <int CHANNELS, int KIND>
long describe_together(const Images* images, long first, long last, void* memory) {
    using Block = ImageTeam<CHANNELS, KIND>;
    typename Block::Own own;
    Block::share(*images, first, last, 1, typename Block::Memory{(double*)memory, &own});
    return 0;
}

template <int CHANNELS>
long describe_of_kind(const Images* images, long first, long last, void* memory) {
    switch (images->kind) {
        case 0: return describe_together<CHANNELS, 0>(images, first, last, memory);
        case 1: return describe_together<CHANNELS, 1>(images, first, last, memory);
        default: return describe_together<CHANNELS, 2>(images, first, last, memory);
    }
}

long describe_as_card(const Images* images, long first, long last, void* memory) {
    return (images->channels == 1 ? describe_of_kind<1> : describe_of_kind<3>)(images, first, last, memory);
}

// As cards/descriptor_kernels.py counts it.
long card_image_memory(const Images* images) { return 8 * (images->height + 4) * (images->width + 4); }

}  // namespace

extern "C" const Level* dpm_level_lane() {
    static const Level level = {"lane",       pass_memory,       pass_of_size,    gradient_memory,
                                run_gradient, card_image_memory, describe_as_card};
    return &level;
}
