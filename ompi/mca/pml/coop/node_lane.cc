// SPDX-License-Identifier: BSD-3-Clause
#include "node_lane.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "diagnose.h"
#include "node.h"
#include "on_match.h"
#include "packet.h"
#include "recv_request.h"

#include "coop/node/byte_lock.h"
#include "coop/node/lane_inbox.h"
#include "coop/node/lane_offer.h"

namespace coop::pml {
namespace {

// The longest message that may be quicker through the lane, whatever is measured: the few messages that are timed say little
// about long ones.
constexpr std::uint32_t kLongestMessage = 128 * 1024;
constexpr std::uint32_t kLaneLayout = 6;             // changes with what is in the memory
constexpr std::uint8_t kInParts = wire::kKinds + 1;  // an eager message that is still being written
constexpr std::uint8_t kOffered = wire::kKinds + 2;  // an eager message that we may read from its sender's memory
constexpr std::size_t kHeaderRoom = 64;
static_assert(kHeaderRoom >= sizeof(wire::RtsHeader) && kHeaderRoom >= sizeof(wire::FragHeader));

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14
#endif

// A receive whose message has arrived in part. Its record stays the next one of its ring.
struct Unfinished {
    RecvRequest& request;
    ArrivingParts parts;
};

struct Receiving {
    node::Segment segment;
    node::LaneArea area;
    node::LaneInbox inbox;
    std::atomic<bool> polling{false};
    int error = 0;
    std::vector<std::unique_ptr<Unfinished>> unfinished;  // by ring; null: none
};

// Never destroyed: a process may end without MPI_Finalize.
Receiving& receiving() noexcept {
    static auto& it = *new Receiving;
    return it;
}
Receiving* own = nullptr;     // null: we have no memory in which we receive
LaneOut* offering = nullptr;  // on which this process waits for the answer to an offer

// Makes the system provide the pages. Without that, a write to them could end the process by a signal. Older kernels do
// not know the call. Returns an errno.
int provide(std::byte* at, std::size_t bytes) noexcept {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t before = reinterpret_cast<std::uintptr_t>(at) % page;
    if (madvise(at - before, bytes + before, MADV_POPULATE_WRITE) == 0 || errno == EINVAL) return 0;
    return errno;
}

// Whether the user wants to know that the lane is missed: somebody has set pml_coop_lane, or wants a report.
bool is_asked_for() noexcept {
    const int index = mca_base_var_find("ompi", "pml", "coop", "lane");
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    const bool is_known = index >= 0 && mca_base_var_get_value(index, nullptr, &source, nullptr) == OPAL_SUCCESS;
    return (is_known && source != MCA_BASE_VAR_SOURCE_DEFAULT) || module.config.report >= 1;
}

// Twice the second-level cache, rounded up to a power of two, so that a line has left the caches of both cores when it is
// written again (coop/node/lane_laps.h); 2 MiB if the size of the cache is unknown. At least 1 MiB: a window of 64 messages of
// 8 KiB fits.
std::uint32_t longest_ring() noexcept {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    const long cache = 0;
#endif
    const long twice = std::clamp(cache > 0 ? 2 * cache : 2048 * 1024L, 1024 * 1024L, long{node::kMaxLaneRing});
    return std::bit_ceil(static_cast<std::uint32_t>(twice));
}

node::LaneShape shape_of_node() noexcept {
    const auto senders = static_cast<std::uint32_t>(opal_process_info.num_local_peers) + node::kGuestRings;
    return node::lane_shape(static_cast<std::uint64_t>(module.given.lane_memory), senders, longest_ring());
}

// Most processes send only short messages to most others. A page of the ring is enough for these, and each one takes 3 us when it
// is used for the first time, on a virtual machine.
std::uint32_t first_end(node::LaneShape shape) noexcept {
    constexpr std::uint32_t kShort = 1024 + sizeof(wire::MatchHeader);
    static_assert(node::Segment::kHeaderBytes == node::kLaneLine);  // a ring begins behind it in its page
    return node::first_lane_end(shape.ring_bytes, kShort) - node::kLaneLine;
}

using Arrive = void (*)(mca_btl_base_module_t*, mca_btl_base_tag_t, mca_btl_base_descriptor_t*, void*);
constexpr Arrive kArrivals[] = {nullptr,
                                mca_pml_coop_on_match,
                                mca_pml_coop_on_rts,
                                mca_pml_coop_on_cts,
                                mca_pml_coop_on_frag,
                                mca_pml_coop_on_fin};
static_assert(std::size(kArrivals) == wire::kKinds + 1);

[[noreturn]] void damaged(std::uint32_t ring) noexcept {
    protocol_error(wire::Kind::kMatch, Sender(), "ring " + std::to_string(ring) + " of the lane is damaged");
}

// Our copy of what precedes the payload of a packet, which the peer could still change after it is checked.
struct Head {
    alignas(std::uint64_t) std::byte bytes[kLongestControl];

    // A packet that is shorter than its header is copied as it is, and refused when it is checked.
    template <class Header>
    std::size_t copy(const std::byte* body, std::size_t there) noexcept {
        if (there < sizeof(Header)) return copy(body, 0, there);
        return copy(body, 0, sizeof(Header));
    }
    // The same with the handle, slot and pieces that follow.
    template <class Header>
    std::size_t copy_control(const std::byte* body, std::size_t there) noexcept {
        const std::size_t done = copy<Header>(body, there);
        if (done < sizeof(Header)) return done;
        const std::size_t all = wire::control_bytes(*reinterpret_cast<const Header*>(bytes));
        return copy(body, done, std::min({all, there, sizeof bytes}));
    }

private:
    std::size_t copy(const std::byte* body, std::size_t from, std::size_t to) noexcept {
        std::memcpy(bytes + from, body + from, to - from);
        return to;
    }
};

// Calls the function for packets of this kind, as a transport does, but without a module. The first `head_bytes` bytes
// are in `head`.
void dispatch(std::uint8_t kind, Head& head, std::size_t head_bytes, std::byte* body, std::size_t bytes) noexcept {
    mca_btl_base_segment_t segments[2];
    segments[0].seg_addr.pval = head.bytes;
    segments[0].seg_len = head_bytes;
    segments[1].seg_addr.pval = body + head_bytes;
    segments[1].seg_len = bytes - head_bytes;
    mca_btl_base_descriptor_t packet;
    packet.des_segments = segments;
    packet.des_segment_count = bytes > head_bytes ? 2 : 1;
    kArrivals[kind](nullptr, 0, &packet, nullptr);
}

// Returns whether all of the message has arrived.
bool finish_receive(std::unique_ptr<Unfinished>& unfinished, const Packet& packet) noexcept {
    if (!unfinished->parts.go_on(0)) return false;
    RecvRequest& request = unfinished->request;
    unfinished.reset();
    finish_parts(request, packet);
    return true;
}

// The header is whole before the record is published. Without a receive for it, the message waits in the ring until all
// of it is there, because a sender may be held up in the middle of it for long. Returns whether the record is done
// with.
bool take_parts(std::byte* body, std::uint32_t bytes, bool is_offered) noexcept {
    const std::uint32_t before = ArrivingParts::kHeadBytes + sizeof(wire::MatchHeader) +
                                 (is_offered ? sizeof(node::LaneOffer) : 0);
    if (bytes <= before) protocol_error(wire::Kind::kMatch, Sender(), "a packet of the lane is too short");
    ArrivingParts parts(own->area, body, bytes - before, is_offered);
    Head head;
    mca_btl_base_segment_t segments[2];
    segments[0].seg_addr.pval = head.bytes;
    segments[0].seg_len = head.copy<wire::MatchHeader>(body + ArrivingParts::kHeadBytes, sizeof(wire::MatchHeader));
    segments[1].seg_addr.pval = body + before;
    segments[1].seg_len = bytes - before;
    const Packet packet{nullptr, segments, 2, &parts};
    std::unique_ptr<Unfinished>& unfinished = own->unfinished[own->area.ring_at(body)];
    if (unfinished) return finish_receive(unfinished, packet);
    const auto& header = *static_cast<const wire::MatchHeader*>(packet.header());
    // With threads, another one may take the receive before the message matches it. on_eager() diagnoses a damaged header.
    const bool stays = wire::match_is_whole(header) && (module.threads || !has_receive(header));
    if (stays && !parts.get_whole(0)) return false;
    on_eager(packet);
    return !unfinished;
}

node::LaneTake take_whole(const std::byte* body, std::uint32_t bytes) noexcept {
    wire::MatchHeader header;
    std::memcpy(&header, body, sizeof header);
    return on_whole({&header, body + sizeof header, bytes - sizeof header}) ? node::LaneTake::kNext
                                                                            : node::LaneTake::kLast;
}

[[gnu::noinline]] node::LaneTake take_other(std::uint8_t kind, std::byte* body, std::uint32_t bytes) noexcept {
    if ((kind == kInParts || kind == kOffered) && own->area.is_in_ring(body))
        return take_parts(body, bytes, kind == kOffered) ? node::LaneTake::kNext : node::LaneTake::kLater;
    Head head;
    std::size_t copied = 0;
    switch (static_cast<wire::Kind>(kind)) {
    case wire::Kind::kMatch: copied = head.copy<wire::MatchHeader>(body, bytes); break;
    case wire::Kind::kRts: copied = head.copy_control<wire::RtsHeader>(body, bytes); break;
    case wire::Kind::kCts: copied = head.copy_control<wire::CtsHeader>(body, bytes); break;
    case wire::Kind::kFrag: copied = head.copy<wire::FragHeader>(body, bytes); break;
    case wire::Kind::kFin: copied = head.copy<wire::FinHeader>(body, bytes); break;
    default: protocol_error(wire::Kind::kMatch, Sender(), "a packet of the lane has no known kind");
    }
    dispatch(kind, head, copied, body, bytes);
    return node::LaneTake::kNext;
}

node::LaneTake take(std::uint8_t kind, std::byte* body, std::uint32_t bytes) noexcept {
    if (kind == static_cast<std::uint8_t>(wire::Kind::kMatch) && bytes >= sizeof(wire::MatchHeader)) [[likely]]
        return take_whole(body, bytes);
    return take_other(kind, body, bytes);
}

int poll_now(Receiving& it) noexcept {
    const auto is_gone = [&it](std::uint32_t ring) { return !node::is_locked_elsewhere(it.segment.ticket().fd, ring); };
    const int packets = it.inbox.poll(take, damaged, is_gone);
    std::atomic<std::uint32_t>& polls = lane_arrivals.polls;
    if (packets > 0) polls.store(polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return packets;
}

}  // namespace

// --- sending -------------------------------------------------------------------------------------------------------

LaneOut::LaneOut(node::Segment segment, node::LaneShape shape, std::uint32_t ring, std::uint64_t name, bool is_guest,
                 Kernel kernel) noexcept
    : segment_(std::move(segment)), area_(segment_.memory(), shape), ring_(ring), is_guest_(is_guest),
      earns_(kernel.may_copy), may_offer_(kernel.reads && !is_guest && !module.threads && !module.crowded),
      longest_(node::longest_lane_record(shape.ring_bytes) - kHeaderRoom),
      one_piece_max_(std::min({longest_, static_cast<std::size_t>(module.config.lane_small_max),
                               static_cast<std::size_t>(module.config.eager_limit)})),
      timed_from_(may_offer_ ? std::min(node::LanePace::kShortest, one_piece_max_ + 1) : one_piece_max_ + 1),
      whole_max_(module.crowded && earns_ ? std::min(one_piece_max_, kFirstOfMany) : one_piece_max_),
      short_max_(std::min({whole_max_, timed_from_ - 1, node::kShortestOffer - 1, node::LaneTraffic::kLong})),
      limit_(shape.ring_bytes, bounds(shape.ring_bytes), alone_until_found(bounds(shape.ring_bytes)),
             may_offer_ && module.config.lane_read_min < 0),
      writer_(area_.memory_of(ring), shape.ring_bytes, first_end(shape)), laps_(shape.ring_bytes),
      provided_(writer_.end()),
      // No slots with guests: their rings may change hands while `turns_` points there. Nor on a crowded node, where processes
      // share caches.
      neighbour_(is_guest || module.crowded ? 0 : name) {}

// On a crowded node a message goes through the lane in one packet, or another way: no fragments, and not above kLongestOfMany.
node::LaneBounds LaneOut::bounds(std::uint32_t ring_bytes) const noexcept {
    const std::size_t longest = std::min(ring_bytes / 2, kLongestMessage);
    return {one_piece_max_, longest_, longest, module.crowded ? std::min(kLongestOfMany, longest_) : longest,
            module.crowded ? node::kCrowdedHandshakeNs : node::kHandshakeNs};
}

// On a crowded node, what was found for another neighbour: there are many, and to find it for each would cost a lap of each
// ring. Messages up to twice that go through this ring, too, until its own limit is found: one finding may be wrong.
std::size_t LaneOut::alone_until_found(const node::LaneBounds& bounds) noexcept {
    const std::size_t most = std::min(bounds.longest, bounds.alone);
    const std::size_t found = module.crowded ? lane_findings().alone_limit.load(std::memory_order_relaxed) : 0;
    return found > 0 ? std::min(2 * found, most) : most;
}

void LaneOut::earn(std::size_t bytes) noexcept {
    const std::size_t more = module.crowded ? node::saved_by_ring_ns(bytes) : bytes;
    const std::size_t missed = missed_.fetch_add(more, std::memory_order_relaxed) + more;
    if (!module.crowded) {
        const auto length = static_cast<std::uint32_t>(std::min(bytes, longest_) + kHeaderRoom);
        if (missed < kWorth * node::first_lane_end(area_.shape().ring_bytes, length)) return;
    }
    const SpinGuard guard(lock_, module.threads);
    if (module.crowded) {
        const std::size_t price = node::cost_of_more_ring_ns(end_for(bytes) - writer_.end());
        if (missed_.load(std::memory_order_relaxed) < price) return;
        missed_.fetch_sub(price, std::memory_order_relaxed);  // paid: the next pages cost again
    }
    while (bytes > fitting(writer_.end()) && use_more()) {
    }
}

// The longest payload that always fits if the first `end` bytes of the ring are used.
std::size_t LaneOut::fitting(std::uint32_t end) const noexcept {
    return end == area_.shape().ring_bytes ? SIZE_MAX : node::longest_record_of(end) - kHeaderRoom;
}

// What `end` becomes, by doubling, until a payload of `bytes` bytes fits.
std::uint32_t LaneOut::end_for(std::size_t bytes) const noexcept {
    std::uint32_t end = writer_.end();
    while (bytes > fitting(end)) end = std::min(2 * end, area_.shape().ring_bytes);
    return end;
}

node::LanePlace LaneOut::reserve_more(std::uint32_t bytes) noexcept {
    // In the short part of a stream a full ring has room soon, unless the reader does something else.
    constexpr int kLooks = 256;
    if (laps_.keeps_short(writer_.end()) && bytes <= node::longest_record_of(writer_.end())) {
        for (int look = 0; look < kLooks; ++look) {
            if (const node::LanePlace at = writer_.reserve(bytes)) return at;
            relax();
        }
    }
    while (use_more())
        if (const node::LanePlace at = writer_.reserve(bytes)) return at;
    return {};
}

// Looks at the 1st, 2nd, 4th, 8th ... answer, because the neighbour may never send us anything.
void LaneOut::prepare_slots() noexcept {
    if (neighbour_ == 0 || !own || !std::has_single_bit(++searches_)) return;
    const auto ring = own->area.ring_of(neighbour_);
    if (!ring) return;
    turns_ = &own->inbox.turns(*ring);
    if (!module.faults.hit(Fault::kPages) && provide(area_.slot(ring_), node::kLaneSlot) == 0) writer_.use_slot();
}

bool LaneOut::takes_slot(wire::Kind kind, std::uint32_t bytes) noexcept {
    if (!turns_) prepare_slots();
    // Of longer messages the copy into the ring is timed.
    return turns_ && kind == wire::Kind::kMatch && bytes < timed_from_ &&
           writer_.takes_slot(bytes, turns_->confirmed.load(std::memory_order_acquire));
}

void LaneOut::publish_slot(wire::Kind kind, std::uint32_t bytes) noexcept {
    writer_.publish_slot(static_cast<std::uint8_t>(kind), bytes, has_taken());
    turns_->slot.store(area_.slot(ring_), std::memory_order_relaxed);
    turns_->used.store(node::lane_record_bytes(bytes), std::memory_order_relaxed);
    area_.wake(ring_);
}

void LaneOut::begin_lap() noexcept {
    if (module.crowded) return;
    const std::uint32_t end = laps_.next(writer_.end(), writer_.end_lap(), Ticks::now());
    if (end != writer_.end() && !use(end)) laps_.cap(provided_);
}

bool LaneOut::use_more() noexcept {
    const std::uint32_t size = area_.shape().ring_bytes, from = writer_.end(), to = std::min(2 * from, size);
    if (from == size) return false;
    if (use(to)) return true;
    fits_.store(node::longest_record_of(provided_) - kHeaderRoom, std::memory_order_relaxed);
    return from < provided_ && use(provided_);
}

bool LaneOut::use(std::uint32_t end) noexcept {
    if (end > provided_) {
        const bool was_refused = fits_.load(std::memory_order_relaxed) != SIZE_MAX;
        if (was_refused || module.faults.hit(Fault::kPages) ||
            provide(area_.ring(ring_) + provided_, end - provided_) != 0)
            return false;
        provided_ = end;
        earned_.store(fitting(end), std::memory_order_relaxed);
    }
    writer_.use(end);
    return true;
}

std::uint32_t LaneOut::parts_bytes(std::size_t payload) noexcept {
    return ArrivingParts::kHeadBytes + sizeof(wire::MatchWords) + static_cast<std::uint32_t>(payload);
}

void LaneOut::publish(std::uint8_t kind, std::uint32_t bytes) noexcept {
    const std::uint32_t arrived = lane_arrivals.polls.load(std::memory_order_relaxed);
    const bool answers = std::exchange(arrived_, arrived) != arrived;
    if (answers && !turns_) prepare_slots();
    writer_.publish(kind, bytes, answers && kind == kInParts, has_taken());
    area_.wake(ring_);
}

void LaneOut::begin_parts(std::uint32_t at, const wire::MatchWords& header) noexcept {
    std::memcpy(area_.ring(ring_) + at + ArrivingParts::kHeadBytes, &header, sizeof header);
    node::LaneParts(area_.memory_of(ring_), at).begin();
}

// Writes the parts of the record at `at`. The first one is followed by shown().
template <class Shown>
void LaneOut::write_parts(std::uint32_t at, std::byte* payload, const char* from, std::uint32_t length,
                          Shown&& shown) noexcept {
    node::LaneParts parts(area_.memory_of(ring_), at);
    for (std::uint32_t done = 0; done < length;) {
        const std::uint32_t part = std::min(node::kLanePart, length - done);
        std::memcpy(payload + done, from + done, part);
        parts.tell(done + part);
        if (done == 0) shown();
        done += part;
    }
}

void LaneOut::write_in_parts(std::uint32_t at, const wire::MatchWords& header, const char* from,
                             std::size_t bytes) noexcept {
    begin_parts(at, header);
    copy_long(bytes, [&] {
        write_parts(at, area_.ring(ring_) + at + parts_bytes(0), from, static_cast<std::uint32_t>(bytes),
                    [&] { publish(kInParts, parts_bytes(bytes)); });
    });
}

bool LaneOut::may_be_offered(std::size_t bytes) const noexcept {
    const std::int64_t given = module.config.lane_read_min, most = module.config.lane_max;
    if (!may_offer_ || bytes > std::min(longest_, long_enough_for())) return false;
    if (most < 0 && bytes > limit_.longest()) return false;
    if (most >= 0 && bytes > std::max(one_piece_max_, static_cast<std::size_t>(most))) return false;
    return given >= 0 ? bytes >= static_cast<std::size_t>(given) : limit_.offers().has(bytes);
}

bool LaneOut::begins_offer() noexcept {
    // A sender that is called while a packet is handled could not handle the packets of others while it waits.
    if (offering || (own && own->polling.load(std::memory_order_relaxed))) return false;
    return !backoff_.leaves_out();
}

bool LaneOut::offer(std::uint32_t at, const wire::MatchWords& header, const char* from, std::size_t bytes) noexcept {
    outstanding_ = {{reinterpret_cast<std::uintptr_t>(from), ++offers_}, at, static_cast<std::uint32_t>(bytes), {}};
    begin_parts(at, header);
    outstanding_.offer.write(area_.ring(ring_) + at + parts_bytes(0));
    publish(kOffered, parts_bytes(bytes) + kOfferBytes);
    const auto in_time = static_cast<unsigned>(kPatience + bytes / kBytesOfLook);
    unsigned looks = 0;
    offering = this;
    wait_on_lane([&] {
        if (look_for_answer()) return true;
        if (++looks != kTooLate * in_time) return false;
        withdraw_offer();
        return look_for_answer();
    });
    offering = nullptr;
    const bool is_copied = *outstanding_.is_copied;
    if (is_copied && looks <= in_time) backoff_.answered_in_time();
    else backoff_.answered_late(looks);
    return is_copied;
}

bool LaneOut::look_for_answer() noexcept {
    if (outstanding_.is_copied) return true;
    outstanding_.is_copied = outstanding_.offer.is_copied(area_.answer(ring_).load(std::memory_order_acquire));
    if (outstanding_.is_copied == false) write_offered();
    return outstanding_.is_copied.has_value();
}

void LaneOut::write_offered() noexcept {
    write_parts(outstanding_.at, area_.ring(ring_) + outstanding_.at + parts_bytes(0) + kOfferBytes,
                reinterpret_cast<const char*>(outstanding_.offer.address), outstanding_.bytes, [] {});
}

// The receiver may compute for minutes, or wait for something that this process does after the send. Only right after
// look_for_answer() has found none: after an answer the receiver passes the record, and a packet that a callback has
// sent meanwhile may lie in its place.
void LaneOut::withdraw_offer() noexcept {
    node::LaneParts parts(area_.memory_of(ring_), outstanding_.at);
    if (outstanding_.is_copied || !outstanding_.offer.take_back(parts, area_.reading(ring_))) return;
    outstanding_.is_copied = false;
    write_offered();
}

void serve_own_offer() noexcept {
    if (offering) offering->look_for_answer();
}

LaneOut::~LaneOut() {
    if (turns_) turns_->used.store(0, std::memory_order_relaxed);
    // The end of the lock of a guest frees its ring. A process that it has forked may hold the descriptor longer.
    if (is_guest_) node::unlock_byte(segment_.descriptor(), ring_);
    else area_.close(ring_, static_cast<std::int32_t>(getpid()));
}

std::unique_ptr<LaneOut> LaneOut::open(std::int32_t pid, std::uint64_t name, const LaneCard& card, bool is_guest,
                                       Kernel kernel, int& error) noexcept {
    const node::LaneShape shape{card.rings, card.ring_bytes};
    error = EBADF;
    if (!shape.valid() || card.layout != kLaneLayout) return nullptr;
    // The lock of a guest lasts as long as its descriptor.
    node::Segment segment = node::Segment::attach({pid, card.fd, card.nonce}, node::LaneArea::bytes_for(shape),
                                                  is_guest);
    error = segment.error();
    if (!segment) return nullptr;
    const node::LaneArea area(segment.memory(), shape);
    const auto self = static_cast<std::int32_t>(getpid());
    const auto ring = area.claim(self, static_cast<std::uint32_t>(opal_process_info.my_local_rank), is_guest);
    if (!ring) return nullptr;
    if (is_guest && !node::lock_byte(segment.descriptor(), *ring)) {
        error = errno;
        area.give_up(*ring);  // if we were killed, nobody would free it
        return nullptr;
    }
    if (is_guest) area.watch_claim(*ring, self);
    error = provide(area.ring(*ring), first_end(shape));
    if (error != 0) {
        if (!is_guest) area.give_up(*ring);
        return nullptr;
    }
    if (is_guest) area.watch(*ring, self);
    else area.open(*ring, self);
    if (!is_guest) area.introduce(*ring, name_of(ompi_proc_local()));
    return std::unique_ptr<LaneOut>(new LaneOut(std::move(segment), shape, *ring, name, is_guest, kernel));
}

// --- receiving -----------------------------------------------------------------------------------------------------

namespace {

// Whether a transport of this process copies at once, as those for shared memory do, and has these flags.
bool has_transport_in_memory(std::uint32_t flags) noexcept {
    mca_btl_base_selected_module_t* selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        if (copies_at_once(*selected->btl_module) && (selected->btl_module->btl_flags & flags) == flags) return true;
    }
    return false;
}

}  // namespace

bool lane_is_wanted() noexcept { return module.given.lane != 0 && has_transport_in_memory(0); }

bool kernel_copies_messages() noexcept {
    return static_cast<rndv::Wish>(module.config.protocol) != rndv::Wish::kSend &&
           has_transport_in_memory(MCA_BTL_FLAGS_GET);
}

void make_lane_memory() noexcept {
    if (!lane_is_wanted()) return;
    const node::LaneShape shape = shape_of_node();
    if (!shape.valid()) return;
    Receiving& it = receiving();
    it.segment = node::Segment::create(node::LaneArea::bytes_for(shape));
    it.error = it.segment.error();
    if (!it.segment) return;
    it.error = provide(it.segment.memory(), node::LaneArea::head_bytes(shape));
    if (it.error) return;
    it.area = node::LaneArea(it.segment.memory(), shape);
    it.area.prepare();
    it.inbox = node::LaneInbox(it.area);
    it.unfinished.resize(shape.rings);
    own = &it;
}

void free_lane_memory() noexcept {
    own = nullptr;
    receiving().inbox = {};
    receiving().segment = {};
}

LaneCard lane_card() noexcept {
    if (!own) return {};
    const node::SegmentTicket ticket = own->segment.ticket();
    return {ticket.fd, own->area.shape().rings, own->area.shape().ring_bytes, kLaneLayout, ticket.nonce};
}

void keep_from_lane(std::int64_t bytes) noexcept {
    if (own) own->area.kept().fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
}

bool has_lane_memory() noexcept { return own != nullptr; }

void report_missing_lane() noexcept {
    if (lane_is_wanted() && !own && receiving().error) report_lane_missed(receiving().error);
}

void report_lane_missed(int error) noexcept {
    const bool is_normal = error == 0;  // more guests than rings
    if (is_asked_for() || (!is_normal && opal_process_info.my_local_rank == 0)) no_lane(error);
}

void go_on_with_parts(RecvRequest& request, const ArrivingParts& parts) noexcept {
    own->unfinished[parts.ring()] = std::make_unique<Unfinished>(Unfinished{request, parts});
}

int poll_lane() noexcept {
    if (offering) [[unlikely]]
        serve_own_offer();  // also if this is a callback that waits for something else
    if (!own) return 0;
    Receiving& it = *own;
    const Polling turn;
    if (module.threads) {
        if (it.polling.load(std::memory_order_relaxed) || it.polling.exchange(true, std::memory_order_acquire))
            return 0;
    } else {
        if (it.polling.load(std::memory_order_relaxed)) return 0;  // called from within a packet's handling
        it.polling.store(true, std::memory_order_relaxed);
    }
    const int packets = poll_now(it);
    it.polling.store(false, std::memory_order_release);
    return packets;
}

}  // namespace coop::pml
