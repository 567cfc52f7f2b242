// SPDX-License-Identifier: BSD-3-Clause
//
// The data that each process publishes to all others at start, through PMIx.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "coop/base/architecture.h"
#include "node.h"

namespace coop::pml {

// Fields are only added at the end, so that an older version can read the fields that it knows.
struct Card {
    std::uint32_t wire_version = 0;
    std::uint32_t report = 0;      // the process's value of pml_coop_report
    BoardCard board;               // where its board is
    std::uint64_t copy_works = 0;  // whether the kernel lets it copy, at least from itself
    Architecture architecture{};
    std::uint32_t unused = 0;
    LaneCard lane;  // where it receives what neighbours send through the lane
};
static_assert(sizeof(Card) == 72);
// A card that an older version has published is shorter: what it does not tell is absent, not descriptor 0.
static_assert(Card{}.board.fd == -1 && Card{}.lane.fd == -1);

void publish_modex() noexcept;

// Returns what the process has published; nothing if it has published nothing. Cards of neighbours in our job are kept. The others come
// from PMIx, whose thread has to get a CPU: with more processes than CPUs that takes milliseconds.
std::optional<Card> card_of(ompi_proc_t* proc) noexcept;

// Reads the cards of those processes of our job that are on this node. In MPI_Init, so that the first messages need not wait for that.
void read_cards(ompi_proc_t** procs, std::size_t count) noexcept;

// Ends the job with an error if the peer has another architecture or runs an incompatible version.
void check_version(const ompi_proc_t* proc, const std::optional<Card>& card) noexcept;

// True if the kernel lets rank 0 of our job copy. If not, copies are probably denied on every node, and rank 0 alone
// reports it.
bool rank_0_can_copy() noexcept;

// Returns the peer's value of pml_coop_report; 0 if it published nothing.
std::int64_t published_report(ompi_proc_t* proc) noexcept;

}  // namespace coop::pml
