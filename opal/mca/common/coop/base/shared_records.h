// SPDX-License-Identifier: BSD-3-Clause
//
// Reference-counted records, found by name. pml/coop keeps what it knows of each peer process in one: many
// communicators share it, and it is deleted when the last of them lets go.
//
//     Record* record = records.find(name);                        // null: no user yet
//     if (!record) record = records.add(name, fresh);             // another thread may have added one meanwhile
//     … auto gone = records.let_go(name);                         // returns the record to its last user, to delete it
//
// Threading: none; the caller locks. If deleting a record takes time, delete what let_go() returns, or what
// add() leaves to the caller, after unlocking. Ownership: the table owns its records. A pointer is valid until
// its user calls let_go().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

namespace coop {

template <class Record>
class SharedRecords {
public:
    // Returns the record of this name and adds a user to it; null if there is none.
    Record* find(std::uint64_t name) noexcept {
        const auto found = all_.find(name);
        if (found == all_.end()) return nullptr;
        ++found->second.users;
        return found->second.record.get();
    }

    // Adds a record with one user. If a record of this name exists, adds a user to that one, and `record` stays
    // the caller's.
    Record* add(std::uint64_t name, std::unique_ptr<Record>& record) {
        if (Record* known = find(name)) return known;
        return (all_[name] = {std::move(record), 1}).record.get();
    }

    // Removes a user. Returns the record if that was its last user, otherwise null.
    [[nodiscard]] std::unique_ptr<Record> let_go(std::uint64_t name) noexcept {
        const auto found = all_.find(name);
        if (found == all_.end() || --found->second.users > 0) return nullptr;
        std::unique_ptr<Record> gone = std::move(found->second.record);
        all_.erase(found);
        return gone;
    }

    std::size_t size() const noexcept { return all_.size(); }
    void clear() noexcept { all_.clear(); }

private:
    struct Entry {
        std::unique_ptr<Record> record;
        std::uint64_t users = 0;
    };
    std::unordered_map<std::uint64_t, Entry> all_;
};

}  // namespace coop
