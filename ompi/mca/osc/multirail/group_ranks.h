// SPDX-License-Identifier: BSD-3-Clause
//
// The ranks of a group of MPI_Win_start or MPI_Win_post. Programs pass the same group again and again, so the ranks of
// the last one are kept. The group is retained, so that no other one can have its address meanwhile.
//
// Units: ranks in the window. Threading: the mutex of the window. Ownership: it retains the group.
// Errors: std::bad_alloc; the ranks of the last group are lost then.
#pragma once

#include <cstdint>
#include <vector>

#include "compat.h"

namespace coop::osc {

class GroupRanks {
public:
    GroupRanks() = default;
    ~GroupRanks() { forget(); }
    GroupRanks(const GroupRanks&) = delete;
    GroupRanks& operator=(const GroupRanks&) = delete;

    // find(i): the rank of the i-th process of the group, or nothing. False: one is not in the window, and there are no
    // ranks.
    template <class F>
    bool look_up(ompi_group_t& group, F find) {
        if (&group == group_) return true;
        forget();
        const int count = ompi_group_size(&group);
        ranks_.reserve(static_cast<std::size_t>(count));
        for (int i = 0; i < count; ++i) {
            const auto rank = find(i);
            if (!rank) {
                ranks_.clear();
                return false;
            }
            ranks_.push_back(*rank);
        }
        group_ = &group;
        OBJ_RETAIN(group_);
        return true;
    }
    // Of the last group that was found.
    const std::vector<std::uint32_t>& ranks() const noexcept { return ranks_; }

private:
    void forget() noexcept {
        ranks_.clear();
        if (group_) OBJ_RELEASE(group_);
        group_ = nullptr;
    }

    ompi_group_t* group_ = nullptr;  // null: none
    std::vector<std::uint32_t> ranks_;
};

}  // namespace coop::osc
