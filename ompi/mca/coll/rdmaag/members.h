// SPDX-License-Identifier: BSD-3-Clause
//
// Which processes of a communicator exchange blocks by transports: all of them, or the leaders of its nodes
// (hierarchy.h). They are numbered from 0.
#pragma once

#include <utility>
#include <vector>

#include "compat.h"

namespace coop::ag {

class Members {
public:
    // All processes of the communicator.
    explicit Members(ompi_communicator_t& comm) noexcept
        : comm_(comm), processes_(static_cast<std::uint32_t>(ompi_comm_size(&comm))),
          rank_(static_cast<std::uint32_t>(ompi_comm_rank(&comm))) {}
    // The leaders of nodes, by their ranks in the communicator; `own` is the number of this one.
    Members(ompi_communicator_t& comm, std::vector<std::uint32_t> leaders, std::uint32_t own) noexcept
        : comm_(comm), processes_(static_cast<std::uint32_t>(leaders.size())), rank_(own),
          leaders_(std::move(leaders)) {}

    ompi_communicator_t& comm() const noexcept { return comm_; }
    std::uint32_t processes() const noexcept { return processes_; }
    std::uint32_t rank() const noexcept { return rank_; }  // own number
    bool are_leaders() const noexcept { return !leaders_.empty(); }

    std::uint32_t rank_in_comm(std::uint32_t number) const noexcept {
        return are_leaders() ? leaders_[number] : number;
    }
    mca_bml_base_endpoint_t& endpoint(std::uint32_t number) const noexcept {
        return *mca_bml_base_get_endpoint(ompi_comm_peer_lookup(&comm_, static_cast<int>(rank_in_comm(number))));
    }
    // What the packets of these processes carry: a communicator and its leaders differ.
    std::uint32_t context() const noexcept { return comm_.c_contextid | (are_leaders() ? kContextOfLeaders : 0); }
    static constexpr std::uint32_t kContextOfLeaders = 1u << 16;

private:
    ompi_communicator_t& comm_;
    std::uint32_t processes_, rank_;
    std::vector<std::uint32_t> leaders_;  // empty: all processes
};

}  // namespace coop::ag
