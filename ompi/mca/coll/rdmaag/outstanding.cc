// SPDX-License-Identifier: BSD-3-Clause
#include "outstanding.h"

#include <sched.h>

#include <mutex>

#include "coop/base/spin_lock.h"
#include "group.h"
#include "ompi/mca/shim/inside.h"

namespace coop::ag {
namespace {

using GroupList = List<Group, &Group::polled>;

// Continues calls, or removes a group. One thread at a time; it may come here again from a callback.
class Driving {
public:
    bool try_begin() noexcept { return !busy_.exchange(true, std::memory_order_acquire); }
    void begin() noexcept {
        while (!try_begin()) sched_yield();
    }
    void end() noexcept { busy_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> busy_{false};
};

struct Outstanding {
    Driving driving;
    SpinLock lock;  // of the rest
    GroupList groups;
    JobList kept;
    bool registered = false;
};

Outstanding& outstanding() noexcept {
    static auto& all = *new Outstanding;
    return all;
}

Group* first_group() noexcept {
    const std::lock_guard guard(outstanding().lock);
    return outstanding().groups.front();
}

// The group after this one, which is removed if it has no outstanding call.
Group* next_group(Group& group) noexcept {
    const std::lock_guard guard(outstanding().lock);
    Group* const next = outstanding().groups.next(&group);
    if (group.outstanding() == 0) outstanding().groups.remove(&group);
    return next;
}

void append(JobList& to, JobList& from) noexcept {
    while (Job* const job = from.pop_front()) to.push_back(job);
}

int poll_groups();

// The registration with Open MPI, under the lock.
void register_if_needed() noexcept {
    Outstanding& all = outstanding();
    const bool needed = !all.groups.empty() || !all.kept.empty();
    if (needed == all.registered) return;
    all.registered = needed;
    if (needed) opal_progress_register(poll_groups);
    else opal_progress_unregister(poll_groups);
}

int finish(JobList& done) noexcept {
    int jobs = 0;
    for (; Job* const job = done.pop_front(); ++jobs) job->on_done(*job);
    return jobs;
}

// Requests complete at the end: their callbacks may start calls and free communicators.
int poll_groups() {
    const async::Polling turn(handler().get());
    Outstanding& all = outstanding();
    if (!all.driving.try_begin()) return 0;
    JobList done;
    for (Group* group = first_group(); group; group = next_group(*group)) group->drive(done);
    {
        const std::lock_guard guard(all.lock);
        append(done, all.kept);
        register_if_needed();
    }
    all.driving.end();
    return finish(done);
}

}  // namespace

void poll_for(Group& group) noexcept {
    const std::lock_guard guard(outstanding().lock);
    if (!group.polled.linked()) outstanding().groups.push_back(&group);
    register_if_needed();
}

void stop_polling_for(Group& group) noexcept {
    Outstanding& all = outstanding();
    {
        const std::lock_guard guard(all.lock);
        if (!group.polled.linked()) return;
    }
    all.driving.begin();
    {
        const std::lock_guard guard(all.lock);
        if (group.polled.linked()) all.groups.remove(&group);
    }
    all.driving.end();
}

void finish_when_polling(Job& job) noexcept {
    const std::lock_guard guard(outstanding().lock);
    outstanding().kept.push_back(&job);
}

void stop_polling() noexcept {
    if (outstanding().registered) opal_progress_unregister(poll_groups);
    outstanding().registered = false;
}

}  // namespace coop::ag
