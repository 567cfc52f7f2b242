// SPDX-License-Identifier: BSD-3-Clause
//
// Counts the operations of this process by window: their ways, the reasons and the bytes. An operation is counted
// once, in its window; sums over all windows are formed when somebody reads them, and include windows that are freed.
//
// Units: operations, and bytes of data that they moved. Threading: counters are atomic if process.threads. Functions
// that use the list of windows lock it: begin(), end(), sum_of_windows(), count_of_window(). Ownership: a window owns
// its counts. Errors: a window whose table cannot be allocated has an empty one.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compat.h"
#include "coop/base/usage.h"
#include "process.h"

namespace coop::osc {

class Tallies {
public:
    void count(Way way, Reason reason, std::uint64_t bytes, bool threads) noexcept {
        cells_[operations_cell(way)].add(1, threads);
        cells_[bytes_cell(way)].add(bytes, threads);
        cells_[reason_cell(reason)].add(1, threads);
    }
    std::uint64_t read(std::size_t cell) const noexcept { return cells_[cell].read(); }
    void add(const Tallies& other) noexcept {
        for (std::size_t i = 0; i < kCells; ++i) cells_[i].add(other.read(i), false);
    }

private:
    std::array<Tally, kCells> cells_{};
};

class WindowCounts {
public:
    WindowCounts() = default;
    WindowCounts(const WindowCounts&) = delete;
    WindowCounts& operator=(const WindowCounts&) = delete;

    // The window has been created, and has the name that it keeps unless the program gives it another one.
    void begin(ompi_win_t& win) noexcept;
    // Nobody uses the window any longer. Prints what it has counted, if the user wants that.
    void end() noexcept;

    void count(Way way, Reason reason, std::uint64_t bytes) noexcept {
        tallies_.count(way, reason, bytes, process.threads);
        table_->add(static_cast<std::uint32_t>(way), static_cast<std::uint32_t>(reason), bytes);
    }

    const Tallies& tallies() const noexcept { return tallies_; }
    const Usage& table() const noexcept { return own_table_; }
    bool is_reported() const noexcept;  // it has lines of its own in the report
    // 'window 2 "halo" (allocate, 4 processes)'
    std::string description() const;

private:
    friend struct CountedWindows;

    Tallies tallies_;
    Usage own_table_;             // for osc_multirail_report 2
    Usage* table_ = &own_table_;  // where operations are entered
    ompi_win_t* win_ = nullptr;   // from begin() to end()
    std::string first_name_;
    std::uint32_t number_ = 0;  // in the order of creation in this process, from 1
};

// The first windows, up to this number, have lines of their own in the report.
inline constexpr std::uint32_t kMostReported = 32;

// All windows of this process, freed ones as well.
struct Summary {
    Tallies tallies;
    Usage table;
    std::uint32_t windows = 0;          // that were created
    std::vector<WindowCounts*> open{};  // those that have not been freed, in the order of creation
};
Summary sum_of_windows();
std::uint64_t sum_of_windows(std::size_t cell) noexcept;
// Nothing if `win` is no window of this component. It may point to anything.
std::optional<std::uint64_t> count_of_window(const void* win, std::size_t cell) noexcept;

}  // namespace coop::osc
