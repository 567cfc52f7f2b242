// SPDX-License-Identifier: BSD-3-Clause
//
// The lane: packets between processes that share memory, without a transport (coop/node/lane_area.h). A process
// publishes the memory in which it receives; a neighbour claims a ring there with its first message. From then on its
// packets go through the ring. These still use the transport: a CTS or FIN that finds the ring full, the FIN of an rput,
// messages for which the ring is too short because the system provides no more memory (leave_lane()), and fragments of
// messages that began before. The packets are those of the transports, with the same headers and sequence numbers, and
// handled by the same functions; only a whole eager message has one of its own (on_whole()). The way of a short message:
//
//     send      mca_pml_coop_send() -> goes_by_lane()               send.cc
//               send_short()                                        lane_packet.h
//               LaneOut::put() -> node::LaneWriter                  here; coop/node/lane_ring.h
//     receive   wait_on_lane() or mca_pml_coop_progress()           here; module.cc
//               poll_lane() -> poll_now()                           node_lane.cc
//               node::LaneInbox::poll() -> take() -> take_whole()   coop/node/lane_inbox.h; node_lane.cc
//               on_whole() -> deliver() -> arrive(): matching       on_match.cc
//               DirectRecv::take() or receive(RecvRequest&, ...)    recv_direct.h, recv_request.cc
//
// Threading: a spin lock per ring for its writers, if threads exist; one thread at a time reads. A call to poll_lane()
// from within the handling of a packet, such as from a callback that calls opal_progress(), finds nothing, as in
// btl/vader: a callback must not wait for another message. Ownership: a Neighbour owns its LaneOut. Errors: without
// memory, or if a neighbour's cannot be mapped, its packets use the transports, which is reported once, and node.cc tries
// again later. Damaged rings end the job. What a peer may change at any time is copied before it is checked: the headers;
// not the payload.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "lane_costs.h"
#include "lane_parts.h"
#include "module.h"

#include "coop/base/spin_lock.h"
#include "coop/node/lane_area.h"
#include "coop/node/lane_inbox.h"
#include "coop/node/lane_laps.h"
#include "coop/node/lane_offer.h"
#include "coop/node/segment.h"

namespace coop::pml {

// Where neighbours find the memory in which a process receives (published by modex.cc).
struct LaneCard {
    std::int32_t fd = -1;  // -1: none
    std::uint32_t rings = 0;
    std::uint32_t ring_bytes = 0;
    std::uint32_t layout = 0;  // kLaneLayout of its build
    std::uint64_t nonce = 0;
};

// What each poll of the rings that finds packets counts, in one cache line.
struct alignas(64) LaneArrivals {
    std::atomic<std::uint32_t> polls{0};  // that have found packets; may wrap
    int since_progress = 0;               // packets that wait_on_lane() has found since it called opal_progress()
};
inline constinit LaneArrivals lane_arrivals;

// Our end of the ring to a neighbour. How a message may go depends on its length:
//
//     up to               a message
//     short_max()         takes the hot path: it is copied in one piece, not timed (timed_from()) and not offered
//     whole_max()         goes in one packet, as soon as there is room. This is one_piece_max(), unless the node is
//                         crowded
//     one_piece_max()     is copied in one piece: pml_coop_lane_small_max, or less. Above that, sender and receiver
//                         copy the packet in parts at the same time if the sender waits and the node is not crowded
//     at_once_max()       goes in one packet if the receiver keeps few messages (takes_long()) and there is room now
//     alone_max()         does so even if its sender does not wait and the receiver has no other message to copy, or
//                         long messages go both ways
//     message_max()       goes in fragments if it does not go at once. This is at_once_max(), unless the node is
//                         crowded
//     longest_payload()   (bounds each packet, also those of a handshake)
//
// may_be_offered() tells for which lengths the receiver should read the message instead.
class LaneOut {
public:
    struct Kernel {
        bool may_copy = false;  // messages may go by a copy of the kernel until they are worth a longer ring
        bool reads = false;     // the neighbour can copy from our memory with process_vm_readv()
    };
    // `name`: of the neighbour, as name_of() tells. `is_guest`: we belong to another job than it. Null: no memory, or no free ring;
    // `error` has an errno then, or 0 if all rings are in use.
    static std::unique_ptr<LaneOut> open(std::int32_t pid, std::uint64_t name, const LaneCard& card, bool is_guest,
                                         Kernel kernel, int& error) noexcept;
    ~LaneOut();
    LaneOut(const LaneOut&) = delete;
    LaneOut& operator=(const LaneOut&) = delete;

    // The longest payload behind a header of any kind, and the largest message that always goes in one packet.
    std::size_t longest_payload() const noexcept { return std::min(longest_, fits_.load(std::memory_order_relaxed)); }
    std::size_t whole_max() const noexcept { return whole_max_; }
    // The largest message that is copied in one piece even if its sender waits: the copy takes less time than to let the
    // receiver follow it.
    std::size_t one_piece_max() const noexcept { return one_piece_max_; }
    // Whether a message above whole_max() uses another way only because too little of the ring is used. earn() counts it, and
    // uses more of the ring when that is worth it.
    bool may_earn(std::size_t bytes, bool waits) const noexcept {
        return bytes > long_enough_for() && bytes <= std::max(found_max(waits), waits ? limit_.offers().to : 0);
    }
    void earn(std::size_t bytes) noexcept;
    // Whether nothing but the limit that was found keeps a contiguous message out of the lane. `waits`: its sender waits for it.
    bool is_kept_out(std::size_t bytes, bool waits) const noexcept {
        if (module.config.lane_max >= 0 || !earns_ || !takes_long(bytes) || bytes > long_enough_for()) return false;
        return bytes <= limit_.most_alone() && bytes > std::min(found_max(waits), waits ? SIZE_MAX : limit_.alone());
    }
    void keep_out() noexcept {
        const SpinGuard guard(lock_, module.threads);
        limit_.leave_out();
    }
    // The system has provided no more memory for the ring, which is too short for a packet with this payload.
    bool is_too_short_for(std::size_t bytes) const noexcept { return bytes > fits_.load(std::memory_order_relaxed); }
    // The largest message that may use the lane if it does not go at once. `waits`: its sender waits for it.
    // `kernel_may_copy`: if not, a found limit does not apply, because it compares with copies of the kernel.
    std::size_t message_max(bool waits, bool kernel_may_copy) const noexcept {
        const std::int64_t given = module.config.lane_max;
        if (given >= 0) return std::max(one_piece_max_, static_cast<std::size_t>(given));
        if (!kernel_may_copy || !earns_) return std::max(whole_max_, limit_.longest());
        return std::min(module.crowded ? one_piece_max_ : found_max(waits), long_enough_for());
    }
    // The same for a message that goes in one packet now. On a crowded node messages above message_max() may go in one
    // packet, but not in fragments after a CTS, for which processes would have to take turns.
    std::size_t at_once_max(bool waits, bool kernel_may_copy) const noexcept {
        const bool is_found = module.crowded && module.config.lane_max < 0 && kernel_may_copy && earns_;
        return is_found ? std::min(found_max(waits), long_enough_for()) : message_max(waits, kernel_may_copy);
    }

    // The longest message of a sender that does not wait, if it is the first since the peer's last message, or long messages
    // go both ways.
    // `receiver_may_read`: if not, a longer one would need fragments after a handshake, so there is no limit.
    std::size_t alone_max(bool receiver_may_read) const noexcept {
        const bool is_found = module.config.lane_max < 0 && earns_ && receiver_may_read && !module.crowded;
        return is_found ? std::max(whole_max_, limit_.alone()) : SIZE_MAX;
    }

    // The largest message that always goes at once, in one piece and untimed, whether its sender waits or not.
    std::size_t short_max() const noexcept { return short_max_; }
    // The shortest message whose copy is timed.
    std::size_t timed_from() const noexcept { return timed_from_; }
    // Makes a copy of a long message into the ring, from put() and put_in_parts(). Copies are not timed while lengths of the ring
    // are tried: they do not predict later ones.
    template <class Copy>
    void copy_long(std::size_t bytes, Copy&& copy) noexcept {
        if (laps_.is_trying()) return copy();
        limit_.time(bytes, copy);
    }

    // Whether a longer message may go in one packet, too: the receiver does not yet keep many that it has no receive for.
    bool takes_long(std::size_t bytes) const noexcept {
        return bytes <= longest_ && area_.kept().load(std::memory_order_relaxed) < kMostKept;
    }

    // Sends a packet of at most `bytes` bytes. write(body) fills it in and returns its length, or 0 if it cannot.
    // Returns false if the ring is full, or nothing was written.
    template <class Write>
    [[gnu::always_inline]] bool put(wire::Kind kind, std::size_t bytes, Write&& write) noexcept {
        const SpinGuard guard(lock_, module.threads);
        return put_now(kind, bytes, write);
    }

    // Sends an eager message of which the receiver copies each part as soon as it is written. Only if may_send_parts()
    // (lane_packet.h), so without threads: it takes no lock. Returns false if the ring is full, or the receiver
    // belongs to another job: it need not end if we do in between. make_header() is called only if there is room.
    template <class MakeHeader>
    bool put_in_parts(MakeHeader&& make_header, const char* from, std::size_t bytes) noexcept {
        const node::LanePlace at = is_guest_ ? node::LanePlace() : reserve(parts_bytes(bytes));
        if (!at) return false;
        write_in_parts(*at, make_header(), from, bytes);
        if (*at == node::kLaneWord) begin_lap();
        return true;
    }

    // Whether the receiver should read a message of this length if its sender waits (coop/node/lane_offer.h).
    bool may_be_offered(std::size_t bytes) const noexcept;
    // Whether to offer it now. Counts the messages that are left out because the receiver has answered late.
    bool begins_offer() noexcept;
    // Offers an eager message and returns when the receiver has all of it, or all is in the ring because the kernel has
    // refused the copy or no answer has come. Only if may_be_offered(), so without threads, and begins_offer(): it
    // takes no lock. make_header() is called only if there is room.
    enum class Offered : std::uint8_t { kNoRoom, kRead, kWritten };
    template <class MakeHeader>
    Offered put_offered(MakeHeader&& make_header, const char* from, std::size_t bytes) noexcept {
        const node::LanePlace at = reserve(parts_bytes(bytes) + kOfferBytes);
        if (!at) return Offered::kNoRoom;
        const Offered how = offer(*at, make_header(), from, bytes) ? Offered::kRead : Offered::kWritten;
        if (*at == node::kLaneWord) begin_lap();
        return how;
    }
    // Writes the payload of the outstanding offer if the receiver has not copied it. Returns whether it has answered.
    bool look_for_answer() noexcept;

    static constexpr std::uint64_t kMostKept = 4 * 1024 * 1024;

private:
    // No longer message goes through the lane on a crowded node, whatever is measured, if lane_max is -1 and the kernel may copy
    // it instead: the rings of many processes take turns in the caches, which the measurement of one ring does not show.
    static constexpr std::size_t kLongestOfMany = 32 * 1024;
    // A longer ring pays off when so many times its length has been sent: a page of it takes 3 us when it is used for the
    // first time, and a copy by the kernel up to 5 us more than the lane. On a crowded node cost_of_more_ring_ns() and
    // saved_by_ring_ns() decide instead.
    static constexpr std::size_t kWorth = 2;
    static constexpr std::size_t kFirstOfMany = 8192;  // up to here a message makes the ring longer at once even there

    static constexpr std::uint32_t kOfferBytes = sizeof(node::LaneOffer);
    // A receiver that copies at once answers within kPatience looks (5 us: a look takes 20 ns or more) and one more
    // for each kBytesOfLook bytes (3.2 GB/s). After kTooLate times as many the sender writes the message into the ring.
    static constexpr unsigned kPatience = 256, kBytesOfLook = 64, kTooLate = 8;
    struct Outstanding {
        node::LaneOffer offer;
        std::uint32_t at = 0, bytes = 0;  // the record, and its payload
        std::optional<bool> is_copied;    // by the receiver; nothing: not known yet
    };

    LaneOut(node::Segment segment, node::LaneShape shape, std::uint32_t ring, std::uint64_t name, bool is_guest,
            Kernel kernel) noexcept;

    node::LanePlace reserve(std::uint32_t bytes) noexcept {
        if (const node::LanePlace at = writer_.reserve(bytes)) [[likely]]
            return at;
        return reserve_more(bytes);
    }
    // After a record at the beginning of the ring: decides how much of it to use.
    void begin_lap() noexcept;
    node::LanePlace reserve_more(std::uint32_t bytes) noexcept;
    // The largest message that is quicker through the lane, as was measured. On a crowded node a CPU makes one copy after the
    // other, so both count, as they do for alone().
    std::size_t found_max(bool waits) const noexcept {
        if (module.crowded) return std::max(one_piece_max_, limit_.alone());
        return std::max(whole_max_, limit_.get(waits));
    }
    // The longest message that makes the part of the ring that is used longer if it has to. Longer ones have to earn that first,
    // unless somebody has chosen which messages use the lane, or the kernel cannot copy instead.
    std::size_t long_enough_for() const noexcept {
        return !earns_ || module.config.lane_max >= 0 ? SIZE_MAX
                                                      : std::max(whole_max_, earned_.load(std::memory_order_relaxed));
    }
    std::size_t fitting(std::uint32_t end) const noexcept;
    std::uint32_t end_for(std::size_t bytes) const noexcept;
    static std::size_t alone_until_found(const node::LaneBounds& bounds) noexcept;
    node::LaneBounds bounds(std::uint32_t ring_bytes) const noexcept;
    static std::uint32_t parts_bytes(std::size_t payload) noexcept;
    void publish(std::uint8_t kind, std::uint32_t bytes) noexcept;
    void begin_parts(std::uint32_t at, const wire::MatchWords& header) noexcept;
    template <class Shown>
    void write_parts(std::uint32_t at, std::byte* payload, const char* from, std::uint32_t length,
                     Shown&& shown) noexcept;
    void write_in_parts(std::uint32_t at, const wire::MatchWords& header, const char* from, std::size_t bytes) noexcept;
    bool offer(std::uint32_t at, const wire::MatchWords& header, const char* from, std::size_t bytes) noexcept;
    void write_offered() noexcept;
    void withdraw_offer() noexcept;
    // Doubles the part of the ring that is used, for a message that does not fit, or uses all that the system has provided. Returns
    // false if nothing more can be used: it is the whole, or the system provides no more memory. In the latter case no more than `provided_` is ever used.
    bool use_more() noexcept;
    // Uses the first `end` bytes of the ring. Returns false if the system does not provide the memory.
    bool use(std::uint32_t end) noexcept;

    template <class Write>
    [[gnu::always_inline]] bool put_now(wire::Kind kind, std::size_t bytes, Write& write) noexcept {
        const std::uint32_t arrived = lane_arrivals.polls.load(std::memory_order_relaxed);
        const bool answers = arrived != arrived_;
        if (answers && may_take_slot(bytes) && takes_slot(kind, static_cast<std::uint32_t>(bytes))) [[unlikely]]
            return put_in_slot(kind, arrived, write);
        const node::LanePlace at = reserve(static_cast<std::uint32_t>(bytes));
        if (!at) return false;
        const std::size_t written = write(area_.ring(ring_) + *at);
        if (written == 0) return false;
        writer_.publish(static_cast<std::uint8_t>(kind), static_cast<std::uint32_t>(written), answers, has_taken());
        area_.wake(ring_);
        arrived_ = arrived;
        if (*at == node::kLaneWord) [[unlikely]]
            begin_lap();
        return true;
    }
    template <class Write>
    [[gnu::always_inline]] bool put_in_slot(wire::Kind kind, std::uint32_t arrived, Write& write) noexcept {
        const std::size_t written = write(area_.slot(ring_) + node::kLaneWord);
        if (written == 0) return false;
        publish_slot(kind, static_cast<std::uint32_t>(written));
        arrived_ = arrived;
        return true;
    }
    // Whether takes_slot() has to be asked. Most answers are too short for the slot.
    bool may_take_slot(std::size_t bytes) const noexcept { return bytes >= node::kShortestInSlot || !turns_; }
    // Whether an answer goes into the slot (coop/node/lane_ring.h). Prepares the slots first, when that is possible.
    bool takes_slot(wire::Kind kind, std::uint32_t bytes) noexcept;
    void publish_slot(wire::Kind kind, std::uint32_t bytes) noexcept;
    // The turn that the neighbour should know: of its last record that we have taken from its slot.
    bool has_taken() const noexcept { return turns_ && turns_->taken.load(std::memory_order_acquire); }
    // Finds the ring of the neighbour in our own memory, and provides our slot. Until then our packets do not tell the neighbour what we
    // have taken, so it uses its slot once at most.
    void prepare_slots() noexcept;

    node::Segment segment_;
    node::LaneArea area_;
    std::uint32_t ring_;
    bool is_guest_, earns_, may_offer_;
    std::uint64_t offers_ = 0;
    Outstanding outstanding_;
    node::OfferBackoff backoff_;
    std::size_t longest_, one_piece_max_, timed_from_, whole_max_, short_max_;
    std::atomic<std::size_t> earned_{0};       // long_enough_for(), if more than whole_max_
    std::atomic<std::size_t> missed_{0};       // by messages for which it was too short: bytes, or ns on a crowded node
    std::atomic<std::size_t> fits_{SIZE_MAX};  // less: memory was refused, so that only this fits for sure
    LaneLimit limit_;                          // settled under `lock_`
    node::LaneWriter<node::LaneMemory> writer_;  // under `lock_`
    node::LaneLaps laps_;                        // under `lock_`
    std::uint32_t provided_;                     // bytes of the ring that the system has provided; under `lock_`
    std::uint32_t arrived_ = 0;                  // lane_arrivals.polls at the last packet; under `lock_`
    const std::uint64_t neighbour_;              // its name; 0: no slots are used
    node::LaneTurns* turns_ = nullptr;           // of its ring in our memory; null: not found; under `lock_`
    unsigned searches_ = 0;                      // answers without `turns_`; under `lock_`
    SpinLock lock_;                              // taken only if there are threads
};

// Whether pml_coop_lane is 1 and this process has a transport for shared memory. A user who selects only other
// transports, such as tcp, wants messages inside a node to use them, too.
bool lane_is_wanted() noexcept;
// Whether the kernel may copy messages from other processes of the node, if it does not deny that.
bool kernel_copies_messages() noexcept;
// Creates the memory in which we receive. If it is not wanted, or the system provides none, this process works without.
void make_lane_memory() noexcept;
void free_lane_memory() noexcept;
LaneCard lane_card() noexcept;

bool has_lane_memory() noexcept;  // we have memory in which we receive

// Handles the packets that have arrived. Returns their number.
int poll_lane() noexcept;

// A process that waits for the payload of a message it has refused to read is perhaps refused itself: both would wait for ever.
// Writes the payload then, without waiting.
void serve_own_offer() noexcept;

// A message of which not all parts have arrived in time has matched this receive. Called while its packet is handled;
// finish_parts() follows in a later poll_lane().
void go_on_with_parts(RecvRequest& request, const ArrivingParts& parts) noexcept;

// A message that came through the lane waits for its receive (bytes > 0), or does no longer (bytes < 0).
void keep_from_lane(std::int64_t bytes) noexcept;

// Reports that we have no memory in which we receive, if we should have. Without a board nothing is said:
// report_missing_memory() names that.
void report_missing_lane() noexcept;
// Reports, once, that messages to a process of the node stay with a transport. `error`: an errno, or 0 if it has no
// free ring, which is reported only if the lane was asked for. What concerns all processes of a node, the first one
// reports unless the lane was asked for.
void report_lane_missed(int error) noexcept;

// opal_progress() on behalf of wait_on_lane().
inline void progress_others() noexcept {
    lane_arrivals.since_progress = 0;
    opal_progress();
}

// Waits until done(). A short message on the lane is found sooner than by opal_progress(), which asks everybody. But
// packets that keep coming do not hold up the rest, not even if each call finds its packet at once. Nor does work of
// our own, such as a copy that we share, wait for the looks. Only if no threads meet in MPI.
template <class Done>
void wait_on_lane(Done&& done) noexcept {
    constexpr int kLooks = 16, kPackets = 256;  // at the lane, and from it, for each call of opal_progress()
    if (lane_arrivals.since_progress >= kPackets) [[unlikely]]
        progress_others();
    for (int looks = 1; !done(); ++looks) {
        if (const int packets = poll_lane(); packets > 0) {
            lane_arrivals.since_progress += packets;
            if (done()) return;
        }
        const bool has_work = (module.copying.length.load(std::memory_order_relaxed) |
                               module.deferred.length.load(std::memory_order_relaxed)) != 0;
        if (has_work || looks % kLooks == 0) progress_others();
    }
}

}  // namespace coop::pml
