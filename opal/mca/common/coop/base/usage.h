// SPDX-License-Identifier: BSD-3-Clause
//
// What was sent and how: messages and bytes by protocol row, size class and
// reason of the choice. Feeds the report at finalize and the MPI_T variables.
// Rows and reasons are small integers; their labels come in when formatting.
//
// Units: messages and bytes of user data. Threading: add() is safe from many
// threads once set_threads(true) was called, before the first message; all
// reading is safe at any time. merge(), merge_words(): one thread.
// Ownership: a table owns its cells (16 bytes per row x class x reason).
// Errors: without memory for its cells a table has no rows and ignores what is
// added. Words of a peer are checked in full before any of them is added.
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
    static constexpr std::uint32_t kMaxReasons = 32;

    Usage() = default;  // no rows: ignores everything

    // At most kMaxRows x kMaxReasons; more is a table without rows.
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

    COOP_EXPORT std::uint64_t messages(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept;
    COOP_EXPORT std::uint64_t bytes(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept;
    COOP_EXPORT std::uint64_t messages(std::uint32_t row) const noexcept;  // all classes, all reasons
    COOP_EXPORT std::uint64_t bytes(std::uint32_t row) const noexcept;
    COOP_EXPORT std::uint64_t messages() const noexcept;
    COOP_EXPORT std::uint64_t bytes() const noexcept;

    // Adds the counts of a table of the same shape; false when it is not.
    [[nodiscard]] COOP_EXPORT bool merge(const Usage& other) noexcept;

    COOP_EXPORT std::vector<UsageCount> counts() const;  // of the cells in use, by rising index
    std::vector<std::uint64_t> to_words() const { return shape_.words_of(counts()); }

    // Adds a table that came in as words: all of it, or, when a word is not
    // as it must be, none of it and a sentence that names the field.
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

// Labels by index. A row or reason beyond its table is printed as its number.
struct UsageLabels {
    std::span<const char* const> rows;
    std::span<const char* const> reasons;
};

struct PeerUsage {
    int peer = 0;                    // its rank in MPI_COMM_WORLD
    std::vector<UsageCount> counts;  // what was sent to it, by rising index
};

// The table of a whole job, of `processes` processes: one line per protocol,
// size class and reason that occurred, and the totals. 100 columns at most.
COOP_EXPORT std::string format_job_table(const Usage& usage, const UsageLabels& labels, int processes);

// The same for what process `rank` sent, with a column for the peer.
COOP_EXPORT std::string format_peer_table(int rank, std::span<const PeerUsage> peers, const UsageShape& shape, const UsageLabels& labels);

// "0 B", "17 B", "1.5 KiB", … at most 10 characters.
COOP_EXPORT std::string human_bytes(std::uint64_t bytes);

}  // namespace coop
