// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/reason.h"

#include "coop/rndv/situation.h"

namespace coop::rndv {
namespace {

std::string none(const Situation&) { return {}; }
std::string bytes_of(std::size_t limit) { return " of " + std::to_string(limit) + " bytes"; }
std::string eager_limit(const Situation& s) { return bytes_of(s.eager_limit); }
std::string rdma_min(const Situation& s) { return bytes_of(s.rdma_min); }
std::string isend_rdma_min(const Situation& s) { return bytes_of(s.isend_rdma_min); }
std::string lane_max(const Situation& s) { return bytes_of(s.lane_max); }
std::string coop_min(const Situation& s) { return bytes_of(s.coop_min); }
std::string bandwidth(const Situation& s) {
    return ", which has " + std::to_string(static_cast<int>(s.rdma_share * 100)) + " % of the bandwidth";
}
std::string loads(const Situation& s) {
    return " (sender " + std::to_string(s.sender_load) + " bytes, receiver " + std::to_string(s.receiver_load) +
           " bytes)";
}

struct Words {
    const char* text = "unknown";
    std::string (*numbers)(const Situation&) = none;
};

Words words(Reason reason) noexcept {
    switch (reason) {
    case Reason::kFitsEager: return {"fits the eager limit", eager_limit};
    case Reason::kSynchronousFitsInline: return {"synchronous, in the RTS: it fits the eager limit", eager_limit};
    case Reason::kForced: return {"requested"};
    case Reason::kForcedUnavailable: return {"the requested protocol is not possible here"};
    case Reason::kReceiverReads: return {"the receiver reads the send buffer"};
    case Reason::kNoGet: return {"the transport supports put but not get"};
    case Reason::kNoRdma: return {"the transport has no RDMA"};
    case Reason::kBelowRdmaMin: return {"below pml_coop_rdma_min", rdma_min};
    case Reason::kNotAwaited: return {"nobody waits, and it is below pml_coop_isend_rdma_min", isend_rdma_min};
    case Reason::kSlowLink: return {"nobody waits, and the link is slower than copies"};
    case Reason::kPacketIsQuicker: return {"one packet is quicker, or is being tried"};
    case Reason::kFastLink: return {"nobody waits, and the link is faster than copies"};
    case Reason::kSenderPieces: return {"the send buffer is not contiguous"};
    case Reason::kReceiverPieces: return {"the receive buffer is not contiguous"};
    case Reason::kStripedOverTransports: return {"fragments over all transports beat RDMA over one", bandwidth};
    case Reason::kGetRefused: return {"the transport refused to get"};
    case Reason::kRdmaRefused: return {"the transport refused RDMA"};
    case Reason::kNothingLeft: return {"everything came along with the RTS"};
    case Reason::kBothWait: return {"both sides wait: both copy"};
    case Reason::kSenderWaits: return {"the sender waits, the receiver may compute"};
    case Reason::kReceiverWaits: return {"the receiver waits, the sender may compute"};
    case Reason::kNobodyWaits: return {"neither side waits: the side that has time copies"};
    case Reason::kReceiverLighter: return {"the receiver has less to copy", loads};
    case Reason::kSenderLighter: return {"the sender has less to copy", loads};
    case Reason::kEvenLoad: return {"neither side has clearly less to copy", loads};
    case Reason::kBelowCoopMin: return {"below pml_coop_coop_min", coop_min};
    case Reason::kOffered: return {"the receive was offered to the sender"};
    case Reason::kNoKernelCopy: return {"the kernel denies copies between the two"};
    case Reason::kNoSlot: return {"no slot for a cooperative copy is free, or no room for the grant"};
    case Reason::kReceiverTurn: return {"about as much to copy, and the receiver has copied less so far", loads};
    case Reason::kSenderTurn: return {"about as much to copy, and the sender has copied less so far", loads};
    case Reason::kFitsLane: return {"fits one packet of the lane", eager_limit};
    case Reason::kReadFromSender: return {"the sender waits, and one copy by the kernel is faster than two"};
    case Reason::kBelowLaneMax: return {"two copies through the lane are faster than one by the kernel", lane_max};
    case Reason::kLaneIsQuicker: return {"both sides wait: the lane is quicker than the kernel, or is being tried"};
    case Reason::kOneWay: return {"blocking sends in a row, with no message back"};
    }
    return {};
}

}  // namespace

const char* text(Reason reason) noexcept { return words(reason).text; }

std::string numbers(Reason reason, const Situation& situation) { return words(reason).numbers(situation); }

}  // namespace coop::rndv
