// SPDX-License-Identifier: BSD-3-Clause
//
// Records that several users share, by name, for as long as somebody uses them: what a process knows of others, which many
// communicators ask for, and which may be gone while the job goes on.
//
//     Record* record = records.find(name);                          // null: nobody uses one
//     if (!record) record = records.add(name, std::move(fresh));    // or the one that somebody else has added meanwhile
//     … auto gone = records.let_go(name);                           // the last user gets the record back, to delete it
//
// Threading: none; the caller locks. What let_go() and add() give back is deleted when the lock is not held any more, if deleting it
// takes time. Ownership: the table owns what is in it. A pointer is valid until the user that got it lets go.
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
    // The record of that name, with one user more. Null: there is none.
    Record* find(std::uint64_t name) noexcept {
        const auto found = all_.find(name);
        if (found == all_.end()) return nullptr;
        ++found->second.users;
        return found->second.record.get();
    }

    // Adds a record and its first user. Where there is one of that name, that one has a user more, and `record` stays the caller's.
    Record* add(std::uint64_t name, std::unique_ptr<Record>& record) {
        if (Record* known = find(name)) return known;
        return (all_[name] = {std::move(record), 1}).record.get();
    }

    // One user less. The record, if that was the last one; else null.
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
