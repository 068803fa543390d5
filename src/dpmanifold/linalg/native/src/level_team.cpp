// A team of one: what the threads of a graphics card compute together for a large matrix, on a processor. For tests.
#define DPM_LANES 1
#include "level.hpp"
#include "team.hpp"

namespace {

template <int K>
long team_pass(const Pass* pass, long first_chunk, long last_chunk, void* memory) {
    const long first = first_chunk * CHUNK, end = last_chunk * CHUNK < pass->n ? last_chunk * CHUNK : pass->n;
    double* own = (double*)memory;
    const Choice choice = choice_for(*pass, pass->table->bound / 4);
    switch (pass->function) {
        case NONE: return Team<K>::template share<NONE>(*pass, choice, first, end, 1, own).marked;
        case LOG: return Team<K>::template share<LOG>(*pass, choice, first, end, 1, own).marked;
        case ROOT: return Team<K>::template share<ROOT>(*pass, choice, first, end, 1, own).marked;
        case INVERSE_ROOT: return Team<K>::template share<INVERSE_ROOT>(*pass, choice, first, end, 1, own).marked;
        case EXP: return Team<K>::template share<EXP>(*pass, choice, first, end, 1, own).marked;
        default: return Team<K>::template share<CHECK>(*pass, choice, first, end, 1, own).marked;
    }
}

// Odd and even sizes, whole stages and parts of one; others are done as one lane does them.
long team_of_size(const Pass* pass, long first_chunk, long last_chunk, void* memory) {
    if (pass->accurate || pass->function == SYMMETRIZE) return pass_of_size(pass, first_chunk, last_chunk, memory);
    switch (pass->k) {
        case 4: return team_pass<4>(pass, first_chunk, last_chunk, memory);
        case 5: return team_pass<5>(pass, first_chunk, last_chunk, memory);
        case 9: return team_pass<9>(pass, first_chunk, last_chunk, memory);
        case 11: return team_pass<11>(pass, first_chunk, last_chunk, memory);
        case 16: return team_pass<16>(pass, first_chunk, last_chunk, memory);
        case 17: return team_pass<17>(pass, first_chunk, last_chunk, memory);
        case 30: return team_pass<30>(pass, first_chunk, last_chunk, memory);
        case 32: return team_pass<32>(pass, first_chunk, last_chunk, memory);
        case 33: return team_pass<33>(pass, first_chunk, last_chunk, memory);
        case 64: return team_pass<64>(pass, first_chunk, last_chunk, memory);
        default: return pass_of_size(pass, first_chunk, last_chunk, memory);
    }
}

long team_memory(const Pass* pass) {
    const long largest = Team<64>::bytes(EXP, true);
    return largest > pass_memory(pass) ? largest : pass_memory(pass);
}

}  // namespace

extern "C" const Level* dpm_level_team() {
    static const Level level = {"team", team_memory, team_of_size, gradient_memory, run_gradient, image_memory, describe};
    return &level;
}
