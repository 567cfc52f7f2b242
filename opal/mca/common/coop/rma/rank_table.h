// SPDX-License-Identifier: BSD-3-Clause
//
// The ranks of processes by their names: a group of a program names processes, and a window has them by rank. (To
// compare each process of the group with each of the window, as MPI_Group_translate_ranks may do, takes the product of
// both.)
//
// Names are mostly consecutive numbers in the order of the ranks. Then a rank is found by one look; else by a search.
//
// Memory: 12 bytes per process, or 8 if the names are ascending. Threading: the caller holds the lock of the window.
// Errors: the constructor passes on std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

namespace coop::rma {

class RankTable {
public:
    RankTable() = default;
    // name_of(rank): the name of each process, all different. Linear time if they are ascending.
    template <class F>
    RankTable(std::uint32_t processes, F name_of) {
        std::vector<std::uint64_t> names(processes);
        for (std::uint32_t rank = 0; rank < processes; ++rank) names[rank] = name_of(rank);
        if (!std::ranges::is_sorted(names)) {
            ranks_.resize(processes);
            std::iota(ranks_.begin(), ranks_.end(), 0u);
            std::ranges::sort(ranks_, {}, [&](std::uint32_t rank) { return names[rank]; });
            std::ranges::sort(names);
        }
        names_ = std::move(names);
    }

    bool empty() const noexcept { return names_.empty(); }

    std::optional<std::uint32_t> find(std::uint64_t name) const noexcept {
        if (names_.empty() || name < names_.front()) return std::nullopt;
        std::size_t place = name - names_.front();
        if (place >= names_.size() || names_[place] != name) {
            place = static_cast<std::size_t>(std::ranges::lower_bound(names_, name) - names_.begin());
            if (place == names_.size() || names_[place] != name) return std::nullopt;
        }
        return ranks_.empty() ? static_cast<std::uint32_t>(place) : ranks_[place];
    }

private:
    std::vector<std::uint64_t> names_;  // ascending
    std::vector<std::uint32_t> ranks_;  // of these names; empty: their places
};

}  // namespace coop::rma
