// SPDX-License-Identifier: BSD-3-Clause
#include "buffer_row.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "arena.h"
#include "coop/coll/inbox.h"
#include "diagnose.h"
#include "process.h"
#include "transports.h"

namespace coop::ag {
namespace {

// With the row auto, steps up to this length are packets. Measured: a put costs the sender more than an inline message,
// which the HCA needs not report as complete, and only longer steps make up for it at the receiver.
constexpr std::uint64_t kPacketBytes = 128;

bool prefers_packet(std::uint64_t bytes) noexcept {
    return process.config.row == static_cast<std::int64_t>(Row::kAuto) && bytes <= kPacketBytes;
}

// The extension of a transport that can tell in which order its writes land; null: it has none.
const BtlExtension* can_tell_order(const mca_bml_base_btl_t* btl) noexcept {
    const BtlExtension* const extension = btl ? extension_of(*btl->btl) : nullptr;
    return extension && extension->lands_in_order ? extension : nullptr;
}

enum PacketStep : std::uint32_t { kGreeting, kOffer };

// The algorithm of the communicator's short results.
coll::Algorithm short_algorithm(std::uint32_t processes) noexcept {
    return coll::choose({processes, processes, static_cast<coll::Wish>(process.config.algorithm),
                         std::numeric_limits<std::uint64_t>::max()})
        .algorithm;
}

}  // namespace

std::unique_ptr<BufferRow> BufferRow::create(const Members& members) noexcept {
    const auto algorithm = short_algorithm(members.processes());
    std::unique_ptr<BufferRow> row(new (std::nothrow) BufferRow(members, algorithm));
    return row && row->there_ && row->sent_ ? std::move(row) : nullptr;
}

BufferRow::BufferRow(const Members& members, coll::Algorithm algorithm) noexcept
    : members_(members), algorithm_(algorithm),
      steps_(coll::has_slots(algorithm) ? coll::count_steps(algorithm, members.processes()) : 0),
      there_(new (std::nothrow) There[steps_]), sent_(new (std::nothrow) Sent[coll::Inbox::kLaps * steps_]) {
    if (there_)
        for (std::uint32_t number = 0; number < steps_; ++number) there_[number].rank = step(number).to;
}

BufferRow::~BufferRow() {
    const auto is_pending = [](const Sent& each) { return each.is_pending.load(std::memory_order_acquire); };
    if (!memory_) return;
    while (std::any_of(&sent_[0], &sent_[0] + layout_.laps * layout_.steps, is_pending)) opal_progress();
    arena().give_back(memory_, 2 * layout_.bytes());
}

coll::Step BufferRow::step(std::uint32_t number) const noexcept {
    return coll::step_of(algorithm_, members_.processes(), members_.rank(), number);
}

// --- set-up ---------------------------------------------------------------------------------------------------------

void BufferRow::greet(const Send& send) noexcept {
    for (std::uint32_t number = 0; number < steps_; ++number) {
        mca_bml_base_btl_t* const btl = puts_to(members_.endpoint(step(number).from));
        if (!btl || !extension_of(*btl->btl)) continue;
        coll::Packet greeting{};
        greeting.step = kGreeting;
        send(*btl, greeting, nullptr);
    }
}

bool BufferRow::may_write_all_steps() const noexcept {
    const auto may_write = [this](std::uint32_t rank) { return can_tell_order(puts_to(members_.endpoint(rank))); };
    for (std::uint32_t number = 0; number < steps_; ++number)
        if (!may_write(step(number).to) || !may_write(step(number).from)) return false;
    return true;
}

bool BufferRow::lands_in_order(mca_bml_base_btl_t* btl) const noexcept {
    const BtlExtension* const extension = can_tell_order(btl);
    return extension && extension->lands_in_order(btl->btl, btl->btl_endpoint);
}

// Takes a range of the arena, once, when the first partner needs it.
bool BufferRow::has_memory() noexcept {
    if (std::exchange(has_asked_, true)) return memory_ != nullptr;
    memory_ = arena().take(2 * layout_.bytes());
    if (memory_) received_ = coll::Buffers(layout_, memory_);
    else process.count(Count::kMemoryBudget);
    return memory_ != nullptr;
}

void BufferRow::offer(std::uint64_t step_bytes, const Send& send) noexcept {
    layout_ = {coll::Inbox::kLaps, steps_, step_bytes};
    for (std::uint32_t number = 0; number < steps_; ++number) {
        mca_bml_base_endpoint_t& from = members_.endpoint(step(number).from);
        mca_bml_base_btl_t* const btl = puts_to(from);
        coll::Packet offer{};
        offer.step = kOffer;
        mca_btl_base_registration_handle_t* handle = nullptr;
        bool refused = true;
        if (!lands_in_order(btl)) process.count(Count::kNotInOrder);
        else if (has_memory()) handle = arena().handle(*btl->btl, refused);
        if (!refused) {
            offer.bytes = layout_.bytes();
            offer.at = reinterpret_cast<std::uintptr_t>(memory_);
            offer.parts = handle ? static_cast<std::uint32_t>(btl->btl->btl_registration_handle_size) : 0;
        }
        // By the transport of the greeting, which keeps the order, and to which the handle belongs.
        send(btl ? *btl : *packets_to(from), offer, handle);
    }
}

const char* BufferRow::on_packet(const coll::Packet& packet, const void* handle, mca_btl_base_module_t* btl) noexcept {
    if (packet.step == kGreeting) return nullptr;
    if (packet.step != kOffer) return "kind of a buffer packet";
    There* const there = std::find_if(&there_[0], &there_[0] + steps_,
                                      [&](const There& each) { return each.rank == packet.source; });
    if (there == &there_[0] + steps_) return "source of a buffer";
    if (there->has_offered.load(std::memory_order_relaxed)) return "buffer (arrived before)";
    if (packet.at % sizeof(coll::Tail) != 0) return "address of a buffer";
    there->offer = packet;
    there->btl = btl;
    if (packet.parts > 0) std::memcpy(there->handle.data(), handle, packet.parts);
    there->has_offered.store(true, std::memory_order_release);
    return nullptr;
}

bool BufferRow::all_have_offered() const noexcept {
    return std::all_of(&there_[0], &there_[0] + steps_,
                       [](const There& each) { return each.has_offered.load(std::memory_order_acquire); });
}

bool BufferRow::accept() noexcept {
    for (std::uint32_t number = 0; number < steps_; ++number)
        if (there_[number].offer.bytes > 0) accept(there_[number]);
    const std::uint64_t longest = coll::written(layout_.data_bytes);
    return std::all_of(&there_[0], &there_[0] + steps_, [longest](const There& each) {
        if (!each.extension) return false;
        const std::uint64_t limit = each.btl->btl_put_limit;
        return limit == 0 || longest <= limit;
    });
}

void BufferRow::accept(There& there) noexcept {
    if (there.offer.bytes != layout_.bytes()) wrong_packet(there.offer, true, "bytes of a buffer");
    mca_bml_base_endpoint_t& to = members_.endpoint(there.rank);
    mca_bml_base_btl_t* const btl = mca_bml_base_btl_array_find(&to.btl_rdma, there.btl);
    const std::size_t handle_bytes = there.btl->btl_register_mem ? there.btl->btl_registration_handle_size : 0;
    if (!btl || !may_put(to, *btl) || there.offer.parts != handle_bytes || !has_memory()) return;
    bool refused;
    there.local = arena().handle(*btl->btl, refused);
    if (refused || !is_aligned(*btl->btl, 0, there.offer.at, sizeof(coll::Tail))) return;
    there.endpoint = btl->btl_endpoint;
    there.extension = extension_of(*btl->btl);
}

// --- calls ----------------------------------------------------------------------------------------------------------

BufferRow::Put BufferRow::put(std::uint32_t to, std::uint32_t step, std::uint32_t lap, const std::byte* memory,
                              const coll::Pieces& pieces, bool fits_packet) noexcept {
    There* const there = step < steps_ ? &there_[step] : nullptr;
    if (!there || there->rank != to || !there->extension || (fits_packet && prefers_packet(pieces.bytes())))
        return Put::kNever;
    if (fits_packet && process.faults.hit(Fault::kPut)) return Put::kNever;
    Sent& sent = sent_[layout_.index_of(lap, step)];
    if (sent.is_pending.load(std::memory_order_acquire) || process.faults.hit(Fault::kPutBusy)) return Put::kBusy;

    std::byte* const slots = memory_ + layout_.bytes();
    const std::uint64_t begin = coll::fill(layout_, slots, lap, step, memory, pieces);
    process.faults.corrupt(Fault::kCorruptMatch, slots + layout_.tail_of(lap, step), sizeof(coll::Tail));
    RdmaOptions options;
    options.whole = true;  // data and tail in one request
    auto* remote = reinterpret_cast<mca_btl_base_registration_handle_t*>(there->handle.data());
    sent.is_pending.store(true, std::memory_order_relaxed);
    const int rc = there->extension->put(there->btl, there->endpoint, slots + begin, there->offer.at + begin,
                                         there->local, there->offer.parts > 0 ? remote : nullptr,
                                         coll::written(pieces.bytes()), options, on_put_done, &sent);
    if (rc == OMPI_SUCCESS) {
        process.count(Count::kBufferSteps);
        return Put::kStarted;
    }
    sent.is_pending.store(false, std::memory_order_relaxed);
    if (is_shortage(rc)) return Put::kBusy;
    if (!fits_packet) transport_failed(*there->btl, "put", rc);
    return Put::kNever;
}

void BufferRow::on_put_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
                            mca_btl_base_registration_handle_t*, void*, void* sent, int status) {
    // The partner would wait for this step for ever.
    if (status != OMPI_SUCCESS) transport_failed(*btl, "put", status);
    static_cast<Sent*>(sent)->is_pending.store(false, std::memory_order_release);
}

}  // namespace coop::ag
