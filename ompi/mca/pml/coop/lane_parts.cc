// SPDX-License-Identifier: BSD-3-Clause
#include "lane_parts.h"

#include <cstring>

#include <sched.h>
#include <unistd.h>

#include "diagnose.h"

#include "coop/base/relax.h"
#include "coop/node/neighbour.h"

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

ArrivingParts::ArrivingParts(const node::LaneArea& area, std::byte* body, std::uint32_t payload_bytes) noexcept
    : parts_(area.memory_of(area.ring_at(body)), offset_in(area, body)),
      payload_(body + kHeadBytes + sizeof(wire::MatchHeader)), bytes_(payload_bytes),
      pid_(area.claimant(area.ring_at(body))) {}

std::uint32_t ArrivingParts::more_than(std::uint32_t done) noexcept {
    constexpr unsigned kPatience = 4096;  // looks; a part takes less than a microsecond
    for (unsigned looks = 1;; ++looks) {
        const std::uint32_t written = parts_.written(done, bytes_);
        if (written > done) return written;
        relax();
        if (looks % kPatience == 0) look_after(pid_);
    }
}

void ArrivingParts::copy(char* to) noexcept {
    for (std::uint32_t done = 0; done < bytes_;) {
        const std::uint32_t written = more_than(done);
        std::memcpy(to + done, payload_ + done, written - done);
        done = written;
    }
}

void ArrivingParts::wait() noexcept {
    for (std::uint32_t done = 0; done < bytes_;) done = more_than(done);
}

}  // namespace coop::pml
