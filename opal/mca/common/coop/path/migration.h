// SPDX-License-Identifier: BSD-3-Clause
//
// Automatic path migration (APM) of one queue pair: loads its alternate path, learns that it has moved, and decides when
// it is to be moved. Both sides of a connection run this machine, and each learns the moves of the other from its own HCA:
// the HCA follows if packets arrive by the alternate path.
//
// The paths form a ring (path/alternates.h); the alternate is always the next one.
//
//     Verbs have no event for ARMED, so the state is asked for (ibv_query_qp). Both sides must have loaded, and packets
//     must have gone both ways, before a queue pair is armed. Therefore an empty write follows each load (Do kSend).
//
//     A queue pair that has moved must not load before its peer has moved, too: its packets would no longer say that it
//     has, and the peer would drop them. So an empty write goes over the new path first, and kConfirmed allows the load.
//
//     A path whose port is down here is not loaded until the port works again. Without this side's consent the peer is
//     not armed either, so neither moves to it.
//
// A queue pair that has left its first path returns to it a while after the port has come back (MigrationPatience::hold),
// if the owner permits that: the other rails of the new port would have to share it.
//
// Source: dissertation 9.2; InfiniBand 17.2.8. Time: nanoseconds of any steady clock. Threading: the owner's lock.
// Ownership: values only. Errors: an event that does not fit changes nothing.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "coop/base/export.h"
#include "coop/path/alternates.h"

namespace coop::path {

enum class MigrationState : std::uint8_t {
    kUnable,    // there is no alternate path, or the HCA has refused it
    kMigrated,  // no alternate path is loaded: before the first load, and after each move until the next one
    kLoading,   // an alternate path is loaded, and the queue pair was not armed when it was last asked
    kArmed,     // the HCA moves the queue pair when its path fails
    kBroken,    // the HCA could not follow the peer
};
constexpr std::size_t kMigrationStates = 5;
COOP_EXPORT const char* name(MigrationState state) noexcept;

enum class MigrationEvent : std::uint8_t {
    kConnected,     // the queue pair is in RTS
    kLoaded,        // kLoad is done
    kRefused,       // the HCA has refused kLoad or kForce
    kForced,        // kForce is done
    kSeenMigrated,  // kLook: the state, and for this one the path that the queue pair is on
    kSeenRearm,
    kSeenArmed,
    kPathMigrated,     // the HCA's event PATH_MIG: this side or the peer has moved
    kMigrationFailed,  // the HCA's event PATH_MIG_ERR
    kConfirmed,        // the empty write of kSend has completed
    kAsked,            // the owner wants the queue pair on the alternate path, if it has been armed for a while
    kTick,             // next_tick() is due
};
constexpr std::size_t kMigrationEvents = 12;
COOP_EXPORT const char* name(MigrationEvent event) noexcept;

enum class MigrationDo : std::uint8_t {
    kLoad,   // load the path next() and ask for arming; then kLoaded or kRefused
    kLook,   // ask for the state; then kSeen…
    kForce,  // change the state to MIGRATED; then kForced or kRefused
    kSend,   // send an empty write over the queue pair; then kConfirmed. One that is under way does not count
    kTell,   // the queue pair has moved to current(), for the reason cause()
};

class MigrationActions {
public:
    MigrationActions& add(MigrationDo action) noexcept {
        list_[count_++] = action;
        return *this;
    }
    const MigrationDo* begin() const noexcept { return list_.data(); }
    const MigrationDo* end() const noexcept { return list_.data() + count_; }

private:
    std::array<MigrationDo, 2> list_{};
    std::size_t count_ = 0;
};

enum class MoveCause : std::uint8_t {
    kHca,       // the HCA has given the path up, or followed the peer
    kPortDown,  // the port of the path is down
    kReturn,    // back to the first path, whose port works again
    kAsked,     // the owner has asked, because the path was congested
};
COOP_EXPORT const char* describe(MoveCause cause) noexcept;

struct MigrationPatience {
    std::uint64_t hold = 100'000'000;  // until the return; doubles each time the port goes down again soon
    std::uint64_t longest_hold = 60'000'000'000;
    std::uint64_t calm = 10'000'000'000;  // after a return, until a failure is no longer soon
    std::uint64_t settle = 100'000'000;   // for which it must have been armed before it moves on request
};

using PathSet = std::bitset<kMostAlternates>;  // places in the ring

class Migration {
public:
    // `paths`: of the ring. `returns`: whether it returns to the first one by itself.
    explicit Migration(std::size_t paths = 1, bool returns = false, const MigrationPatience& patience = {}) noexcept
        : patience_(patience), paths_(paths), returns_(returns),
          state_(paths > 1 ? MigrationState::kMigrated : MigrationState::kUnable) {}

    // `path`: of kSeenMigrated. The owner carries out the actions in order.
    [[nodiscard]] COOP_EXPORT MigrationActions on(MigrationEvent event, std::uint64_t now,
                                                  std::size_t path = 0) noexcept;
    // Ports of this side, and with them these paths, went down or work again.
    [[nodiscard]] COOP_EXPORT MigrationActions on_down(const PathSet& paths, std::uint64_t now) noexcept;
    [[nodiscard]] COOP_EXPORT MigrationActions on_active(const PathSet& paths, std::uint64_t now) noexcept;

    MigrationState state() const noexcept { return state_; }
    std::size_t current() const noexcept { return current_; }
    std::size_t next() const noexcept { return (current_ + 1) % paths_; }
    MoveCause cause() const noexcept { return cause_; }  // of the last move
    std::uint64_t moves() const noexcept { return moves_; }
    std::optional<std::uint64_t> next_tick() const noexcept { return return_at_; }

private:
    bool is_loaded() const noexcept { return state_ == MigrationState::kLoading || state_ == MigrationState::kArmed; }
    bool works() const noexcept { return is_loaded() || state_ == MigrationState::kMigrated; }
    MigrationActions load_if_possible() noexcept;
    MigrationActions on_seen_migrated(std::size_t path) noexcept;
    MigrationActions on_seen_armed(std::uint64_t now) noexcept;
    MigrationActions on_tick(std::uint64_t now) noexcept;
    MigrationActions on_asked(std::uint64_t now) noexcept;
    MigrationActions leave(MoveCause cause) noexcept;
    MigrationActions move_to(std::size_t path, MoveCause cause) noexcept;

    MigrationPatience patience_;
    std::size_t paths_;
    bool returns_;
    MigrationState state_;
    std::size_t current_ = 0;
    PathSet down_;
    std::uint64_t armed_since_ = 0;    // valid in kArmed
    bool confirmed_ = true;            // in kMigrated: the peer is on the same path
    std::optional<MoveCause> leaves_;  // moves if it is found to be armed
    bool wants_return_ = false;        // moves as soon as it is armed with the first path
    MoveCause cause_ = MoveCause::kHca;
    std::uint64_t moves_ = 0;
    std::optional<std::uint64_t> return_at_;  // when the hold is over
    std::optional<std::uint64_t> returned_;   // when it came back last, until the first path has failed again
    bool returning_ = false;                  // the move that is being made is a return
    std::uint32_t early_failures_ = 0;        // in a row
};

}  // namespace coop::path
