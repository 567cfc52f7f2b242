// SPDX-License-Identifier: BSD-3-Clause
#include "long_packets.h"

#include "hints.h"
#include "lane_packet.h"
#include "packet.h"

namespace coop::pml {
namespace {

// The most packets in a row on a communicator to a process that sends no message to us there. The receiver keeps packets without a receive in its
// memory; so after this many, one message waits for the receiver by a handshake. (For the lane: LaneOut::kMostKept.)
constexpr std::uint32_t kMostUnanswered = 32;

// Whether the user leaves the choice to us.
bool may_go_in_packet(ompi_communicator_t* comm) noexcept {
    return wish_for(comm) == rndv::Wish::kHybrid && rndv::sender_waits(call_for(comm, rndv::SendCall::kSend));
}

bool packet_is_faster(Process& process, std::size_t bytes) noexcept {
    Guard guard(module.lock);
    rndv::PacketTrial& trial = process.packet_trials.of(bytes);
    return trial.goes_in_packet(trial.is_timed() ? now_ns() : 0);
}

}  // namespace

bool send_long_packet(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int tag,
                      SequenceNumber& sequence, ompi_communicator_t* comm) noexcept {
    const std::size_t bytes = bytes_of(datatype->super, count);
    take_in_written_parameters();
    if (peer.has_line() || !may_go_in_packet(comm)) return false;
    const std::uint32_t unanswered = peer.run.load(std::memory_order_relaxed);
    if (unanswered >= kMostUnanswered) {
        peer.run.store(0, std::memory_order_relaxed);
        return false;
    }
    const char* const from = contiguous_base(datatype->super, count, buf);
    if (!from || !packet_is_faster(*peer.process, bytes)) return false;

    mca_bml_base_btl_t& btl = *peer.eager();
    const BtlExtension* const extension = extension_of(*btl.btl);
    if (!extension || !send_immediate(btl, extension->send_long, match_words(comm, tag, sequence), from, bytes)) {
        // The message will get a request, and may still be refused if there is no memory for one.
        static_cast<void>(sequence.give_back());
        return false;
    }
    peer.run.store(unanswered + 1, std::memory_order_relaxed);
    peer.count(rndv::Row::kEager, rndv::Reason::kPacketIsQuicker, bytes);
    return true;
}

}  // namespace coop::pml
