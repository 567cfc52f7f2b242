// SPDX-License-Identifier: BSD-3-Clause
#include "signal.h"

#include <array>
#include <cstring>
#include <span>

#include "extension.h"
#include "message.h"
#include "module.h"
#include "operation.h"

namespace coop::ib {
namespace {

using Copies = std::array<Fragment*, sched::kMaxRails>;

}  // namespace

bool take_fragments(Module& m, Channel& channel, std::span<Fragment*> fragments) {
    const auto count = static_cast<std::uint32_t>(fragments.size());
    std::uint32_t taken = 0;
    while (taken < count && (fragments[taken] = m.fragments.take()) != nullptr) ++taken;
    if (taken == count && number_unordered(channel, fragments, sched::kCreditNumbers)) return true;
    while (taken-- > 0) m.fragments.give_back(*fragments[taken]);
    return false;
}

void fill_unordered(Fragment& fragment, const void* packet, std::uint32_t bytes, std::uint8_t tag) noexcept {
    fragment.base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    fragment.base.des_cbfunc = nullptr;
    fragment.work.kind = WorkKind::kSend;
    fragment.work.bytes = static_cast<std::uint32_t>(sizeof(Header)) + bytes;
    fragment.work.ordered = false;
    fragment.work.wants_credit = true;
    fragment.work.follows = true;
    fragment.ring_address = 0;
    *fragment.header = {fragment.work.psn, bytes, tag, static_cast<std::uint8_t>(Kind::kUnordered), 0, 0, 0};
    fragment.header->check = check_of(*fragment.header);
    std::memcpy(fragment.data(), packet, bytes);
}

// The queue of a rail is in order, and writes are never on the queue pair for reads. So a copy that is submitted now is
// posted behind the stripes of all writes that have been cut.
bool signal(mca_btl_base_module_t* btl, Endpoint* endpoint, RailSignal& signal) {
    Module& m = Module::of(btl);
    Guard guard(m);
    if (!endpoint->connected.load(std::memory_order_relaxed)) return false;
    Channel& channel = *endpoint->channel;
    if (!cut_writes(m, channel)) return false;
    // A write that is repeated on another rail could come behind its signal.
    if (channel.displaced() != 0) return false;
    // All writes on a rail that is gone have completed.
    const sched::RailMask rails = channel.writes.since(signal.since) & channel.rails.up();
    const auto count = static_cast<std::uint32_t>(sched::count_of(rails));
    Copies copies;
    if (!take_fragments(m, channel, std::span(copies).first(count))) return false;
    std::uint32_t place = 0;
    for (const sched::RailIndex rail : sched::each(rails)) {
        Fragment& copy = *copies[place];
        fill_unordered(copy, signal.packet, signal.bytes, signal.tag);
        signal.set_place(copy.data(), place++, count);
        copy.work.rail = rail;
        copy.work.endpoint = endpoint;
        channel.submit(copy.work);
    }
    channel.signals += count;
    signal.since = channel.writes.now();
    signal.copies = count;
    return true;
}

}  // namespace coop::ib
