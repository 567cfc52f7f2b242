// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/link.h"

#include <algorithm>
#include <cmath>

#include "fabric/engine/dice.h"

namespace coop::fabric {
namespace {

constexpr std::uint64_t kSmallestChunk = 64 << 10, kLargestChunk = 1 << 20;
constexpr std::uint64_t kChunksPerSecond = 500;
// A message of at most so many bytes waits for a packet of another message, not for its chunk.
constexpr std::uint64_t kShort = 512, kPacket = 4096;

// The rate that background traffic leaves; never 0.
std::uint64_t rate_left(const Link& link) {
    const std::uint64_t rate = link.rate.load(std::memory_order_relaxed);
    const std::uint64_t taken = link.background.load(std::memory_order_relaxed);
    if (rate == 0 || taken == 0) return rate;
    return std::max(rate > taken ? rate - taken : 0, std::max<std::uint64_t>(rate / 100, 1));
}

std::int64_t duration_ns(std::uint64_t rate, std::uint64_t bytes) {
    if (rate == 0) return 0;
    return static_cast<std::int64_t>((static_cast<unsigned __int128>(bytes) * 1'000'000'000u + rate / 2) / rate);
}

// Reserves the first interval of this duration, not before `ready_ns`, on a link, or a port's loopback, that is busy
// until `busy_until_ns`.
Slot take_next(Shared<std::int64_t>& busy_until_ns, std::int64_t duration, std::int64_t ready_ns) {
    if (duration == 0) return {ready_ns, ready_ns};
    std::int64_t busy = busy_until_ns.load(std::memory_order_relaxed);
    std::int64_t start;
    do start = std::max(busy, ready_ns);
    while (!busy_until_ns.compare_exchange_weak(busy, start + duration, std::memory_order_relaxed));
    return {start, start + duration};
}

// The same, but HCAs and switches send the packets of several queue pairs by turns: the interval begins after at most a
// packet of those before. Their messages were promised earlier times, so those that follow get the time that this one takes.
Slot take_between_packets(Shared<std::int64_t>& busy_until_ns, std::int64_t duration, std::int64_t packet_ns,
                          std::int64_t ready_ns) {
    const Slot behind_all = take_next(busy_until_ns, duration, ready_ns);
    const std::int64_t start = std::min(behind_all.start_ns, ready_ns + packet_ns);
    return {start, start + duration};
}

template <class Each>
void for_each_link(const Segment& subnet, const Route& route, Each&& each) {
    for (std::uint32_t i = 0; i < route.hops; ++i) each(subnet.links()[route.links[i]]);
}

}  // namespace

Slot take_link(Link& link, std::uint64_t bytes, std::int64_t ready_ns) noexcept {
    const std::uint64_t rate = rate_left(link);
    if (bytes <= kShort)
        return take_between_packets(link.busy_until_ns, duration_ns(rate, bytes), duration_ns(rate, kPacket), ready_ns);
    return take_next(link.busy_until_ns, duration_ns(rate, bytes), ready_ns);
}

Slot take_first_link(const Segment& subnet, const Route& route, std::uint64_t bytes, std::int64_t ready_ns) noexcept {
    if (route.hops == 0) {
        Port& port = subnet.ports()[route.from];
        return take_next(port.loopback_busy_until_ns,
                         duration_ns(port.loopback_rate.load(std::memory_order_relaxed), bytes), ready_ns);
    }
    return take_link(subnet.links()[route.links[0]], bytes, ready_ns);
}

std::int64_t take_other_links(const Segment& subnet, const Route& route, std::uint64_t bytes,
                              const Slot& first) noexcept {
    if (route.hops == 0) return first.end_ns;
    std::int64_t head = first.start_ns, tail = first.end_ns;
    for (std::uint32_t i = 0; i < route.hops; ++i) {
        Link& link = subnet.links()[route.links[i]];
        if (i > 0) {
            const Slot slot = take_link(link, bytes, head);
            head = slot.start_ns;
            tail = std::max(tail, slot.end_ns);
        }
        const std::int64_t latency = link.latency_ns.load(std::memory_order_relaxed);
        head += latency;
        tail += latency;
    }
    return tail;
}

std::int64_t latency_ns(const Segment& subnet, const Route& route) noexcept {
    std::int64_t sum = 0;
    for_each_link(subnet, route, [&](const Link& link) { sum += link.latency_ns.load(std::memory_order_relaxed); });
    return sum;
}

std::uint64_t chunk_bytes(const Segment& subnet, const Route& route) noexcept {
    std::uint64_t slowest = 0;
    for_each_link(subnet, route, [&](const Link& link) {
        const std::uint64_t rate = rate_left(link);
        if (rate != 0 && (slowest == 0 || rate < slowest)) slowest = rate;
    });
    if (route.hops == 0) slowest = subnet.ports()[route.from].loopback_rate.load(std::memory_order_relaxed);
    if (slowest == 0) return kLargestChunk;
    return std::clamp(slowest / kChunksPerSecond, kSmallestChunk, kLargestChunk);
}

bool is_lost(const Segment& subnet, const Route& route, std::uint32_t packets) noexcept {
    bool lost = false;
    for_each_link(subnet, route, [&](Link& link) {
        const std::uint32_t loss = link.loss.load(std::memory_order_relaxed);
        if (loss == 0 || lost) return;
        const double survives = std::pow(1.0 - loss / 4294967296.0, packets);
        const double dice = static_cast<double>(throw_dice(link.dice) >> 11) / 9007199254740992.0;
        if (dice < survives) return;
        lost = true;
        link.lost.fetch_add(1, std::memory_order_relaxed);
    });
    return lost;
}

bool loses_everything(const Segment& subnet, const Route& route) noexcept {
    bool lost = false;
    for_each_link(subnet, route,
                  [&](const Link& link) { lost |= link.loss.load(std::memory_order_relaxed) == kCertainLoss; });
    return lost;
}

void count(const Segment& subnet, const Route& route, std::uint64_t bytes, std::uint32_t packets) noexcept {
    for (std::uint32_t i = 1; i + 1 < route.hops; ++i) {
        Link& link = subnet.links()[route.links[i]];
        link.bytes.fetch_add(bytes, std::memory_order_relaxed);
        link.packets.fetch_add(packets, std::memory_order_relaxed);
    }
    PortCounters& sent = subnet.ports()[route.from].counters;
    sent.sent_bytes.fetch_add(bytes, std::memory_order_relaxed);
    sent.sent_packets.fetch_add(packets, std::memory_order_relaxed);
    PortCounters& received = subnet.ports()[route.to].counters;
    received.received_bytes.fetch_add(bytes, std::memory_order_relaxed);
    received.received_packets.fetch_add(packets, std::memory_order_relaxed);
}

}  // namespace coop::fabric
