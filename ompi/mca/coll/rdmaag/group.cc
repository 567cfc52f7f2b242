// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of a group: their order, the window, their end.
#include "group.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>

#include "coop/match/contexts.h"
#include "diagnose.h"
#include "running.h"

namespace coop::ag {
namespace {

match::Contexts<Group> groups, groups_of_leaders;

match::Contexts<Group>& groups_like(std::uint32_t context) noexcept {
    return context & Members::kContextOfLeaders ? groups_of_leaders : groups;
}
// Null: packets of these processes are refused.
void publish(std::uint32_t context, Group* group) noexcept {
    groups_like(context).publish(static_cast<std::uint16_t>(context), group);
}

}  // namespace

std::unique_ptr<Group> Group::create(Members members, std::size_t short_bytes) noexcept {
    const std::uint32_t processes = members.processes();
    const std::uint32_t slots = coll::count_steps(coll::Algorithm::kBruck, processes);
    auto inbox = coll::Inbox::create(processes, slots, short_bytes);
    if (!inbox) return nullptr;
    std::unique_ptr<Group> group(new (std::nothrow) Group(std::move(members), std::move(inbox)));
    try {
        if (group) group->staging_.resize(sizeof(coll::Packet) + std::max(short_bytes, coll::kMaxHandleBytes));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    if (!group || !group->running_ || !group->buffers_) return nullptr;
    group->agree(short_bytes);
    publish(group->members_.context(), group.get());
    return group;
}

Group::Group(Members members, std::unique_ptr<coll::Inbox> inbox) noexcept
    : members_(std::move(members)), inbox_(std::move(inbox)), buffers_(BufferRow::create(members_)),
      running_(new (std::nothrow) Running[coll::Inbox::kWindow]) {
    for (std::uint32_t i = 0; running_ && i < coll::Inbox::kWindow; ++i) running_[i].group = this;
}

Group* Group::find(std::uint32_t context) noexcept {
    const std::uint32_t id = context & ~Members::kContextOfLeaders;
    return id < groups.kIds ? groups_like(context).find(static_cast<std::uint16_t>(id)) : nullptr;
}

Group::~Group() {
    stop_polling_for(*this);
    while (followers_.load(std::memory_order_acquire) > 0) sched_yield();
    publish(members_.context(), nullptr);
}

bool Group::exchange_buffers(std::uint64_t step_bytes) noexcept {
    Job none(nullptr, {0, 0}, coll::Algorithm::kRing);  // these packets belong to no call
    Running& call = running_[0];
    call.job = &none;
    const auto send_now = [&](mca_bml_base_btl_t& btl, coll::Packet packet,
                              const mca_btl_base_registration_handle_t* handle) {
        packet.kind = coll::Kind::kBuffer;
        packet.context = members_.context();
        packet.source = members_.rank();
        if (handle) std::memcpy(staging_.data() + sizeof packet, handle, packet.parts);
        while (!send(call, btl, packet, {})) opal_progress();
    };
    buffers_->greet(send_now);
    while (call.under_way.load(std::memory_order_acquire) > 0) opal_progress();
    buffers_->offer(step_bytes, send_now);
    while (call.under_way.load(std::memory_order_acquire) > 0 || !buffers_->all_have_offered()) opal_progress();
    const bool works = buffers_->accept();
    inbox_->use(buffers_->received());
    call.job = nullptr;
    return works;
}

void Group::gather(std::byte* memory, const coll::Blocks& blocks, const coll::Way& way) noexcept {
    const Inside inside;
    if (way.rings > 1) return gather_by_rings(memory, blocks, way.rings);
    Job job(memory, blocks, *way.algorithm, way.short_part);
    job.in_packets = way.packets;
    if (outstanding() == 0 && baton_.take(process.threads)) return gather_alone(job);
    enqueue(job);
    wait_for(job);
}

// Each ring is a call of its own, with its part of each block and its rail. While one waits for its next step, the others
// keep their rails busy. (Qian, Afsahi: RDMA-based and SMP-aware multi-port all-gather on multi-rail QsNetII SMP
// clusters, ICPP 2007)
void Group::gather_by_rings(std::byte* memory, const coll::Blocks& blocks, std::uint32_t rings) noexcept {
    std::array<std::optional<Job>, coll::kMaxRings> jobs;
    for (std::uint32_t ring = 0; ring < rings; ++ring) {
        Job& job = jobs[ring].emplace(memory, blocks.of_part(ring, rings), coll::Algorithm::kRing);
        job.lane = static_cast<std::uint8_t>(ring);
        enqueue(job);
    }
    for (std::uint32_t ring = 0; ring < rings; ++ring) wait_for(*jobs[ring]);
}

void Group::wait_for(const Job& job) noexcept {
    for (;;) {
        drive();
        if (job.done.load(std::memory_order_acquire)) return;
        opal_progress();
    }
}

void Group::check_inbox(std::uint32_t lap) const noexcept {
    if (inbox_->length_differs()) lengths_differ(lap);
    if (inbox_->is_damaged()) damaged_buffer(lap);
}

// No other call is in progress, and the program makes none before this one returns.
void Group::gather_alone(Job& job) noexcept {
    job.lap = ++lap_;
    Running& call = begin(job);
    while (!call.call->advance()) {
        check_inbox(job.lap);
        opal_progress();
    }
    JobList none;
    end(call, none);
    while (!baton_.pass(process.threads)) {
    }
}

void Group::start(Job& job) noexcept {
    outstanding_.fetch_add(1, std::memory_order_relaxed);
    poll_for(*this);
    enqueue(job);
    drive();
}

void Group::enqueue(Job& job) noexcept {
    job.lap = ++lap_;
    std::unique_lock guard(lock_, std::defer_lock);
    if (process.threads) guard.lock();
    waiting_.push_back(&job);
    any_waiting_.store(true, std::memory_order_relaxed);
}

// Null: none, or the window is full.
Job* Group::next_to_begin() noexcept {
    if (!any_waiting_.load(std::memory_order_relaxed)) return nullptr;
    std::unique_lock guard(lock_, std::defer_lock);
    if (process.threads) guard.lock();
    if (waiting_.empty() || !inbox_->may_open(waiting_.front()->lap)) return nullptr;
    Job* const job = waiting_.pop_front();
    any_waiting_.store(!waiting_.empty(), std::memory_order_relaxed);
    return job;
}

Group::Running& Group::begin(Job& job) noexcept {
    Running& call = running_[job.lap % coll::Inbox::kWindow];
    call.job = &job;
    begun_ = job.lap;
    call.call.emplace(call, *inbox_, coll::Target{job.memory, job.blocks, job.algorithm, members_.rank(), order_},
                      job.lap, (job.on_done ? packet_bytes_ : short_bytes_) / job.short_part);
    return call;
}

// The job may be gone after this.
void Group::end(Running& call, JobList& done) noexcept {
    release_memory(call);
    Job& job = *call.job;
    call.job = nullptr;
    if (job.on_done) done.push_back(&job);
    else job.done.store(true, std::memory_order_release);
}

// Returns true if a call has ended, so that another one may begin.
bool Group::advance(JobList& done) noexcept {
    while (Job* const job = next_to_begin()) begin(*job);
    bool ended = false;
    for (std::uint32_t lap = inbox_->completed() + 1; lap != begun_ + 1; ++lap) {
        Running& call = running_[lap % coll::Inbox::kWindow];
        if (!call.job) continue;
        if (call.call->advance()) {
            end(call, done);
            ended = true;
        } else {
            check_inbox(lap);
        }
    }
    return ended;
}

void Group::drive(JobList& done) noexcept {
    const bool threads = process.threads;
    if (!baton_.take(threads)) return;
    do {
        while (advance(done)) {
        }
    } while (!baton_.pass(threads));
}

void Group::drive() noexcept {
    JobList done;
    drive(done);
    end_all(done);
}

}  // namespace coop::ag
