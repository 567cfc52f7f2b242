// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

// A synchronous send that is short travels in its RTS: the receiver has to answer.
std::optional<Choice> can_use(const Situation& s) noexcept {
    if (s.bytes > s.eager_limit) return std::nullopt;
    return Choice{Row::kEager, s.synchronous ? Reason::kSynchronousFitsInline : Reason::kFitsEager};
}

}  // namespace

constinit const Protocol eager{
    .row = Row::kEager,
    .name = "eager",
    .can_use = can_use,
    .mover = always<Mover::kPackets>,
    .payload = Inline::kWhole,
    .shows_buffer = always<false>,
    .needs_rdma = false,
    .abort = cannot_lack,
    .shares = nobody_copies,
};

}  // namespace coop::rndv::rows
