// SPDX-License-Identifier: BSD-3-Clause
//
// Messages above the eager limit that go to a process on another node in one packet of the transport
// (BtlExtension::send_long), where that takes less time than a handshake (coop/rndv/packet_trial.h). Only those whose
// sender waits: in a stream of others, handshakes and transfers overlap, and copies would only cost time.
//
// The way of such a message: send_at_once() (send.cc) -> send_long_packet() -> PacketTrial::goes_in_packet() ->
// send_immediate() (packet.h) -> send_long() of btl/coopib (send.cc), which writes it into the ring of the receiver. There it
// arrives like a short one (on_match.cc). In the report it is of the row "eager".
//
// Threading: any thread; takes Module::lock.
#pragma once

#include "comm.h"

namespace coop::pml {

// Sends a message of at most Peer::long_payload bytes in one packet, without a request. Returns false, and has not sent
// it, if a handshake is faster or has its turn in a trial, the buffer has gaps, another protocol is chosen, earlier
// sends wait, or the transport has no room. Precondition: the caller waits for the end of the message.
bool send_long_packet(Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype, int tag,
                      SequenceNumber& sequence, ompi_communicator_t* comm) noexcept;

}  // namespace coop::pml
