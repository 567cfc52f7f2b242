// SPDX-License-Identifier: BSD-3-Clause
//
// The packets of windows: their BTL tag, the transport to a peer, and the collection of replies (in target.cc).
//
// Threading: any thread may call receive_packets() and packets_to(); Replies needs the window's mutex.
#pragma once

#include <vector>

#include "coop/extension/tags.h"
#include "window.h"

namespace coop::osc {

constexpr mca_btl_base_tag_t kTag = kOneSidedTag;
static_assert(kTag >= MCA_BTL_TAG_USR && kTag < MCA_BTL_TAG_MAX);

// Registers the callback for arriving packets; once per process. False: Open MPI has no transports.
bool receive_packets() noexcept;

// The transport that carries packets to the process; null: none.
mca_bml_base_btl_t* packets_to(ompi_communicator_t& comm, std::uint32_t rank) noexcept;

// Collects replies: one open packet for each origin; a full one is closed and another one opened.
class Replies {
public:
    explicit Replies(Window& window) noexcept : window_(window) {}
    // Appends a reply and returns where its data go. Precondition: reply.bytes <= most().
    std::byte* add(std::uint32_t to, const rma::Reply& reply);
    std::uint32_t most() const noexcept;
    // How many bytes fit into the open packet; most(): there is none.
    std::uint32_t room(std::uint32_t to) const noexcept;
    // Full ones.
    std::size_t packets() const noexcept { return closed_.size(); }
    // The packets, sealed.
    std::vector<Outgoing> take();

private:
    struct Open {
        std::uint32_t to;
        Buffer buffer;
        rma::FrameWriter writer;
    };
    void close(Open& open);
    Window& window_;
    std::vector<Open> open_;
    std::vector<Outgoing> closed_;
};

}  // namespace coop::osc
