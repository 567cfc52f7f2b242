// SPDX-License-Identifier: BSD-3-Clause
//
// Short steps of one communicator that are written into collective buffers of their receivers (coop/coll/buffers.h) by
// puts. A receiver offers buffers to a partner if the transport promises it that the bytes of a put land in order; all
// other short steps are packets. If all processes can write all of their steps, a short step may be longer than a
// packet. Receivers make their offers once, when the communicator is prepared:
//
//     greet    a packet without content to each process that will send steps here, which connects it: a transport
//              knows only then in which order its writes land
//     offer    to the same: the address of the buffers, or that there are none
//     then the process waits for the offers of the processes to which it will send steps
//
// So no packet is under way any more when the first call begins, and a communicator may be freed at any time.
//
// A sender copies the data to a slot of its own, and may use that slot again when its put is complete. It does not wait
// for that before the call returns.
//
// Threading: on_packet() in any thread, the rest in the thread of the call. Ownership: the group owns it; the memory is
// a range of the arena. Errors: a transport that fails ends the job.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>

#include "compat.h"
#include "coop/coll/buffers.h"
#include "coop/coll/packet.h"
#include "coop/coll/steps.h"
#include "coop/extension/btl_extension.h"
#include "members.h"

namespace coop::ag {

class BufferRow {
public:
    // Sends a packet, and packet.parts bytes of the handle after it. The callee sets kind, context and source.
    using Send = std::function<void(mca_bml_base_btl_t& btl, coll::Packet packet,
                                    const mca_btl_base_registration_handle_t* handle)>;

    // Null: out of memory. The members outlive it.
    static std::unique_ptr<BufferRow> create(const Members& members) noexcept;
    ~BufferRow();  // waits until the own puts are complete
    BufferRow(const BufferRow&) = delete;

    // Whether the transports to all partners of short steps, both ways, have such puts. Whether these land in order
    // is known only when the partners are connected.
    bool may_write_all_steps() const noexcept;

    // --- set-up, on all processes; `step_bytes`, the longest step, is the same on all ---
    void greet(const Send& send) noexcept;
    void offer(std::uint64_t step_bytes, const Send& send) noexcept;  // when all greetings have been sent
    bool all_have_offered() const noexcept;
    // When all have offered. Returns whether all steps of this process can be written.
    bool accept() noexcept;
    // An offer or a greeting; null: taken.
    const char* on_packet(const coll::Packet& packet, const void* handle, mca_btl_base_module_t* btl) noexcept;

    // The buffers of this process, for its inbox.
    const coll::Buffers& received() const noexcept { return received_; }

    enum class Put : std::uint8_t {
        kStarted,
        kBusy,   // try again later
        kNever,  // send the step in a packet
    };
    // `fits_packet`: false: the step can only be written.
    Put put(std::uint32_t to, std::uint32_t step, std::uint32_t lap, const std::byte* memory,
            const coll::Pieces& pieces, bool fits_packet) noexcept;

private:
    // The receiver of a step.
    struct There {
        std::uint32_t rank = 0;
        std::atomic<bool> has_offered{false};
        coll::Packet offer{};
        alignas(8) std::array<unsigned char, coll::kMaxHandleBytes> handle{};
        mca_btl_base_module_t* btl = nullptr;  // by which the offer came
        // After accept(); null: it has no buffers for us.
        const BtlExtension* extension = nullptr;
        mca_btl_base_endpoint_t* endpoint = nullptr;
        mca_btl_base_registration_handle_t* local = nullptr;
    };
    // A slot of this sender.
    struct Sent {
        std::atomic<bool> is_pending{false};
    };

    BufferRow(const Members& members, coll::Algorithm algorithm) noexcept;

    coll::Step step(std::uint32_t number) const noexcept;
    bool lands_in_order(mca_bml_base_btl_t* btl) const noexcept;
    bool has_memory() noexcept;
    void accept(There& there) noexcept;
    static void on_put_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void* address,
                            mca_btl_base_registration_handle_t*, void* context, void* sent, int status);

    const Members& members_;
    coll::Algorithm algorithm_;
    std::uint32_t steps_;             // 0: the algorithm has no short steps
    std::unique_ptr<There[]> there_;  // by step
    std::unique_ptr<Sent[]> sent_;    // by index of the slot
    coll::BufferLayout layout_;
    std::byte* memory_ = nullptr;  // slots of the receiver, then those of the sender; null: none
    bool has_asked_ = false;       // the arena
    coll::Buffers received_;
};

}  // namespace coop::ag
