// SPDX-License-Identifier: BSD-3-Clause
#include "saboteur.h"

#include <cstdio>

namespace rma_storm {
namespace {

constexpr std::size_t kLeastBytes = 8;  // so that the content differs

bool adds_up(const Area& area) {
    return area.kind == AreaKind::kSum && (area.combine == Combine::kSum || area.combine == Combine::kXor);
}

bool can_be_spoilt(Sabotage kind, const Round& round, const Area& area, const Operation& o) {
    if (o.bytes() < kLeastBytes) return false;
    const bool simple = area.kind == AreaKind::kWritten || area.kind == AreaKind::kRead || adds_up(area);
    switch (kind) {
    case Sabotage::kNone: return false;
    case Sabotage::kLose: return simple || area.kind == AreaKind::kTickets;
    case Sabotage::kDouble: return adds_up(area);
    case Sabotage::kMisplace: return simple && o.call != Call::kFetchAndOp && Saboteur::another_place(round, o) != o.at;
    }
    return false;
}

}  // namespace

Saboteur::Saboteur(const Options& options, int rank, int ranks) {
    pattern::Random random(pattern::key({options.seed, 99}));
    const auto chosen = static_cast<int>(random.below(static_cast<std::uint64_t>(ranks)));
    if (rank != chosen) return;
    kind_ = options.sabotage;
    countdown_ = 1 + static_cast<int>(random.below(40));
}

bool Saboteur::strikes(const Round& round, const Phase& phase, const Operation& o) {
    if (kind_ == Sabotage::kNone || countdown_ <= 0) return false;
    if (!can_be_spoilt(kind_, round, phase.areas[static_cast<std::size_t>(o.area)], o) || --countdown_ != 0)
        return false;
    const auto index = static_cast<std::size_t>(&o - phase.operations.data());
    fprintf(stderr, "rma_storm: sabotage of %s\n", describe(phase, index).c_str());
    return true;
}

std::size_t Saboteur::another_place(const Round& round, const Operation& o) {
    const std::size_t step = bytes_of(o.at_target.element), span = Shape(o.at_target).span();
    for (const Segment& s : round.window.segments[static_cast<std::size_t>(o.target)]) {
        if (o.at < s.at || o.at >= s.at + s.bytes) continue;
        if (o.at + span + step <= s.at + s.bytes) return o.at + step;
        if (o.at >= s.at + step) return o.at - step;
    }
    return o.at;
}

}  // namespace rma_storm
