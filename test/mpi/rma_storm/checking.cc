// SPDX-License-Identifier: BSD-3-Clause
//
// Compares this rank's window with the model.
#include <algorithm>
#include <cstdio>

#include "round_run.h"

namespace rma_storm {
namespace {

std::string hex(unsigned char byte) {
    char text[8];
    snprintf(text, sizeof text, "0x%02x", byte);
    return text;
}

bool writes(const Operation& o, int rank, std::size_t at) {
    if (o.target != rank || !o.has_operand() || at < o.at) return false;
    return Shape(o.at_target).covers(at - o.at);
}

}  // namespace

void RoundRun::check_window() {
    state().now("comparing the window");
    // Behind a passive epoch, the window is read under a lock.
    const bool locked = passive() && phase().closes;
    if (locked) {
        must(MPI_Win_lock(random_.one_in(2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, arena_.rank, 0, win()),
             "MPI_Win_lock");
        must(MPI_Win_sync(win()), "MPI_Win_sync");
    }
    compare_window();
    if (locked) must(MPI_Win_unlock(arena_.rank, win()), "MPI_Win_unlock");
}

void RoundRun::compare_window() {
    const std::string damage = window_.damaged_guard();
    if (!damage.empty()) failed(damage);
    const Bytes& expected = model_.own();
    const std::size_t at = window_.mismatch(expected);
    if (at == pattern::kNone) return;
    std::size_t wrong = 0, last = at;
    for (const Segment& s : round_.window.segments[static_cast<std::size_t>(arena_.rank)])
        for (std::size_t i = s.at; i < s.at + s.bytes; ++i)
            if (*window_.own(i) != expected[i]) ++wrong, last = i;
    failed("offset " + std::to_string(at) + " of " + std::to_string(expected.size()) + ": expected " +
           hex(expected[at]) + ", found " + hex(*window_.own(at)) + ", before the phase " +
           hex(model_.own_before()[at]) + "; " + std::to_string(wrong) + " bytes are wrong, the last at " +
           std::to_string(last) + writers(at));
}

// The operations of the round that wrote there, the last phase first.
std::string RoundRun::writers(std::size_t at) const {
    std::string text;
    int named = 0;
    for (std::size_t p = index_ + 1; p-- > 0;) {
        const Phase& phase = round_.phases[p];
        for (const Area& a : phase.areas)
            if (a.fresh && a.target == arena_.rank && at >= a.at && at < a.at + a.bytes)
                text += "\n    phase " + std::to_string(p) + ": stored before it, by the rank itself";
        for (std::size_t i = 0; i < phase.operations.size(); ++i) {
            if (!writes(phase.operations[i], arena_.rank, at)) continue;
            if (++named > 8) return text + "\n    …";
            text += "\n    phase " + std::to_string(p) + ": " + describe(phase, i);
        }
    }
    return named == 0 ? text + "\n    no operation of this round writes there" : text;
}

}  // namespace rma_storm
