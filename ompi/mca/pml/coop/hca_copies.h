// SPDX-License-Identifier: BSD-3-Clause
//
// The chunks of a cooperative copy that HCAs copy (COOP-hca): while both CPUs copy chunks, an HCA reads others by
// loopback, with tickets that the receiver claims for it. It is the receiver that issues reads, because a completed
// read means that the data has arrived: the receiver then counts the chunk as copied on the board, where the sender
// sees it like any other chunk. (Cooperative Rendezvous Protocols, sections II-B3 and III)
//
//     claimed --> under way --> copied
//                     |
//                     +-------> failed --> our CPU copies it, or the sender's does
//
// coop/rndv/offload.h decides how many chunks. HCAs take part only while a thread of the receiver waits for this
// message, so that it polls until all is copied: only the receiver can see that an HCA has finished, and the sender
// must not depend on the next call of the receiver.
//
// Threading: whoever holds the baton drives the copies; completions may come on any thread. Each read under way holds a
// reference to the request. Ownership: receiver and sender register their own buffers for the time of the copy. Errors:
// if there is no loopback, the key does not arrive or a read is refused, the CPUs copy all remaining chunks.
#pragma once

#include <array>

#include "module.h"

#include "coop/extension/btl_extension.h"
#include "coop/rndv/offload.h"

namespace coop::pml {

enum class HcaMode : std::uint8_t { kOff, kOn, kAuto };
inline HcaMode hca_mode() noexcept { return static_cast<HcaMode>(module.config.hca); }

// Loopback to a peer, and the rates of HCAs and CPUs.
struct HcaWay {
    mca_bml_base_btl_t* btl = nullptr;          // null: none
    const BtlExtension* extension = nullptr;    // valid with `btl`
    std::atomic<std::uint32_t> under_way{0};    // chunks being read, of all messages from the peer
    std::atomic<std::uint32_t> passed_over{0};  // consecutive messages without an offloaded chunk
    rndv::Rate hca, cpu;                        // cpu: of both sides together
};

void find_hca_way(HcaWay& way, mca_bml_base_endpoint_t& endpoint) noexcept;

struct HcaCopies {
    enum class State : std::uint8_t { kFree, kUnderWay, kFailed };
    struct Chunk {
        std::atomic<State> state{State::kFree};
        std::uint32_t number = 0;
        RecvRequest* request = nullptr;
    };
    std::array<Chunk, rndv::kMaxOffloaded> chunks{};
    std::atomic<bool> on{false};
    bool was_held = false;  // the HCA was too busy for another chunk; counted once per message
    mca_btl_base_registration_handle_t* registration = nullptr;
    bool has_key = false;
    rndv::Key key{};                        // of the sender's buffer
    std::uint64_t first_ns = 0;             // when the first chunk was posted; 0: none was
    std::atomic<std::uint64_t> last_ns{0};  // when the latest one completed
    std::atomic<std::uint64_t> bytes{0};    // copied by HCAs
    std::uint64_t cpu_ns = 0;               // time for which our CPU has copied
};

// True if HCAs could copy a part of the message. The first call starts to connect them.
bool may_offload(RecvRequest& r, std::size_t bytes) noexcept;
bool may_offload(SendRequest& r, rndv::Split split) noexcept;

void start_hca_copies(RecvRequest& r, bool offloads) noexcept;  // after CopySide::start()
void end_hca_copies(RecvRequest& r) noexcept;  // when nothing is under way; no effect if HCAs were never to copy

// For the sender: registers its buffer and puts the key into the slot.
void open_key(SendRequest& r) noexcept;
void close_key(SendRequest& r) noexcept;

}  // namespace coop::pml
