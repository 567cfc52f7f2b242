// SPDX-License-Identifier: BSD-3-Clause
//
// The HCAs' part of a cooperative copy (COOP-hca): while both CPUs copy chunks, an
// HCA reads others by loopback, on tickets that the receiver claims for it. The
// receiver reads, because the end of a read says that the data is there: then the
// receiver counts the chunk as copied, and the sender sees that as it sees others.
// (Cooperative Rendezvous Protocols, sections II-B3 and III)
//
//     claimed --> under way --> copied
//                     |
//                     +-------> failed --> the CPU copies it, or the other side's
//
// How much: coop/rndv/offload.h. Only while a thread of the receiver waits for this
// very message, and so polls until all is copied: what an HCA has begun only the
// receiver can find ended, and the sender must not depend on its next call.
//
// Threading: a lane is driven by who holds the baton; completions may come to any
// thread. Each read that is under way holds a reference of the request. Ownership:
// receiver and sender register their own buffers, while the copy lasts. Errors: a
// way that cannot be had, a key that does not come, a read that is refused: the
// CPUs copy all of it.
#pragma once

#include <array>

#include "module.h"

#include "coop/node/loopback.h"
#include "coop/rndv/offload.h"

namespace coop::pml {

enum class HcaMode : std::uint8_t { kOff, kOn, kAuto };
inline HcaMode hca_mode() noexcept { return static_cast<HcaMode>(module.config.hca); }

// The HCAs' way to a peer, and how fast it and the CPUs' are.
struct HcaWay {
    mca_bml_base_btl_t* btl = nullptr;         // null: none
    std::atomic<std::uint32_t> under_way{0};   // chunks, of all messages
    std::atomic<std::uint32_t> passed_over{0}; // messages in a row that went without
    rndv::Rate hca, cpu;                       // cpu: of both sides together
};

void find_hca_way(HcaWay& way, mca_bml_base_endpoint_t& endpoint) noexcept;

struct HcaLane {
    enum class State : std::uint8_t { kFree, kUnderWay, kFailed };
    struct Chunk {
        std::atomic<State> state{State::kFree};
        std::uint32_t number = 0;
        RecvRequest* request = nullptr;
    };
    std::array<Chunk, rndv::kMaxOffloaded> chunks{};
    std::atomic<bool> on{false};
    bool was_held = false;  // the HCA had enough to do; counted once for a message
    mca_btl_base_registration_handle_t* registration = nullptr;
    bool has_key = false;
    rndv::Key key{};        // of the sender's buffer
    std::uint64_t first_ns = 0;               // when the first chunk was posted; 0: none was
    std::atomic<std::uint64_t> last_ns{0};    // when the last one so far was complete
    std::atomic<std::uint64_t> bytes{0};      // that HCAs have copied
    std::uint64_t cpu_ns = 0;                 // that our CPU has copied
};

// Whether HCAs could copy a part of a message of that length. The first question begins to connect them.
bool may_offload(RecvRequest& r, std::size_t bytes) noexcept;
bool may_offload(SendRequest& r, rndv::Split split) noexcept;

void start_lane(RecvRequest& r, bool offloads) noexcept;  // after CopySide::start()
void end_lane(RecvRequest& r) noexcept;                   // nothing is under way; harmless where there was no lane

// The sender's: its buffer's key goes into the slot.
void open_key(SendRequest& r) noexcept;
void close_key(SendRequest& r) noexcept;

}  // namespace coop::pml
