// SPDX-License-Identifier: BSD-3-Clause
#include "group.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <optional>

#include "coop/extension/tags.h"
#include "coop/match/contexts.h"
#include "diagnose.h"
#include "inside.h"
#include "outstanding.h"
#include "process.h"
#include "transports.h"

namespace coop::ag {
namespace {

constexpr mca_btl_base_tag_t kTag = kAllgatherTag;
static_assert(kTag >= MCA_BTL_TAG_USR && kTag < MCA_BTL_TAG_MAX);
constexpr std::uint32_t kFlags = MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
constexpr std::size_t kMaxData = 64 * 1024;  // bytes of a packet of a long step
constexpr std::uint32_t kWindow = 16;        // such packets under way: a transport could buffer the whole step

match::Contexts<Group> groups, groups_of_leaders;

match::Contexts<Group>& groups_like(std::uint32_t context) noexcept {
    return context & Members::kContextOfLeaders ? groups_of_leaders : groups;
}
// Null: packets of these processes are refused.
void publish(std::uint32_t context, Group* group) noexcept {
    groups_like(context).publish(static_cast<std::uint16_t>(context), group);
}
Group* find_group(std::uint32_t context) noexcept {
    const std::uint32_t id = context & ~Members::kContextOfLeaders;
    return id < groups.kIds ? groups_like(context).find(static_cast<std::uint16_t>(id)) : nullptr;
}

constexpr Fault fault_of(coll::Kind kind) noexcept {
    switch (kind) {
    case coll::Kind::kShort: return Fault::kCorruptMatch;
    case coll::Kind::kAnnounce:
    case coll::Kind::kBuffer: return Fault::kCorruptRts;
    case coll::Kind::kData: return Fault::kCorruptFrag;
    case coll::Kind::kLanded: break;
    }
    return Fault::kCorruptFin;
}

// In its turn the handler uses only transports that take turns with it; the application's next poll uses the others.
bool has_to_wait(const mca_btl_base_module_t& btl) noexcept { return handler().is_handler() && !extension_of(btl); }

void end_all(JobList& done) noexcept {
    while (Job* const job = done.pop_front()) job->on_done(*job);
}

void set_parts(void* packet, std::uint32_t parts) noexcept {
    auto& notice = *static_cast<coll::Packet*>(packet);
    notice.parts = parts;
    coll::seal(notice);
}

extern "C" void mca_coll_rdmaag_on_packet(mca_btl_base_module_t* btl, mca_btl_base_tag_t,
                                          mca_btl_base_descriptor_t* descriptor, void*) {
    const async::Polling turn(handler().get());
    const mca_btl_base_segment_t& segment = *descriptor->des_segments;
    coll::Packet packet{};
    const bool whole = segment.seg_len >= sizeof packet;
    if (whole) std::memcpy(&packet, segment.seg_addr.pval, sizeof packet);
    const char* why = whole ? coll::find_damage(packet, segment.seg_len) : "length";
    Group* group = nullptr;
    if (!why) {
        group = find_group(packet.context);
        why = group ? group->on_packet(packet, static_cast<std::byte*>(segment.seg_addr.pval) + sizeof packet, btl)
                    : "context id";
    }
    if (why) wrong_packet(packet, whole, why);
}

}  // namespace

// A put, or what is left of it: its notice, unless the transport sends that with the data; or its data if it failed.
struct Group::Put {
    enum State : int { kPending, kDone, kFailed };
    Put(Running& of, mca_bml_base_btl_t& transport, std::uint32_t to_rank, std::uint32_t step_number,
        std::uint64_t at_offset, const coll::Piece& what) noexcept
        : call(of), btl(transport), to(to_rank), step(step_number), at(at_offset), piece(what) {}
    Running& call;
    mca_bml_base_btl_t& btl;  // sends the notice, too, so that it cannot overtake the data
    std::uint32_t to, step;
    std::uint64_t at;
    coll::Piece piece;
    std::atomic<int> state{kPending};
    bool tells = false;  // the transport sends the notice
};

// A call in progress, which is the Wire of its coll::Call. The memory of the object is used by later calls, so a call
// allocates nothing as a rule.
struct Group::Running {
    Group* group = nullptr;
    Job* job = nullptr;  // null: none
    std::vector<Registered> registered;
    std::list<Put> puts;
    std::atomic<std::uint32_t> under_way{0};  // packets in descriptors of a transport
    std::optional<coll::Call<Running>> call;

    bool announce(std::uint32_t to, std::uint32_t number) noexcept { return group->announce(*this, to, number); }
    bool send_short(std::uint32_t to, std::uint32_t step, const coll::Pieces& pieces) noexcept {
        return group->send_short(*this, to, step, pieces);
    }
    std::uint64_t send_long(std::uint32_t to, std::uint32_t step, std::uint64_t at, const coll::Piece& piece,
                            const coll::Announcement& there) noexcept {
        return group->send_long(*this, to, step, at, piece, there);
    }
    bool send_empty(std::uint32_t to, std::uint32_t step) noexcept { return group->send_empty(*this, to, step); }
    bool settle() noexcept {
        return (puts.empty() && under_way.load(std::memory_order_acquire) == 0) || group->settle(*this);
    }
};

// A callback of a transport in which something happens that a call waits for. The application may be computing, so at
// the end of the scope this thread continues the non-blocking calls. The group stays until then.
class Group::Following {
public:
    explicit Following(Group& group) noexcept : group_(has_interrupts() ? &group : nullptr) {
        if (group_) group_->followers_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Following() {
        if (!group_) return;
        JobList done;
        // Here, because a call may have begun since the packet came, and not have seen it.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (group_->outstanding() > 0) group_->drive(done);
        group_->followers_.fetch_sub(1, std::memory_order_release);
        end_all(done);
    }
    Following(const Following&) = delete;
    Following& operator=(const Following&) = delete;

private:
    Group* const group_;  // null: nothing to do
};

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
    group->short_bytes_ = short_bytes;
    publish(group->members_.context(), group.get());
    return group;
}

Group::Group(Members members, std::unique_ptr<coll::Inbox> inbox) noexcept
    : members_(std::move(members)), inbox_(std::move(inbox)), buffers_(BufferRow::create(members_)),
      running_(new (std::nothrow) Running[coll::Inbox::kWindow]) {
    for (std::uint32_t i = 0; running_ && i < coll::Inbox::kWindow; ++i) running_[i].group = this;
}

Group::~Group() {
    stop_polling_for(*this);
    while (followers_.load(std::memory_order_acquire) > 0) sched_yield();
    publish(members_.context(), nullptr);
}

void Group::exchange_buffers() noexcept {
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
    buffers_->offer(short_bytes_, send_now);
    while (call.under_way.load(std::memory_order_acquire) > 0 || !buffers_->all_have_offered()) opal_progress();
    buffers_->accept();
    inbox_->use(buffers_->received());
    call.job = nullptr;
}

void Group::gather(std::byte* memory, const coll::Blocks& blocks, coll::Algorithm algorithm,
                   std::uint32_t short_part) noexcept {
    const Inside inside;
    Job job(memory, blocks, algorithm, short_part);
    if (outstanding() == 0 && baton_.take(process.threads)) return gather_alone(job);
    enqueue(job);
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

const char* Group::on_packet(const coll::Packet& packet, const void* data, mca_btl_base_module_t* btl) noexcept {
    if (packet.source >= members_.processes()) return "source";
    if (packet.kind == coll::Kind::kBuffer) return buffers_->on_packet(packet, data, btl);
    const Following following(*this);
    return inbox_->on_packet(packet, data, btl);
}

// --- calls ----------------------------------------------------------------------------------------------------------

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
    call.call.emplace(call, *inbox_, coll::Target{job.memory, job.blocks, job.algorithm, members_.rank()}, job.lap,
                      short_bytes_ / job.short_part);
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

// --- memory ---------------------------------------------------------------------------------------------------------

// The whole buffer is registered once per call and transport, for all partners (section 3.4).
const Group::Registered& Group::registered(Running& call, mca_bml_base_btl_t& btl) noexcept {
    for (const Registered& each : call.registered)
        if (each.btl == btl.btl) return each;
    Registered fresh{btl.btl, nullptr, true};
    if (btl.btl->btl_register_mem) {
        if (!process.faults.hit(Fault::kRegister)) {
            fresh.handle = btl.btl->btl_register_mem(btl.btl, MCA_BTL_ENDPOINT_ANY, call.job->memory,
                                                     call.job->blocks.bytes(), kAccess);
            process.count(Count::kRegistrations);
        }
        fresh.usable = fresh.handle != nullptr;
        if (!fresh.usable) process.count(Count::kRefusedRegistrations);
    }
    call.registered.push_back(fresh);
    return call.registered.back();
}

void Group::release_memory(Running& call) noexcept {
    for (const Registered& each : call.registered)
        if (each.handle) each.btl->btl_deregister_mem(each.btl, each.handle);
    call.registered.clear();
}

// --- packets --------------------------------------------------------------------------------------------------------

coll::Packet Group::packet_of(const Running& call, coll::Kind kind, std::uint32_t step) const noexcept {
    coll::Packet packet{};
    packet.kind = kind;
    packet.context = members_.context();
    packet.source = members_.rank();
    packet.lap = call.job->lap;
    packet.step = step;
    return packet;
}

// Sends the packet and the pieces of the call's memory after it. The bytes of an announced handle lie in the staging buffer
// already. False: the transport has no room just now.
bool Group::send(Running& call, mca_bml_base_btl_t& btl, coll::Packet& packet, const coll::Pieces& pieces) noexcept {
    if (has_to_wait(*btl.btl)) return false;
    const bool announces = packet.kind == coll::Kind::kAnnounce || packet.kind == coll::Kind::kBuffer;
    const std::size_t following = announces ? packet.parts : pieces.bytes();
    const std::size_t bytes = sizeof packet + following;
    coll::seal(packet);
    if (process.faults.armed()) [[unlikely]] {
        if (process.faults.hit(Fault::kBusy)) return false;
        process.faults.corrupt(fault_of(packet.kind), &packet, sizeof packet);
    }
    const auto fill = [&](std::byte* to) {
        std::memcpy(to, &packet, sizeof packet);
        to += sizeof packet;
        if (announces && to != staging_.data() + sizeof packet)
            std::memcpy(to, staging_.data() + sizeof packet, following);
        for (const coll::Piece& piece : pieces) {
            std::memcpy(to, call.job->memory + piece.offset, piece.bytes);
            to += piece.bytes;
        }
    };
    const BtlExtension* const urgent = call.job->urgent ? extension_of(*btl.btl) : nullptr;
    if (bytes <= staging_.size() && btl.btl->btl_sendi && !process.faults.hit(Fault::kSendi)) {
        static opal_convertor_t no_payload{};  // some transports look at its flags even so
        fill(staging_.data());
        if (urgent ? urgent->send_urgent(btl.btl, btl.btl_endpoint, staging_.data(), bytes, kTag)
                   : mca_bml_base_sendi(&btl, &no_payload, staging_.data(), bytes, 0, MCA_BTL_NO_ORDER, kFlags, kTag,
                                        nullptr) == OMPI_SUCCESS)
            return true;
    }
    mca_btl_base_descriptor_t* descriptor = nullptr;
    if (!process.faults.hit(Fault::kAlloc))
        mca_bml_base_alloc(&btl, &descriptor, MCA_BTL_NO_ORDER, bytes, kFlags | MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    if (!descriptor) return false;
    fill(static_cast<std::byte*>(descriptor->des_segments->seg_addr.pval));
    if (urgent) urgent->make_urgent(btl.btl, descriptor);
    descriptor->des_cbfunc = on_sent;
    descriptor->des_cbdata = &call;
    call.under_way.fetch_add(1, std::memory_order_relaxed);
    const int rc = mca_bml_base_send(&btl, descriptor, kTag);
    if (rc >= 0) return true;
    call.under_way.fetch_sub(1, std::memory_order_relaxed);
    mca_bml_base_free(&btl, descriptor);
    if (!is_shortage(rc)) transport_failed(*btl.btl, "send", rc);
    return false;
}

void Group::on_sent(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t* descriptor,
                    int status) {
    // The partner would wait for this packet for ever.
    if (status < 0) transport_failed(*btl, "send", status);
    const async::Polling turn(handler().get());
    Running& call = *static_cast<Running*>(descriptor->des_cbdata);
    const Following following(*call.group);
    call.under_way.fetch_sub(1, std::memory_order_release);
}

bool Group::announce(Running& call, std::uint32_t to, std::uint32_t number) noexcept {
    mca_bml_base_endpoint_t& there = members_.endpoint(to);
    mca_bml_base_btl_t* const puts = puts_to(there);
    if (puts && has_to_wait(*puts->btl)) return false;
    coll::Packet packet = packet_of(call, coll::Kind::kAnnounce, number);
    packet.at = reinterpret_cast<std::uintptr_t>(call.job->memory);
    if (puts) {
        const Registered& memory = registered(call, *puts);
        packet.bytes = memory.usable;
        if (memory.handle) {
            packet.parts = static_cast<std::uint32_t>(puts->btl->btl_registration_handle_size);
            std::memcpy(staging_.data() + sizeof packet, memory.handle, packet.parts);
        }
    }
    // It travels by the transport that the handle belongs to, so that the other side knows it.
    if (!send(call, puts ? *puts : *packets_to(there), packet, {})) return false;
    process.count(Count::kAnnouncements);
    return true;
}

bool Group::send_short(Running& call, std::uint32_t to, std::uint32_t step, const coll::Pieces& pieces) noexcept {
    // A write into a buffer interrupts nobody.
    switch (call.job->urgent ? BufferRow::Put::kNever
                             : buffers_->put(to, step, call.job->lap, call.job->memory, pieces)) {
    case BufferRow::Put::kStarted: break;
    case BufferRow::Put::kBusy: return false;
    case BufferRow::Put::kNever:
        if (!send_short_packet(call, to, step, pieces)) return false;
    }
    process.count(Count::kShortSteps);
    return true;
}

bool Group::send_short_packet(Running& call, std::uint32_t to, std::uint32_t step,
                              const coll::Pieces& pieces) noexcept {
    coll::Packet packet = packet_of(call, coll::Kind::kShort, step);
    packet.bytes = pieces.bytes();
    return send(call, *packets_to(members_.endpoint(to)), packet, pieces);
}

bool Group::send_notice(Running& call, mca_bml_base_btl_t& btl, std::uint32_t step, std::uint64_t bytes) noexcept {
    coll::Packet packet = packet_of(call, coll::Kind::kLanded, step);
    packet.bytes = bytes;
    packet.parts = 1;
    return send(call, btl, packet, {});
}

bool Group::send_empty(Running& call, std::uint32_t to, std::uint32_t step) noexcept {
    return send_notice(call, *packets_to(members_.endpoint(to)), step, 1);
}

std::uint64_t Group::send_data(Running& call, std::uint32_t to, std::uint32_t step, std::uint64_t at,
                               const coll::Piece& piece) noexcept {
    if (call.under_way.load(std::memory_order_relaxed) >= kWindow) return 0;
    mca_bml_base_btl_t& btl = *packets_to(members_.endpoint(to));
    const std::uint64_t most = std::min(kMaxData, btl.btl->btl_max_send_size - sizeof(coll::Packet));
    coll::Packet packet = packet_of(call, coll::Kind::kData, step);
    packet.bytes = std::min(piece.bytes, most);
    packet.at = at;
    coll::Pieces pieces;
    pieces.add({piece.offset, packet.bytes});
    if (!send(call, btl, packet, pieces)) return 0;
    process.count(Count::kDataPackets);
    return packet.bytes;
}

// --- puts -----------------------------------------------------------------------------------------------------------

std::uint64_t Group::send_long(Running& call, std::uint32_t to, std::uint32_t step, std::uint64_t at,
                               const coll::Piece& piece, const coll::Announcement& there) noexcept {
    mca_bml_base_btl_t* const btl = there.writable ? mca_bml_base_btl_array_find(
                                                         &members_.endpoint(to).btl_rdma,
                                                         static_cast<mca_btl_base_module_t*>(there.transport))
                                                   : nullptr;
    if (btl && has_to_wait(*btl->btl)) return 0;
    const bool puts = btl && may_put(members_.endpoint(to), *btl) &&
                      there.handle_bytes == btl->btl->btl_registration_handle_size;
    if (!puts || process.faults.hit(Fault::kPut)) return send_data(call, to, step, at, piece);
    const Registered& memory = registered(call, *btl);
    const std::uint64_t limit = btl->btl->btl_put_limit, bytes = limit ? std::min(piece.bytes, limit) : piece.bytes;
    std::byte* const local = call.job->memory + piece.offset;
    const std::uint64_t remote = there.address + piece.offset;
    if (!memory.usable || !is_aligned(*btl->btl, reinterpret_cast<std::uintptr_t>(local), remote, bytes))
        return send_data(call, to, step, at, piece);
    if (process.faults.hit(Fault::kPutBusy)) return 0;

    Put& put = call.puts.emplace_back(call, *btl, to, step, at, coll::Piece{piece.offset, bytes});
    // Open MPI takes the handle without const.
    auto* handle = reinterpret_cast<mca_btl_base_registration_handle_t*>(
        const_cast<unsigned char*>(there.handle.data()));
    const int rc = start(put, *btl, bytes == piece.bytes, local, remote, memory.handle,
                         there.handle_bytes ? handle : nullptr);
    if (rc == OMPI_SUCCESS) {
        process.count(Count::kPuts);
        return bytes;
    }
    call.puts.pop_back();
    return is_shortage(rc) ? 0 : send_data(call, to, step, at, piece);
}

// A transport with an extension sends the notice itself, as a rider of each part of the put: then the receiver goes on
// although this process has not noticed the end of the put. That is possible for a whole piece only, because the
// receiver counts the parts by piece.
int Group::start(Put& put, mca_bml_base_btl_t& btl, bool to_the_end, void* local, std::uint64_t remote,
                 mca_btl_base_registration_handle_t* local_handle,
                 mca_btl_base_registration_handle_t* remote_handle) noexcept {
    const BtlExtension* const extension = extension_of(*btl.btl);
    if (!extension)
        return mca_bml_base_put(&btl, local, remote, local_handle, remote_handle, put.piece.bytes, 0, MCA_BTL_NO_ORDER,
                                on_put_done, &put);
    // The second piece of a step is the beginning of the memory.
    const bool first = put.at == 0, second = put.at > 0 && put.piece.offset == 0;
    coll::Packet notice = packet_of(put.call, coll::Kind::kLanded, put.step);
    notice.bytes = put.piece.bytes;
    notice.parts = 1;
    notice.at = second ? 1 : 0;
    coll::seal(notice);
    Rider rider{};
    static_assert(sizeof notice <= sizeof rider.packet);
    std::memcpy(rider.packet, &notice, sizeof notice);
    rider.bytes = sizeof notice;
    rider.tag = kTag;
    rider.set_parts = set_parts;
    RdmaOptions options;
    options.marker = sched::Marker::kCollective;
    options.rider = to_the_end && (first || second) ? &rider : nullptr;
    const int rc = extension->put(btl.btl, btl.btl_endpoint, local, remote, local_handle, remote_handle,
                                  put.piece.bytes, options, on_put_done, &put);
    put.tells = rc == OMPI_SUCCESS && options.rider && rider.taken;
    return rc;
}

void Group::on_put_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, mca_btl_base_registration_handle_t*,
                        void*, void* put, int status) {
    const async::Polling turn(handler().get());
    Put& done = *static_cast<Put*>(put);
    const Following following(*done.call.group);
    done.state.store(status == OMPI_SUCCESS ? Put::kDone : Put::kFailed, std::memory_order_release);
}

// Sends the notice of a complete put, or the data of a failed one. Returns true if nothing is left to do.
bool Group::settle(Put& put) noexcept {
    switch (put.state.load(std::memory_order_acquire)) {
    case Put::kDone: return put.tells || send_notice(put.call, put.btl, put.step, put.piece.bytes);
    case Put::kFailed:
        // Its notice may have arrived, so the data cannot be sent again.
        if (put.tells) transport_failed(*put.btl.btl, "put", OMPI_ERROR);
        while (put.piece.bytes > 0) {
            const std::uint64_t taken = send_data(put.call, put.to, put.step, put.at, put.piece);
            if (taken == 0) return false;
            put.at += taken;
            put.piece.offset += taken;
            put.piece.bytes -= taken;
        }
        return true;
    default: return false;
    }
}

bool Group::settle(Running& call) noexcept {
    call.puts.remove_if([this](Put& put) { return settle(put); });
    return call.puts.empty() && call.under_way.load(std::memory_order_acquire) == 0;
}

// --- the process ----------------------------------------------------------------------------------------------------

bool receive_packets() noexcept {
    static const bool registered = [] {
        if (!pml_uses_btls() || !mca_bml.bml_register) return false;
        look_up_extensions();
        return mca_bml.bml_register(kTag, mca_coll_rdmaag_on_packet, nullptr) == OMPI_SUCCESS;
    }();
    return registered;
}

std::size_t longest_packet(ompi_communicator_t& comm, std::uint32_t rank) noexcept {
    mca_bml_base_endpoint_t* const there = mca_bml_base_get_endpoint(
        ompi_comm_peer_lookup(&comm, static_cast<int>(rank)));
    const mca_bml_base_btl_t* const btl = there ? packets_to(*there) : nullptr;
    return btl ? btl->btl->btl_eager_limit : 0;
}

}  // namespace coop::ag
