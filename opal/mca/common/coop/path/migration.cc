// SPDX-License-Identifier: BSD-3-Clause
//
//                 connected, or confirmed, and the next path is not down
//            kMigrated --------------------------------------------> kLoading
//               ^  ^                                                  |   |  seen
//               |  +-------- seen migrated, or forced ----------------+   v
//               +----------- the same ------------------------------- kArmed
//
//     kMigrated, refused a load ──► kUnable        any but kUnable, migration failed ──► kBroken
#include "coop/path/migration.h"

#include <algorithm>
#include <utility>

namespace coop::path {

using Do = MigrationDo;
using Is = MigrationState;
using On = MigrationEvent;

const char* name(MigrationState state) noexcept {
    switch (state) {
    case Is::kUnable: return "unable";
    case Is::kMigrated: return "migrated";
    case Is::kLoading: return "loading";
    case Is::kArmed: return "armed";
    case Is::kBroken: return "broken";
    }
    return "?";
}

const char* name(MigrationEvent event) noexcept {
    switch (event) {
    case On::kConnected: return "connected";
    case On::kLoaded: return "loaded";
    case On::kRefused: return "refused";
    case On::kForced: return "forced";
    case On::kSeenMigrated: return "seen migrated";
    case On::kSeenRearm: return "seen rearm";
    case On::kSeenArmed: return "seen armed";
    case On::kPathMigrated: return "path migrated";
    case On::kMigrationFailed: return "migration failed";
    case On::kConfirmed: return "confirmed";
    case On::kAsked: return "asked";
    case On::kTick: return "tick";
    }
    return "?";
}

const char* describe(MoveCause cause) noexcept {
    switch (cause) {
    case MoveCause::kHca: return "the HCA has given the path up, or followed the peer";
    case MoveCause::kPortDown: return "port error";
    case MoveCause::kReturn: return "its first path works again";
    case MoveCause::kAsked: return "congestion";
    }
    return "?";
}

MigrationActions Migration::on(MigrationEvent event, std::uint64_t now, std::size_t path) noexcept {
    switch (event) {
    case On::kConnected: return load_if_possible();
    case On::kLoaded:
        if (state_ != Is::kMigrated) return {};
        state_ = Is::kLoading;
        return MigrationActions().add(Do::kSend);
    case On::kRefused:
        leaves_.reset();
        returning_ = false;
        if (state_ == Is::kMigrated) state_ = Is::kUnable;
        return {};
    case On::kForced: {
        if (!is_loaded()) return {};
        const bool back = std::exchange(returning_, false);
        if (back) returned_ = now;
        return move_to(next(), back ? MoveCause::kReturn : leaves_.value_or(MoveCause::kAsked));
    }
    case On::kSeenMigrated: return on_seen_migrated(path);
    case On::kSeenRearm:
        leaves_.reset();
        if (state_ == Is::kArmed) state_ = Is::kLoading;
        return {};
    case On::kSeenArmed: return on_seen_armed(now);
    case On::kPathMigrated: return works() ? MigrationActions().add(Do::kLook) : MigrationActions();
    case On::kMigrationFailed:
        if (works()) state_ = Is::kBroken;
        return {};
    case On::kConfirmed:
        if (state_ == Is::kLoading) return MigrationActions().add(Do::kLook);
        if (state_ != Is::kMigrated) return {};
        confirmed_ = true;
        return load_if_possible();
    case On::kAsked: return on_asked(now);
    case On::kTick: return on_tick(now);
    }
    return {};
}

MigrationActions Migration::on_down(const PathSet& paths, std::uint64_t now) noexcept {
    down_ |= paths;
    if (paths[0]) {
        return_at_.reset();
        wants_return_ = false;
        if (returned_) early_failures_ = now - *returned_ < patience_.calm ? early_failures_ + 1 : 0;
        returned_.reset();
    }
    return paths[current_] ? leave(MoveCause::kPortDown) : MigrationActions();
}

MigrationActions Migration::on_active(const PathSet& paths, std::uint64_t now) noexcept {
    down_ &= ~paths;
    if (returns_ && paths[0] && current_ != 0 && works()) {
        const std::uint64_t hold = early_failures_ >= 32 ? patience_.longest_hold : patience_.hold << early_failures_;
        return_at_ = now + std::min(hold, patience_.longest_hold);
    }
    return paths[next()] ? load_if_possible() : MigrationActions();
}

MigrationActions Migration::load_if_possible() noexcept {
    const bool may = state_ == Is::kMigrated && confirmed_ && !down_[next()];
    return may ? MigrationActions().add(Do::kLoad) : MigrationActions();
}

MigrationActions Migration::on_seen_migrated(std::size_t path) noexcept {
    leaves_.reset();
    returning_ = false;
    if (!works() || path >= paths_) return {};
    if (path != current_) return move_to(path, MoveCause::kHca);
    if (state_ == Is::kMigrated) return {};
    state_ = Is::kMigrated;  // the HCA has dropped the alternate path
    confirmed_ = false;
    return MigrationActions().add(Do::kSend);
}

MigrationActions Migration::on_seen_armed(std::uint64_t now) noexcept {
    if (!is_loaded()) return {};
    if (state_ != Is::kArmed) armed_since_ = now;
    state_ = Is::kArmed;
    if (down_[next()]) {
        leaves_.reset();
        return {};
    }
    if (leaves_) return MigrationActions().add(Do::kForce);
    if (!wants_return_ || next() != 0) return {};
    returning_ = true;
    return MigrationActions().add(Do::kForce);
}

MigrationActions Migration::on_tick(std::uint64_t now) noexcept {
    if (!return_at_ || now < *return_at_) return {};
    return_at_.reset();
    wants_return_ = current_ != 0;
    return wants_return_ && is_loaded() ? MigrationActions().add(Do::kLook) : MigrationActions();
}

// A side may become armed earlier than its peer, which would then drop what comes by the other path, if an acknowledgement
// is lost. A move that nobody needs does not risk that.
MigrationActions Migration::on_asked(std::uint64_t now) noexcept {
    if (state_ == Is::kLoading && !down_[next()]) return MigrationActions().add(Do::kLook);
    return state_ == Is::kArmed && now >= armed_since_ + patience_.settle ? leave(MoveCause::kAsked)
                                                                          : MigrationActions();
}

// Whether it is armed must be asked first.
MigrationActions Migration::leave(MoveCause cause) noexcept {
    if (!is_loaded() || down_[next()]) return {};
    leaves_ = cause;
    return MigrationActions().add(Do::kLook);
}

MigrationActions Migration::move_to(std::size_t path, MoveCause cause) noexcept {
    current_ = path;
    cause_ = cause;
    ++moves_;
    state_ = Is::kMigrated;
    confirmed_ = false;
    leaves_.reset();
    if (current_ == 0) {
        wants_return_ = false;
        return_at_.reset();
    }
    return MigrationActions().add(Do::kTell).add(Do::kSend);
}

}  // namespace coop::path
