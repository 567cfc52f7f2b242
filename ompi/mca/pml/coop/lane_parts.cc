// SPDX-License-Identifier: BSD-3-Clause
#include "lane_parts.h"

#include <cstring>

#include <sched.h>
#include <unistd.h>

#include "diagnose.h"
#include "node_lane.h"

#include "coop/base/relax.h"
#include "coop/node/lane_offer.h"
#include "coop/node/neighbour.h"
#include "coop/node/remote_copy.h"

namespace coop::pml {
namespace {

std::uint32_t offset_in(const node::LaneArea& area, const std::byte* body) noexcept {
    return static_cast<std::uint32_t>(body - area.ring(area.ring_at(body)));
}

// The sender has told nothing for a while. Another process may run on its CPU, perhaps we.
void look_after(std::int32_t pid) noexcept {
    sched_yield();
    if (node::is_alive(pid)) return;
    sleep(5);  // the launcher ends the job
    protocol_error(wire::Kind::kMatch, Sender(), "its sender has ended in the middle of a message");
}

}  // namespace

ArrivingParts::ArrivingParts(const node::LaneArea& area, std::byte* body, std::uint32_t payload_bytes,
                             bool is_offered) noexcept
    : area_(area), ring_(area.ring_at(body)), parts_(area.memory_of(ring_), offset_in(area, body)),
      offer_(body + kHeadBytes + sizeof(wire::MatchHeader)),
      payload_(offer_ + (is_offered ? sizeof(node::LaneOffer) : 0)), bytes_(payload_bytes), pid_(area.claimant(ring_)),
      is_offered_(is_offered) {}

// Lets the kernel copy a message that is offered. Returns false if it refuses, or the message is not offered or no longer:
// then the sender writes it in parts.
bool ArrivingParts::read_into(void* to) noexcept {
    if (!is_offered_) return false;
    const auto offer = node::LaneOffer::read(offer_);
    node::RemoteCopy copy(pid_, node::RemoteCopy::To::kHere);
    const bool is_copied = offer.begins_reading(parts_, area_.reading(ring_)) && !module.faults.hit(Fault::kOffer) &&
                           copy.add(to, offer.address, bytes_) && copy.flush();
    area_.answer(ring_).store(offer.answer(is_copied), std::memory_order_release);
    return is_copied;
}

std::uint32_t ArrivingParts::more_than(std::uint32_t done) noexcept {
    constexpr unsigned kPatience = 4096, kOften = 64;  // looks; a part takes less than a microsecond
    for (unsigned looks = 1;; ++looks) {
        const std::uint32_t written = parts_.written(done, bytes_);
        if (written > done) return written;
        relax();
        if (looks % kOften == 0) serve_own_offer();
        if (looks % kPatience == 0) look_after(pid_);
    }
}

void ArrivingParts::copy(void* to) noexcept {
    if (read_into(to)) return;
    for (std::uint32_t done = 0; done < bytes_;) {
        const std::uint32_t written = more_than(done);
        std::memcpy(static_cast<std::byte*>(to) + done, payload_ + done, written - done);
        done = written;
    }
}

void ArrivingParts::get_whole() noexcept {
    if (read_into(payload_)) return;
    for (std::uint32_t done = 0; done < bytes_;) done = more_than(done);
}

}  // namespace coop::pml
