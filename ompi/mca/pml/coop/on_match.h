// SPDX-License-Identifier: BSD-3-Clause
//
// Packets that have arrived: one function per kind. BTLs call the functions mca_pml_coop_on_...(); those for CTS, FRAG
// and FIN are in on_answer.cc, the others in on_match.cc. node_lane.cc calls the same functions for packets of the
// lane, except for eager messages: on_whole() if a message is whole, on_eager() if its sender still writes it or
// offers it.
#pragma once

#include "arrived.h"

namespace coop::pml {

// An eager message. Its caller holds a Polling.
void on_eager(const Packet& packet) noexcept;
// Returns whether to look for another packet of its sender now: not if the call that waits for this one ends now. The cache
// line of the next packet is probably still with the sender, and what this process does next would wait for it. But while
// sends are under way, the next packet may answer one of them.
bool on_whole(const Whole& message) noexcept;

// Whether a message with this valid header would match a receive that is posted now.
bool has_receive(const wire::MatchHeader& header) noexcept;

extern "C" {
void mca_pml_coop_on_match(mca_btl_base_module_t* btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t* des,
                           void* context);
void mca_pml_coop_on_rts(mca_btl_base_module_t* btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t* des,
                         void* context);
void mca_pml_coop_on_cts(mca_btl_base_module_t* btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t* des,
                         void* context);
void mca_pml_coop_on_frag(mca_btl_base_module_t* btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t* des,
                          void* context);
void mca_pml_coop_on_fin(mca_btl_base_module_t* btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t* des,
                         void* context);
}

}  // namespace coop::pml
