// SPDX-License-Identifier: BSD-3-Clause
#include "counts.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "diagnose.h"
#include "report.h"

namespace coop::osc {

struct CountedWindows {
    std::mutex lock;
    std::vector<WindowCounts*> open{};  // in the order of creation
    std::uint32_t created = 0;
    Tallies freed;       // the sum over windows that are freed
    Usage freed_tables;  // the same, of those that had a table
    Usage common_table;  // of all windows that have no table of their own

    static CountedWindows& all() noexcept {
        static auto& windows = *new CountedWindows;
        return windows;
    }
    static Usage new_table() noexcept {
        if (process.config.report < 2) return {};
        Usage table(kWays, kReasons);
        table.set_threads(process.threads);
        return table;
    }

    void enter(WindowCounts& window) {
        const std::lock_guard guard(lock);
        open.push_back(&window);
        window.number_ = ++created;
        if (created == 1) {
            freed_tables = new_table();
            common_table = new_table();
        }
        if (window.is_reported()) window.own_table_ = new_table();
        else window.table_ = &common_table;
    }

    void leave(WindowCounts& window) noexcept {
        const std::lock_guard guard(lock);
        open.erase(std::find(open.begin(), open.end(), &window));
        freed.add(window.tallies_);
        // False if one of them could not be allocated: its counts are missing in the table.
        static_cast<void>(freed_tables.merge(window.own_table_));
    }

    std::uint64_t sum(std::size_t cell) noexcept {
        const std::lock_guard guard(lock);
        std::uint64_t n = freed.read(cell);
        for (const WindowCounts* const window : open) n += window->tallies_.read(cell);
        return n;
    }

    Summary summary() {
        const std::lock_guard guard(lock);
        Summary sum{freed, new_table(), created, open};
        for (const Usage* const table : {&freed_tables, &common_table}) static_cast<void>(sum.table.merge(*table));
        for (const WindowCounts* const window : open) {
            sum.tallies.add(window->tallies_);
            static_cast<void>(sum.table.merge(window->own_table_));
        }
        return sum;
    }

    std::optional<std::uint64_t> of_window(const void* win, std::size_t cell) noexcept {
        const std::lock_guard guard(lock);
        const auto found = std::find_if(open.begin(), open.end(),
                                        [&](const WindowCounts* w) { return w->win_ == win; });
        if (found == open.end()) return std::nullopt;
        return (*found)->tallies_.read(cell);
    }
};

namespace {

const char* flavor_of(const ompi_win_t& win) noexcept {
    switch (win.w_flavor) {
    case MPI_WIN_FLAVOR_CREATE: return "create";
    case MPI_WIN_FLAVOR_ALLOCATE: return "allocate";
    case MPI_WIN_FLAVOR_SHARED: return "allocate_shared";
    default: return "create_dynamic";
    }
}

// The name of the window, fit for a line of text.
std::string name_of(ompi_win_t& win) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    ompi_win_get_name(&win, name, &length);
    std::string text(name);
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
    return text;
}

}  // namespace

void WindowCounts::begin(ompi_win_t& win) noexcept {
    try {
        first_name_ = name_of(win);
        win_ = &win;
        CountedWindows::all().enter(*this);
    } catch (const std::bad_alloc&) {
        out_of_memory("the counts of a window");
    }
}

void WindowCounts::end() noexcept {
    print_window(*this);
    CountedWindows::all().leave(*this);
    win_ = nullptr;
}

bool WindowCounts::is_reported() const noexcept { return number_ <= kMostReported; }

std::string WindowCounts::description() const {
    const std::string name = name_of(*win_);
    const int processes = ompi_group_size(win_->w_group);
    return "window " + std::to_string(number_) + (name.empty() || name == first_name_ ? "" : " \"" + name + "\"") +
           " (" + flavor_of(*win_) + ", " + std::to_string(processes) + (processes == 1 ? " process)" : " processes)");
}

Summary sum_of_windows() { return CountedWindows::all().summary(); }
std::uint64_t sum_of_windows(std::size_t cell) noexcept { return CountedWindows::all().sum(cell); }
std::optional<std::uint64_t> count_of_window(const void* win, std::size_t cell) noexcept {
    return CountedWindows::all().of_window(win, cell);
}

}  // namespace coop::osc
