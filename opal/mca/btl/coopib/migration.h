// SPDX-License-Identifier: BSD-3-Clause
//
// Automatic path migration (APM) of the rails' queue pairs. path/alternates.h chooses the alternate paths,
// path/migration.h decides; this carries it out over verbs.
//
//     connected ─► begin(): load ─────────────────────────────┐
//     HCA's event ─► thread of Connections ─► on_event() ─────┼─► load, ask, move, empty write ─► Moved ─► news ─► line
//     empty write has completed ─► application ─► on_pulse() ─┘
//
// A rail that moves keeps its queue pair, and the HCA repeats what was under way: nothing is lost, and atomic operations
// are executed once. Failover (failover.h) sees nothing of it. It takes over where a queue pair is not armed, or its
// alternate path fails, too: then the queue pair reports an error as without APM.
//
// When a port goes down, the thread moves the armed queue pairs of this port, also while the application computes. The
// empty write (Rail::pulse) lets the peer's HCA follow at once.
//
// With apm_balance, a queue pair also leaves a path that is congested (path/balance.h): balance() measures in each
// completion, and asks the machine to move.
//
// Threading: any thread; this has its own lock, which is taken last. The thread of Connections uses only the queue pair of
// a rail. Ownership: a rail owns its MigratingQp, which must be destroyed before the queue pair is stopped. Errors: a queue
// pair without an alternate path works as without APM.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "coop/path/alternates.h"
#include "coop/path/migration.h"
#include "coop/rail/verbs/alternate_path.h"
#include "coop/rail/verbs/async_events.h"

struct mca_btl_base_endpoint_t;

namespace coop::ib {

struct Module;
struct Rail;
struct Work;
class Migrations;

// A queue pair has moved to a path.
struct Moved {
    std::uint32_t hca = 0, qp_number = 0;
    std::uint8_t port = 0, path_bits = 0;
    std::size_t path = 0;  // its place in the ring
    path::MoveCause cause = path::MoveCause::kHca;
};

// A queue pair that migrates. All members are under the lock of Migrations.
struct MigratingQp {
    MigratingQp(Migrations& all, ibv_qp* queue_pair, std::uint32_t its_hca) noexcept
        : owner(all), qp(queue_pair), hca(its_hca), number(queue_pair->qp_num) {}
    ~MigratingQp();
    MigratingQp(const MigratingQp&) = delete;
    MigratingQp& operator=(const MigratingQp&) = delete;

    Migrations& owner;
    ibv_qp* qp;
    std::uint32_t hca, number;
    std::vector<rail::AlternatePath> ring;
    path::Migration machine;
    void* pulse = nullptr;     // Rail::pulse; null: the rail is not part of a channel yet
    bool pulsing = false;      // an empty write is under way
    bool wants_pulse = false;  // another one is to follow, or the first one as soon as `pulse` is set
};

class Migrations {
public:
    // The queue pair of the rail is in RTS: loads its first alternate path, or sets Rail::no_alternate.
    void begin(const Module& m, Rail& rail, const path::PathChoice& path, const path::PortList& remote,
               std::uint8_t timeout);
    // The rail is part of a channel, so that the application takes its completions.
    void adopt(Rail& rail);
    void on_event(std::uint32_t hca, const rail::HcaEvent& event, std::uint64_t now);
    // Rail::pulse has completed.
    void on_pulse(Rail& rail, std::uint64_t now);
    void on_tick(std::uint64_t now);
    std::optional<std::uint64_t> next_tick() const noexcept;
    // Moves the queue pair to its alternate path, if it is armed.
    void leave(Rail& rail, std::uint64_t now);
    // Asks the HCA.
    bool is_armed(Rail& rail, std::uint64_t now);

    std::vector<Moved> take_moved();

private:
    friend struct MigratingQp;
    void carry_out(MigratingQp& qp, const path::MigrationActions& actions, std::uint64_t now);
    void carry_out(MigratingQp& qp, path::MigrationDo action, std::uint64_t now);
    void look(MigratingQp& qp, std::uint64_t now);
    static void send(MigratingQp& qp) noexcept;
    void set_first_tick() noexcept;
    void on_port(std::uint32_t hca, std::uint32_t port, bool works, std::uint64_t now);

    mutable std::mutex lock_;
    std::unordered_map<std::uint64_t, MigratingQp*> all_;  // by HCA and number of the queue pair
    std::vector<Moved> moved_;
    // When on_tick() has to look next, at the latest; it costs nothing before. Written under the lock.
    std::atomic<std::uint64_t> first_tick_{UINT64_MAX};
};

// Writes into the records of this process's ports which alternate paths it wants.
void want_alternates(Module& m);
// Whether some rail to this peer has an alternate path.
bool has_alternates(const Module& m, const path::PortList& remote);
// Tells the user of a rail without an alternate path.
void check_alternates(const Module& m, const mca_btl_base_endpoint_t& endpoint);

// Under Module::lock.
void note_moved(Module& m, const Moved& moved);
void on_pulse(Module& m, Rail& rail);
// A request is posted on a rail that has a Balance.
void note_posted(Module& m, Rail& rail, const Work& work);
// With apm_balance: a request of the rail has completed. `now`: when it was found.
void balance(Module& m, Rail& rail, const Work& work, std::uint64_t now);

}  // namespace coop::ib
