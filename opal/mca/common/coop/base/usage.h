// SPDX-License-Identifier: BSD-3-Clause
//
// Statistics of sent messages: messages and bytes by protocol row, size class and reason for the choice. They
// feed the report at finalize and the MPI_T variables. Rows and reasons are small integers; labels are needed
// only for formatting.
//
// Units: messages and bytes of user data. Threading: add() may be called by many threads if set_threads(true)
// was called before the first message; reading is safe at any time. merge(), merge_words(): one thread.
// Ownership: a table owns its cells (16 bytes per row x class x reason). Errors: a table whose cells cannot be
// allocated has no rows and ignores additions. Words from a peer are validated completely before any of them is
// added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coop/base/export.h"
#include "coop/base/tally.h"
#include "coop/base/usage_words.h"

namespace coop {

class Usage {
public:
    static constexpr std::uint32_t kMaxRows = 8;
    static constexpr std::uint32_t kMaxReasons = 64;

    Usage() = default;  // no rows: ignores additions

    // More than kMaxRows rows or kMaxReasons reasons give a table without rows.
    COOP_EXPORT Usage(std::uint32_t rows, std::uint32_t reasons) noexcept;

    const UsageShape& shape() const noexcept { return shape_; }

    void set_threads(bool threads) noexcept { threads_ = threads; }

    // Counts one message. Hot path.
    void add(std::uint32_t row, std::uint32_t reason, std::uint64_t bytes) noexcept {
        if (!shape_.has(row, reason)) return;
        Cell& cell = cells_[shape_.index(row, size_class(bytes), reason)];
        cell.messages.add(1, threads_);
        cell.bytes.add(bytes, threads_);
    }

    // Counts the messages of one row and reason. Valid until the table is assigned to or destroyed. After set_threads().
    class Column;
    Column column(std::uint32_t row, std::uint32_t reason) noexcept;

    COOP_EXPORT std::uint64_t messages(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept;
    COOP_EXPORT std::uint64_t bytes(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept;
    COOP_EXPORT std::uint64_t messages(std::uint32_t row) const noexcept;  // all classes, all reasons
    COOP_EXPORT std::uint64_t bytes(std::uint32_t row) const noexcept;
    COOP_EXPORT std::uint64_t messages() const noexcept;
    COOP_EXPORT std::uint64_t bytes() const noexcept;

    // Adds the counts of `other`; returns false if its shape differs.
    [[nodiscard]] COOP_EXPORT bool merge(const Usage& other) noexcept;

    COOP_EXPORT std::vector<UsageCount> counts() const;  // of the cells in use, in ascending order of index
    std::vector<std::uint64_t> to_words() const { return shape_.words_of(counts()); }

    // Adds a table received as words. If a word is invalid, adds nothing and returns an error message that
    // names the field.
    COOP_EXPORT std::optional<std::string> merge_words(std::span<const std::uint64_t> words);

private:
    struct Cell {
        Tally messages;
        Tally bytes;
    };

    bool valid(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept {
        return shape_.has(row, reason) && size_class >= 0 && size_class < kSizeClasses;
    }
    void add_saturating(const UsageCount& count) noexcept;

    std::unique_ptr<Cell[]> cells_;
    UsageShape shape_;
    bool threads_ = false;
};

class Usage::Column {
public:
    Column() = default;  // counts nothing

    // Counts one message. Hot path.
    void add(std::uint64_t bytes) noexcept {
        if (!first_) return;
        Cell& cell = first_[static_cast<std::uint32_t>(size_class(bytes)) * stride_];
        const bool threads = threads_;
        cell.messages.add(1, threads);
        cell.bytes.add(bytes, threads);
    }

private:
    friend class Usage;
    Column(Cell* first, std::uint32_t stride, bool threads) noexcept
        : first_(first), stride_(stride), threads_(threads) {}

    Cell* first_ = nullptr;  // of size class 0
    std::uint32_t stride_ = 0;
    bool threads_ = false;
};

inline Usage::Column Usage::column(std::uint32_t row, std::uint32_t reason) noexcept {
    if (!shape_.has(row, reason)) return {};
    return {&cells_[shape_.index(row, 0, reason)], shape_.reasons, threads_};
}

// Labels by index. A row or reason without a label is printed as its number.
struct UsageLabels {
    std::span<const char* const> rows;
    std::span<const char* const> reasons;
};

struct PeerUsage {
    int peer = 0;                    // rank in MPI_COMM_WORLD
    std::vector<UsageCount> counts;  // of messages sent to it, in ascending order of index
};

// The title of a table, and the words over its columns.
struct UsageHeading {
    std::string title;
    const char* row = "protocol";
    const char* size = "size";
    const char* count = "messages";
};
// One line per row, size class and reason that occurred, and the totals; at most 100 columns.
COOP_EXPORT std::string format_table(const UsageHeading& heading, const Usage& usage, const UsageLabels& labels);

// Formats the table of a job of `processes` processes: one line per protocol, size class and reason that
// occurred, and the totals; at most 100 columns.
COOP_EXPORT std::string format_job_table(const Usage& usage, const UsageLabels& labels, int processes);

// Formats the messages that process `rank` sent, with a column for the peer.
COOP_EXPORT std::string format_peer_table(int rank, std::span<const PeerUsage> peers, const UsageShape& shape,
                                          const UsageLabels& labels);

// Returns "0 B", "17 B", "1.5 KiB", …: at most 10 characters.
COOP_EXPORT std::string human_bytes(std::uint64_t bytes);

}  // namespace coop
