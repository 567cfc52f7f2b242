// SPDX-License-Identifier: BSD-3-Clause
//
// The board of a process: the memory that it shares with the other processes of its node. (Cooperative Rendezvous
// Protocols, sections II-A1, II-B2.)
//
//     Load    bytes that the process still has to copy; the side that chooses the protocol of a
//             message adds them, the side that has copied subtracts them
//     Surplus bytes that the process was told to copy, minus bytes that it was spared because
//             the other side of a message copied; zero if it copies half of all bytes
//     Slot    on the receiver's board: one message that both sides may copy
//     Offer   part of a slot: a posted receive into which the sender may write without asking (RTR)
//
// The message of a slot is divided into chunks. A side that claims a chunk takes a ticket from one counter:
//
//     receiver ->  0  1  2  3 ...            ... n-2  n-1  <- sender
//
// The receiver works from the front, the sender from the back. There are as many tickets as chunks, so the two never
// meet in one chunk, each side accesses its memory sequentially, and the faster or earlier side copies more.
//
// If the transport refuses a chunk, the side returns it, and either side may claim it. A side that is refused for good
// claims nothing more. An HCA that reads some of the receiver's chunks by loopback (COOP-hca) uses the receiver's
// tickets and the key of the send buffer, which the sender publishes in the slot.
//
// Generations: a slot is reused. Tickets, returned chunks, the phase of an offer and the key carry the generation they
// belong to, so a late side finds that its copy is over. `done` and `refused` need none: only a side that holds a
// chunk changes them, and the slot is not reused before all chunks are copied or the receiver has fallen back.
//
// Threading: the words of a board are atomics, changed by two processes. A Claims is one side's view and belongs to one
// thread at a time. Ownership: the process that owns the board frees and reuses its slots. Errors: a board is a peer's
// memory and may hold anything; claim() still returns only chunk numbers below `chunks`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace coop::rndv {

constexpr std::uint32_t kSlots = 64;

enum class Side : std::uint8_t { kReceiver, kSender };
constexpr Side other(Side side) noexcept { return side == Side::kReceiver ? Side::kSender : Side::kReceiver; }

// Packs a generation (upper half) and a small number (lower half).
constexpr std::uint64_t stamped(std::uint32_t generation, std::uint32_t value) noexcept {
    return (std::uint64_t{generation} << 32) | value;
}
constexpr std::uint32_t generation_of(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32); }
constexpr std::uint32_t value_of(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word); }

// A posted receive that one sender may write into. The fields are valid while the phase is kOpen.
struct Offer {
    enum Phase : std::uint32_t { kClosed, kOpen, kTaken };
    std::atomic<std::uint64_t> phase{0};     // generation, Phase
    std::atomic<std::uint64_t> sender{0};    // job id << 32 | rank in the job
    std::atomic<std::uint64_t> address{0};   // of the receive buffer
    std::atomic<std::uint64_t> capacity{0};  // bytes
    std::atomic<std::uint32_t> context{0};   // communicator id
    std::atomic<std::int32_t> tag{0};
    // Sequence number of the message that the offer is for: the sender's earlier messages have all been matched.
    std::atomic<std::uint32_t> expected{0};
    std::atomic<std::uint32_t> blocking{0};  // the receiver waits in MPI_Recv
};

// Key of a registered buffer: an HCA needs it to read the memory of another process.
constexpr std::size_t kKeyWords = 8;
using Key = std::array<std::uint32_t, kKeyWords>;

struct Slot {
    alignas(64) std::atomic<std::uint64_t> tickets{0};  // generation, chunks taken
    std::atomic<std::uint64_t> returned[2]{};           // by Side: generation, 1 + number of a returned chunk (0: none)
    std::atomic<std::uint32_t> done{0};                 // chunks copied
    std::atomic<std::uint32_t> refused{0};              // bit per Side: its copies are refused
    alignas(64) Offer offer;
    alignas(64) std::array<std::atomic<std::uint64_t>,
                           kKeyWords> key{};  // written by the sender: generation, a word of the key
};

struct Board {
    static constexpr std::uint64_t kMagic = 0x6472616f62706f63ull;  // "copboard"

    std::uint64_t magic = kMagic;
    std::uint64_t nonce = 0;                            // the same as the owner of the board has published in the modex
    alignas(64) std::atomic<std::uint64_t> to_copy{0};  // bytes
    std::atomic<std::uint64_t> surplus{0};              // bytes modulo 2^64; negative if the process was spared more
    alignas(64) std::atomic<std::uint64_t> open_offers{0};  // bit per slot: it may hold an open offer
    alignas(64) std::atomic<bool> waits{false};  // in MPI_Wait or MPI_Waitall for all its sends that are under way
    std::array<Slot, kSlots> slots{};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Slot) == 192);

// -- load ----------------------------------------------------------------------

inline void add_load(Board& board, std::uint64_t bytes) noexcept {
    board.to_copy.fetch_add(bytes, std::memory_order_relaxed);
}

// Stops at zero: a process that died between adding and copying, or a damaged board, must not make a load look endless.
inline void subtract_load(Board& board, std::uint64_t bytes) noexcept {
    std::uint64_t now = board.to_copy.load(std::memory_order_relaxed);
    while (!board.to_copy.compare_exchange_weak(now, now > bytes ? now - bytes : 0, std::memory_order_relaxed)) {
    }
}

inline std::uint64_t load_of(const Board& board) noexcept { return board.to_copy.load(std::memory_order_relaxed); }

// -- surplus -------------------------------------------------------------------

// Records that one side of a message copies all of it and the other one is spared.
inline void count_turn(Board& copies, Board& spared, std::uint64_t bytes) noexcept {
    copies.surplus.fetch_add(bytes, std::memory_order_relaxed);
    spared.surplus.fetch_sub(bytes, std::memory_order_relaxed);
}

// Returns the surplus of `one` minus that of `other`. It is correct if the true difference fits in 64 bits, however
// often the words have wrapped.
inline std::int64_t surplus_over(const Board& one, const Board& other) noexcept {
    return static_cast<std::int64_t>(one.surplus.load(std::memory_order_relaxed) -
                                     other.surplus.load(std::memory_order_relaxed));
}

// -- slots ---------------------------------------------------------------------

// The free slots of our own board. Not shared.
class SlotPool {
public:
    std::optional<std::uint32_t> acquire() noexcept {
        if (free_ == 0) return std::nullopt;
        const auto index = static_cast<std::uint32_t>(__builtin_ctzll(free_));
        free_ &= free_ - 1;
        return index;
    }
    void release(std::uint32_t index) noexcept { free_ |= std::uint64_t{1} << index; }

private:
    std::uint64_t free_ = ~std::uint64_t{0};  // bit per slot; at first all are free
    static_assert(kSlots == 64);
};

// Begins a new generation of a slot and returns it. For the owner only, while no other process may use the slot.
inline std::uint32_t arm(Slot& slot) noexcept {
    const std::uint32_t generation = generation_of(slot.tickets.load(std::memory_order_relaxed)) + 1;
    slot.done.store(0, std::memory_order_relaxed);
    slot.refused.store(0, std::memory_order_relaxed);
    for (auto& word : slot.returned) word.store(stamped(generation, 0), std::memory_order_relaxed);
    slot.tickets.store(stamped(generation, 0), std::memory_order_release);
    return generation;
}

// Publishes the sender's key. A late call may overwrite the key of the next generation; the receiver of that
// generation then copies without HCAs.
inline void publish_key(Slot& slot, std::uint32_t generation, const Key& key) noexcept {
    for (std::size_t i = 0; i < kKeyWords; ++i)
        slot.key[i].store(stamped(generation, key[i]), std::memory_order_release);
}

// Returns nothing while the key, or a part of it, is missing.
inline std::optional<Key> published_key(const Slot& slot, std::uint32_t generation) noexcept {
    Key key{};
    for (std::size_t i = kKeyWords; i-- > 0;) {
        const std::uint64_t word = slot.key[i].load(std::memory_order_acquire);
        if (generation_of(word) != generation) return std::nullopt;
        key[i] = value_of(word);
    }
    return key;
}

// The state of a copy, for a side that waits for it.
struct Progress {
    std::uint64_t moves = 0;       // changes when a chunk is claimed for the first time, or copied
    bool is_being_copied = false;  // a chunk is claimed, and neither copied nor returned: its copy is under way
};

// One side of a cooperative copy. A side that claims a chunk copies all of it, or returns it, before it leaves the
// library, unless a transport or an HCA copies the chunk without its help. So the other side can complete the copy
// whatever the application does.
class Claims {
public:
    Claims() = default;

    // `chunks` > 0. `one_each`: a side takes at most one chunk (the fixed halves of the paper, with two chunks).
    void start(Slot& slot, Side side, std::uint32_t generation, std::uint32_t chunks, bool one_each) noexcept {
        slot_ = &slot;
        side_ = side;
        generation_ = generation;
        chunks_ = chunks;
        mine_ = 0;
        one_each_ = one_each;
        refused_ = false;
    }

    // Returns a chunk to copy, or nothing if there is none for this side at present.
    std::optional<std::uint32_t> claim() noexcept {
        if (refused_) return std::nullopt;
        // Take back our own returned chunk first: refused() overwrites this side's `returned` word.
        if (auto chunk = take_returned(side_)) return chunk;
        if (auto chunk = take_returned(other(side_))) return chunk;
        if (mine_ >= chunks_ || (one_each_ && mine_ == 1)) return std::nullopt;
        if (!take_ticket()) return std::nullopt;
        const std::uint32_t nth = mine_++;
        return side_ == Side::kReceiver ? nth : chunks_ - 1 - nth;
    }

    void copied() noexcept { slot_->done.fetch_add(1, std::memory_order_acq_rel); }

    // Returns a claimed chunk for good: this side can copy neither this chunk nor any other chunk.
    void refused(std::uint32_t chunk) noexcept {
        refused_ = true;
        slot_->returned[index(side_)].store(stamped(generation_, chunk + 1), std::memory_order_release);
        slot_->refused.fetch_or(bit(side_), std::memory_order_acq_rel);
    }

    // Returns a chunk that this side has claimed and cannot copy, for now or after refused(). Either side may claim it
    // again, this side only if it is not refused. Returns false if the chunk returned before has not been claimed yet.
    [[nodiscard]] bool give_back(std::uint32_t chunk) noexcept {
        std::uint64_t empty = stamped(generation_, 0);
        return slot_->returned[index(side_)].compare_exchange_strong(empty, stamped(generation_, chunk + 1),
                                                                     std::memory_order_acq_rel);
    }
    bool is_refused() const noexcept { return refused_; }
    // Lets this side also claim the half of the other side.
    void take_all() noexcept { one_each_ = false; }

    Slot& slot() const noexcept { return *slot_; }
    std::uint32_t generation() const noexcept { return generation_; }
    std::uint32_t chunks() const noexcept { return chunks_; }
    // Chunks that no side has claimed yet.
    std::uint32_t left() const noexcept {
        const std::uint64_t word = slot_->tickets.load(std::memory_order_relaxed);
        return generation_of(word) == generation_ && value_of(word) < chunks_ ? chunks_ - value_of(word) : 0;
    }

    Progress progress() const noexcept {
        const std::uint32_t claimed = value_of(slot_->tickets.load(std::memory_order_relaxed)),
                            done = slot_->done.load(std::memory_order_relaxed);
        std::uint32_t returned = 0;
        for (const auto& word : slot_->returned) {
            const std::uint64_t now = word.load(std::memory_order_relaxed);
            returned += generation_of(now) == generation_ && value_of(now) != 0;
        }
        return {stamped(claimed, done), claimed > done + returned};
    }

    // True if all chunks are copied. The slot is reused only after that, so a different generation means true.
    bool over() const noexcept {
        return generation_of(slot_->tickets.load(std::memory_order_acquire)) != generation_ ||
               slot_->done.load(std::memory_order_acquire) >= chunks_;
    }
    // True if neither side can copy, so that another protocol has to.
    bool stuck() const noexcept { return !over() && refused_bits() == (bit(Side::kReceiver) | bit(Side::kSender)); }
    bool other_is_refused() const noexcept { return !over() && (refused_bits() & bit(other(side_))); }

private:
    static std::size_t index(Side side) noexcept { return static_cast<std::size_t>(side); }
    static std::uint32_t bit(Side side) noexcept { return 1u << static_cast<unsigned>(side); }
    std::uint32_t refused_bits() const noexcept { return slot_->refused.load(std::memory_order_acquire); }

    bool take_ticket() noexcept {
        std::uint64_t word = slot_->tickets.load(std::memory_order_relaxed);
        do {
            if (generation_of(word) != generation_ || value_of(word) >= chunks_) return false;
        } while (!slot_->tickets.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed));
        return true;
    }

    std::optional<std::uint32_t> take_returned(Side by) noexcept {
        auto& place = slot_->returned[index(by)];
        std::uint64_t word = place.load(std::memory_order_acquire);
        const std::uint32_t chunk = value_of(word);
        if (generation_of(word) != generation_ || chunk == 0 || chunk > chunks_) return std::nullopt;
        if (!place.compare_exchange_strong(word, stamped(generation_, 0), std::memory_order_acq_rel))
            return std::nullopt;
        return chunk - 1;
    }

    Slot* slot_ = nullptr;
    std::uint32_t generation_ = 0;
    std::uint32_t chunks_ = 0;
    std::uint32_t mine_ = 0;  // tickets that this side has taken
    Side side_ = Side::kReceiver;
    bool one_each_ = false;
    bool refused_ = false;
};

// -- offers (RTR) ----------------------------------------------------------------

// The message that a sender is about to send, to be compared with offers.
struct OfferKey {
    std::uint64_t sender;
    std::uint32_t context;
    std::int32_t tag;
    std::uint32_t sequence;  // of the message that it is about to send
    std::uint64_t bytes;     // of that message
};
// An offer that the sender has taken.
struct Taken {
    std::uint32_t slot;
    std::uint32_t generation;
    std::uint64_t address;
    bool blocking;
};

// Opens an offer in an armed slot. Owner only.
inline void open_offer(Board& board, std::uint32_t index, std::uint32_t generation, const OfferKey& key,
                       std::uint64_t address, bool blocking) noexcept {
    Offer& o = board.slots[index].offer;
    o.sender.store(key.sender, std::memory_order_relaxed);
    o.context.store(key.context, std::memory_order_relaxed);
    o.tag.store(key.tag, std::memory_order_relaxed);
    o.expected.store(key.sequence, std::memory_order_relaxed);
    o.capacity.store(key.bytes, std::memory_order_relaxed);
    o.address.store(address, std::memory_order_relaxed);
    o.blocking.store(blocking, std::memory_order_relaxed);
    o.phase.store(stamped(generation, Offer::kOpen), std::memory_order_release);
    board.open_offers.fetch_or(std::uint64_t{1} << index, std::memory_order_release);
}

// Call this when a message of the sender was matched by another receive: the offer is then for the sender's next
// message, number `expected`. Owner only.
inline void message_passed(Board& board, std::uint32_t index, std::uint32_t expected) noexcept {
    board.slots[index].offer.expected.store(expected, std::memory_order_release);
}

// Withdraws an offer. Returns false if the sender has taken it. Owner only.
[[nodiscard]] inline bool close_offer(Board& board, std::uint32_t index, std::uint32_t generation) noexcept {
    std::uint64_t open = stamped(generation, Offer::kOpen);
    const bool closed = board.slots[index].offer.phase.compare_exchange_strong(
        open, stamped(generation, Offer::kClosed), std::memory_order_acq_rel);
    board.open_offers.fetch_and(~(std::uint64_t{1} << index), std::memory_order_relaxed);
    return closed;
}

// Takes the offer of the receive that the message described by `key` will match. The offer must have the same sender,
// communicator and tag, and enough room, and all earlier messages of this sender must have been matched, so that none
// of them can match this receive.
inline std::optional<Taken> take_offer(Board& board, const OfferKey& key) noexcept {
    for (std::uint64_t open = board.open_offers.load(std::memory_order_acquire); open != 0; open &= open - 1) {
        const auto index = static_cast<std::uint32_t>(__builtin_ctzll(open));
        Offer& o = board.slots[index].offer;
        std::uint64_t phase = o.phase.load(std::memory_order_acquire);
        if (value_of(phase) != Offer::kOpen || o.sender.load(std::memory_order_relaxed) != key.sender ||
            o.context.load(std::memory_order_relaxed) != key.context ||
            o.tag.load(std::memory_order_relaxed) != key.tag)
            continue;
        if (o.expected.load(std::memory_order_acquire) != key.sequence ||
            o.capacity.load(std::memory_order_relaxed) < key.bytes)
            return std::nullopt;
        const Taken taken{index, generation_of(phase), o.address.load(std::memory_order_relaxed),
                          o.blocking.load(std::memory_order_relaxed) != 0};
        if (!o.phase.compare_exchange_strong(phase, stamped(generation_of(phase), Offer::kTaken),
                                             std::memory_order_acq_rel))
            return std::nullopt;
        return taken;
    }
    return std::nullopt;
}

}  // namespace coop::rndv
