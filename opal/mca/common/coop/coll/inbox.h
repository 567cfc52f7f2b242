// SPDX-License-Identifier: BSD-3-Clause
//
// What the other processes of one communicator have sent to this one for its
// allgathers. Transports write to it when packets arrive, calls read it.
//
//     packet            written to                            counts for the step
//     short, call open  the caller's memory                   as arrived
//     short, else       the slot of (lap, step)               as arrived, in the slot
//     data              the caller's memory                   its bytes
//     landed            (a transport wrote the memory)        its bytes, with the last part
//     (none)            its buffer, by a write (buffers.h)    when the call looks for it
//     announcement      the place of (lap, announcement)      -
//
// Laps number the calls of a communicator, from 1. A process may have several calls in
// progress, at most W = kWindow: it opens lap n only when its laps up to n - W are complete.
//
// 2 W laps are kept, so that a packet never lands on one that has not been read. Let d be
// the lap up to which all calls of this process are complete; it has read these packets. A
// process that sends a packet of lap n has completed lap n - W. For that it has heard,
// directly or not, from every process in lap n - W, so this process had opened that lap,
// and its laps up to n - 2 W were complete: n - 2 W <= d. So all packets that this process
// has not read belong to the 2 W laps d + 1 … d + 2 W. Nothing is cleared between calls: a
// lap number marks what is valid. This requires that every step sends a packet, even one
// without bytes.
//
// Bytes of long steps are counted for W laps only, because they arrive in open ones.
//
// Threading: packets may arrive in any thread, one at a time for each step; open(),
// close() and the queries by one thread at a time. Errors: a packet that
// contradicts the state is refused; the reason is a text. A refused packet has no effect.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "coop/coll/blocks.h"
#include "coop/coll/buffers.h"
#include "coop/coll/packet.h"
#include "coop/coll/steps.h"

namespace coop::coll {

// Only the algorithms with few steps have slots for short steps.
constexpr bool has_slots(Algorithm algorithm) noexcept {
    return algorithm == Algorithm::kRecursiveDoubling || algorithm == Algorithm::kBruck;
}

// Where the steps of a call put their data.
struct Target {
    std::byte* memory = nullptr;
    Blocks blocks{0, 0};
    Algorithm algorithm = Algorithm::kRing;
    std::uint32_t rank = 0;
    RingOrder order{};  // of ring; the same in all processes

    Step step(std::uint32_t number) const noexcept {
        if (algorithm == Algorithm::kRing && !order.rank_at.empty()) return ring_step_of(order, number);
        return step_of(algorithm, blocks.processes(), rank, number);
    }
    Pieces receives(std::uint32_t number) const noexcept { return blocks.pieces_of(step(number).receive); }
};

struct Announcement {
    std::uint64_t address = 0;  // of the first block
    std::uint32_t handle_bytes = 0;
    bool writable = false;      // false: send the data in packets
    void* transport = nullptr;  // the transport that it came by
    alignas(8) std::array<unsigned char, kMaxHandleBytes> handle{};
};

class Inbox {
public:
    static constexpr std::uint32_t kWindow = 4;  // calls in progress
    static constexpr std::uint32_t kLaps = 2 * kWindow;

    // `slots`: number of steps that may be short. Null: out of memory.
    static std::unique_ptr<Inbox> create(std::uint32_t processes, std::uint32_t slots, std::size_t slot_bytes) {
        std::unique_ptr<Inbox> inbox(new (std::nothrow) Inbox(processes, slots, slot_bytes));
        return inbox && inbox->shorts_ && inbox->longs_ && inbox->slots_ && inbox->places_ ? std::move(inbox) : nullptr;
    }

    // Short steps may also be written into these buffers; before the first call.
    void use(const Buffers& buffers) noexcept { buffers_ = buffers; }

    // --- by the calls ---

    // Whether all calls up to lap - kWindow are complete. The calls are opened in their order.
    bool may_open(std::uint32_t lap) const noexcept { return lap - completed() <= kWindow; }
    // The last lap up to which all calls are complete.
    std::uint32_t completed() const noexcept { return completed_.load(std::memory_order_relaxed); }
    // From now on packets of this lap are written to the target.
    void open(std::uint32_t lap, const Target& target) noexcept {
        Opened& call = opened(lap);
        call.target = target;
        call.steps = count_steps(target.algorithm, target.blocks.processes());
        for (std::uint32_t step = 0; step < call.steps; ++step) {
            Long& arrived = long_of(lap, step);
            arrived.bytes.store(0, std::memory_order_relaxed);
            for (auto& parts : arrived.parts) parts.store(0, std::memory_order_relaxed);
        }
        call.state.store(open_state(lap), std::memory_order_release);
    }
    // The call is complete; calls may complete in any order.
    void close(std::uint32_t lap) noexcept {
        opened(lap).state.store(closed_state(lap), std::memory_order_relaxed);
        std::uint32_t last = completed();
        while (opened(last + 1).state.load(std::memory_order_relaxed) == closed_state(last + 1)) ++last;
        completed_.store(last, std::memory_order_release);
    }

    // Whether the short step of `bytes` bytes has arrived; copies it from its slot to the target if it came before
    // open(). If it had another length then, the callers of the processes disagree: length_differs() says so.
    bool take_short(std::uint32_t lap, std::uint32_t step, std::uint64_t bytes) noexcept {
        const Short& arrived = short_of(lap, step);
        const std::uint64_t mark = arrived.mark.load(std::memory_order_acquire);
        if (mark >> 1 != lap) return take_written(lap, step, bytes);
        if (!(mark & 1)) return true;
        if (arrived.bytes != bytes) {
            length_differs_ = true;
            return false;
        }
        const Target& target = opened(lap).target;
        copy(target.memory, target.receives(step), 0, slot(lap, step), bytes);
        return true;
    }
    bool length_differs() const noexcept { return length_differs_; }
    // Whether take_short() has found a buffer whose tail is damaged.
    bool is_damaged() const noexcept { return is_damaged_; }
    // Whether the `bytes` bytes of a long step have arrived.
    bool has_landed(std::uint32_t lap, std::uint32_t step, std::uint64_t bytes) const noexcept {
        return long_of(lap, step).bytes.load(std::memory_order_acquire) >= counted(bytes);
    }
    // Null: not yet.
    const Announcement* announcement(std::uint32_t lap, std::uint32_t number) const noexcept {
        const Place& place = place_of(lap, number);
        return place.lap.load(std::memory_order_acquire) == lap ? &place.announcement : nullptr;
    }

    // A step without bytes counts as one byte, so that its packet is noticed.
    static constexpr std::uint64_t counted(std::uint64_t bytes) noexcept { return bytes > 0 ? bytes : 1; }

    // --- by arriving packets, which find_damage() has passed; null: taken ---

    const char* on_packet(const Packet& packet, const void* data, void* transport) noexcept {
        if (packet.lap - completed_.load(std::memory_order_acquire) - 1 >= kLaps) return "lap";
        const Opened& call = opened(packet.lap);
        const std::uint64_t state = call.state.load(std::memory_order_acquire);
        if (state == closed_state(packet.lap)) return "lap";
        const bool open = state == open_state(packet.lap);
        if (open && packet.step >= (packet.kind == Kind::kAnnounce ? places_per_lap_ : call.steps)) return "step";
        switch (packet.kind) {
        case Kind::kShort: return on_short(packet, data, open ? &call.target : nullptr);
        case Kind::kAnnounce: return on_announce(packet, data, transport);
        case Kind::kData: return open ? on_data(packet, data, call.target) : "lap of data";
        case Kind::kLanded: return open ? on_landed(packet, call.target) : "lap of a notice";
        case Kind::kBuffer: break;
        }
        return "kind";
    }

private:
    // A call from open() on, and what has arrived of its steps.
    struct Opened {
        std::atomic<std::uint64_t> state{0};  // open_state() or closed_state() of its lap
        std::uint32_t steps = 0;              // of the target's algorithm
        Target target;
    };
    struct Short {
        std::atomic<std::uint64_t> mark{0};  // 2 * lap, + 1 if the bytes are in the slot
        std::uint64_t bytes = 0;             // in the slot
    };
    struct Long {
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<std::uint32_t> parts[2]{};  // by piece: how many parts of its write have been told of
    };
    struct Place {
        std::atomic<std::uint32_t> lap{0};
        Announcement announcement;
    };

    Inbox(std::uint32_t processes, std::uint32_t slots, std::size_t slot_bytes)
        : steps_(processes),  // of a ring, the algorithm with the most steps, and one more
          places_per_lap_(std::max(count_announcements(Algorithm::kBruck, processes), 2u)), slot_count_(slots),
          slot_bytes_(slot_bytes), shorts_(new (std::nothrow) Short[std::size_t{kLaps} * slots]),
          longs_(new (std::nothrow) Long[std::size_t{kWindow} * steps_]),
          places_(new (std::nothrow) Place[std::size_t{kLaps} * places_per_lap_]),
          slots_(new (std::nothrow) std::byte[kLaps * slots * slot_bytes]) {}

    static constexpr std::uint64_t closed_state(std::uint32_t lap) noexcept { return std::uint64_t{lap} << 1; }
    static constexpr std::uint64_t open_state(std::uint32_t lap) noexcept { return closed_state(lap) | 1; }

    Opened& opened(std::uint32_t lap) noexcept { return opened_[lap % kWindow]; }
    Short& short_of(std::uint32_t lap, std::uint32_t step) const noexcept {
        return shorts_[(lap % kLaps) * slot_count_ + step];
    }
    Long& long_of(std::uint32_t lap, std::uint32_t step) const noexcept {
        return longs_[(lap % kWindow) * steps_ + step];
    }
    Place& place_of(std::uint32_t lap, std::uint32_t number) const noexcept {
        return places_[(lap % kLaps) * places_per_lap_ + number];
    }
    std::byte* slot(std::uint32_t lap, std::uint32_t step) const noexcept {
        return &slots_[((lap % kLaps) * slot_count_ + step) * slot_bytes_];
    }

    // Copies at most `bytes` bytes to the pieces of the memory, from offset `at` of the first one on.
    static void copy(std::byte* memory, const Pieces& pieces, std::uint64_t at, const void* data,
                     std::uint64_t bytes) noexcept {
        auto from = static_cast<const std::byte*>(data);
        for (const Piece& piece : pieces) {
            if (at >= piece.bytes) {
                at -= piece.bytes;
                continue;
            }
            const std::uint64_t n = std::min(bytes, piece.bytes - at);
            std::memcpy(memory + piece.offset + at, from, n);
            from += n;
            bytes -= n;
            at = 0;
        }
    }

    // Takes a short step from its buffer, if the partner has written it there.
    bool take_written(std::uint32_t lap, std::uint32_t step, std::uint64_t bytes) noexcept {
        const Buffers::Slot slot = buffers_.look(lap, step);
        if (slot.state == Buffers::State::kEmpty) return false;
        if (slot.state == Buffers::State::kDamaged) is_damaged_ = true;
        else if (slot.bytes != bytes) length_differs_ = true;
        else copy(opened(lap).target.memory, opened(lap).target.receives(step), 0, slot.data, bytes);
        return !is_damaged_ && !length_differs_;
    }

    // `target`: of an open call, else null.
    const char* on_short(const Packet& packet, const void* data, const Target* target) noexcept {
        if (packet.step >= slot_count_ || (target && !has_slots(target->algorithm))) return "step of a short packet";
        if (packet.bytes > slot_bytes_) return "bytes of a short packet";
        Short& arrived = short_of(packet.lap, packet.step);
        if (arrived.mark.load(std::memory_order_relaxed) >> 1 == packet.lap) return "step (arrived before)";
        if (target) {
            const Pieces pieces = target->receives(packet.step);
            if (pieces.bytes() != packet.bytes) return "bytes of a short packet";
            copy(target->memory, pieces, 0, data, packet.bytes);
        } else {
            if (packet.bytes > 0) std::memcpy(slot(packet.lap, packet.step), data, packet.bytes);
            arrived.bytes = packet.bytes;
        }
        arrived.mark.store(std::uint64_t{packet.lap} << 1 | (target ? 0 : 1), std::memory_order_release);
        return nullptr;
    }

    const char* on_data(const Packet& packet, const void* data, const Target& target) noexcept {
        const Pieces pieces = target.receives(packet.step);
        const std::uint64_t all = pieces.bytes();
        if (packet.bytes > all || packet.at > all - packet.bytes) return "bytes of data";
        copy(target.memory, pieces, packet.at, data, packet.bytes);
        long_of(packet.lap, packet.step).bytes.fetch_add(packet.bytes, std::memory_order_acq_rel);
        return nullptr;
    }

    const char* on_landed(const Packet& packet, const Target& target) noexcept {
        if (packet.at >= 2) return "piece";
        if (packet.bytes > counted(target.receives(packet.step).bytes())) return "bytes of a notice";
        Long& arrived = long_of(packet.lap, packet.step);
        if (packet.parts == 1 || arrived.parts[packet.at].fetch_add(1, std::memory_order_acq_rel) + 1 == packet.parts)
            arrived.bytes.fetch_add(packet.bytes, std::memory_order_acq_rel);
        return nullptr;
    }

    const char* on_announce(const Packet& packet, const void* handle, void* transport) noexcept {
        if (packet.step >= places_per_lap_) return "number of an announcement";
        Place& place = place_of(packet.lap, packet.step);
        if (place.lap.load(std::memory_order_relaxed) == packet.lap) return "announcement (arrived before)";
        place.announcement.address = packet.at;
        place.announcement.handle_bytes = packet.parts;
        place.announcement.writable = packet.bytes > 0;
        place.announcement.transport = transport;
        if (packet.parts > 0) std::memcpy(place.announcement.handle.data(), handle, packet.parts);
        place.lap.store(packet.lap, std::memory_order_release);
        return nullptr;
    }

    std::uint32_t steps_, places_per_lap_, slot_count_;
    bool length_differs_ = false, is_damaged_ = false;
    std::size_t slot_bytes_;
    std::unique_ptr<Short[]> shorts_;
    std::unique_ptr<Long[]> longs_;
    std::unique_ptr<Place[]> places_;
    std::unique_ptr<std::byte[]> slots_;
    Buffers buffers_;
    std::array<Opened, kWindow> opened_;
    std::atomic<std::uint32_t> completed_{0};
};

}  // namespace coop::coll
