// SPDX-License-Identifier: BSD-3-Clause
//
// Long puts and gets that the target has to take part in, as messages of the PML. A record asks the target to receive
// or to send the block; the PML moves it as any long message, for example with the CPUs of both processes of a node.
//
//     put:  record, isend ─────────► irecv; answer when it is complete ─► the operation has ended
//     get:  irecv, record ─────────► isend ─► the irecv is complete: the operation has ended
//
// A record is executed in a callback of the transport, which must not call the PML. So the target only notes it
// (on_block_wanted()), and starts its part in the next round of progress (poll_windows(), progress_messages()).
#include <algorithm>
#include <utility>

#include "diagnose.h"
#include "frames.h"
#include "ompi/mca/pml/pml.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

// Messages between two processes under way, of one origin in one window. The target has to keep what it is asked for.
constexpr std::uint32_t kMostMessages = 64;

// The origin chooses the tag. Messages from A to B are puts of A and gets of B, so two processes choose tags for the
// same direction. To keep these apart, tags of puts are even and those of gets are odd.
constexpr std::uint32_t kTags = 1u << 20;
constexpr std::uint32_t tag_of(std::uint32_t number, bool puts) noexcept { return number * 2 % kTags + (puts ? 0 : 1); }

void check(int rc, const char* operation) {
    if (rc != OMPI_SUCCESS) message_failed(operation, rc);
}

ompi_request_t* start_send(const std::byte* from, std::uint64_t bytes, std::uint32_t to, std::uint32_t tag,
                           ompi_communicator_t* comm) {
    ompi_request_t* request = nullptr;
    check(MCA_PML_CALL(isend(from, bytes, &ompi_mpi_byte.dt, static_cast<int>(to), static_cast<int>(tag),
                             MCA_PML_BASE_SEND_STANDARD, comm, &request)),
          "send");
    return request;
}

ompi_request_t* start_receive(std::byte* to, std::uint64_t bytes, std::uint32_t from, std::uint32_t tag,
                              ompi_communicator_t* comm) {
    ompi_request_t* request = nullptr;
    check(MCA_PML_CALL(
              irecv(to, bytes, &ompi_mpi_byte.dt, static_cast<int>(from), static_cast<int>(tag), comm, &request)),
          "receive");
    return request;
}

}  // namespace

// Whether the layout is one block that is long enough.
bool Window::is_long_block(const Origin& origin, const rma::RunBuilder& layout) const noexcept {
    return layout.bytes() >= static_cast<std::uint64_t>(process.config.rendezvous_min) && !is_dynamic() &&
           layout.runs().size() == 1 && layout.runs()[0].repeat == 1 && origin.contiguous();
}

// A target that computes executes frames in its asynchronous handler, which may not call the PML.
bool Window::suits_rendezvous(const Origin& origin, const rma::RunBuilder& layout, std::uint32_t rank) const noexcept {
    return is_long_block(origin, layout) && !(is_passive() && interrupts_ && cards_[rank].handles);
}

void Window::wait_for_messages(Lock& lock, Peer& peer) {
    if (peer.messages >= kMostMessages) process.count(Count::kWaits);
    wait_for(lock, [&] { return peer.messages < kMostMessages; });
    ++peer.messages;
}

void Window::ask_for_block(Lock& lock, Peer& peer, rma::Kind kind, std::uint64_t offset, std::uint64_t bytes,
                           std::uint32_t tag, std::uint64_t cookie) {
    rma::Record record{};
    record.kind = kind;
    record.bytes = static_cast<std::uint32_t>(bytes);
    record.at = offset;
    record.cookie = cookie;
    record.position = tag;
    append(lock, peer, record);
    send_frame(lock, peer);
}

void Window::put_rendezvous(Lock& lock, Peer& peer, const std::byte* from, const rma::Run& to) {
    for (std::uint64_t done = 0; done < to.bytes;) {
        const std::uint64_t part = std::min<std::uint64_t>(to.bytes - done, rma::kMostOfMessage);
        wait_for_messages(lock, peer);
        const std::uint32_t tag = tag_of(next_tag_++, true);
        const std::uint64_t cookie = peer.operations.begin();
        process.count(Count::kRendezvous);
        ask_for_block(lock, peer, rma::Kind::kReceive, to.offset + done, part, tag, cookie);
        lock.unlock();
        ompi_request_t* request = start_send(from + done, part, peer.rank, tag, comm_);
        ompi_request_free(&request);  // the target answers when it has the data
        lock.lock();
        done += part;
    }
}

void Window::get_rendezvous(Lock& lock, Peer& peer, std::byte* to, const rma::Run& from, Request* request) {
    for (std::uint64_t done = 0; done < from.bytes;) {
        const std::uint64_t part = std::min<std::uint64_t>(from.bytes - done, rma::kMostOfMessage);
        wait_for_messages(lock, peer);
        const std::uint32_t tag = tag_of(next_tag_++, false);
        const Generations::Number generation = peer.operations.begin();
        if (request) ++request->parts;
        process.count(Count::kRendezvous);
        lock.unlock();
        ompi_request_t* const receive = start_receive(to + done, part, peer.rank, tag, comm_);
        lock.lock();
        messages_.push_back({receive, &peer, generation, request, false});
        note_messages();
        ask_for_block(lock, peer, rma::Kind::kSend, from.offset + done, part, tag, 0);
        done += part;
    }
}

// At the target, with the mutex held.
const char* Window::on_block_wanted(std::uint32_t source, const rma::Record& record) {
    if (is_dynamic()) return "message to dynamic memory";
    const rma::Run run{record.at, record.bytes, 0, 1};
    if (!own_memory_has({&run, 1})) return "place in the window";
    if (record.position >= kTags || record.position % 2 != (record.kind == rma::Kind::kSend)) return "tag of a message";
    if (peer(source).blocks_wanted >= kMostMessages) return "number of messages";
    ++peer(source).blocks_wanted;
    blocks_wanted_.push_back({source, record});
    note_messages();
    return nullptr;
}

// Starts the messages that origins have asked for, and finishes those that are complete.
int Window::progress_messages() {
    std::vector<BlockWanted> wanted;
    std::vector<PmlMessage> ended;
    {
        const std::lock_guard lock(mutex_);
        any_message_.store(false, std::memory_order_relaxed);
        wanted.swap(blocks_wanted_);
        for (const BlockWanted& each : wanted) --peer(each.source).blocks_wanted;
        const auto rest = std::partition(messages_.begin(), messages_.end(),
                                         [](const PmlMessage& each) { return !REQUEST_COMPLETE(each.request); });
        ended.assign(rest, messages_.end());
        messages_.erase(rest, messages_.end());
        if (!messages_.empty()) note_messages();
    }
    for (const auto& [source, record] : wanted) {
        std::byte* const at = address_of(record.at);
        const auto tag = static_cast<std::uint32_t>(record.position);
        if (record.kind == rma::Kind::kSend) {
            ompi_request_t* request = start_send(at, record.bytes, source, tag, comm_);
            ompi_request_free(&request);  // the origin knows when it has the data
            continue;
        }
        ompi_request_t* const request = start_receive(at, record.bytes, source, tag, comm_);
        const std::lock_guard lock(mutex_);
        messages_.push_back({request, &peer(source), record.cookie, nullptr, true});
        note_messages();
    }
    if (!ended.empty()) end_messages(ended);
    return static_cast<int>(wanted.size() + ended.size());
}

void Window::end_messages(std::span<PmlMessage> ended) {
    RequestList done;
    std::vector<Outgoing> out;
    for (PmlMessage& each : ended) {
        check(each.request->req_status.MPI_ERROR, "receive");
        ompi_request_free(&each.request);
    }
    {
        const std::lock_guard lock(mutex_);
        Replies replies(*this);
        for (const PmlMessage& each : ended) {
            if (each.answers) {
                rma::Reply reply{};
                reply.answer = rma::Answer::kReceived;
                reply.cookie = each.cookie;
                replies.add(each.peer->rank, reply);
                continue;
            }
            --each.peer->messages;
            each.peer->operations.end(static_cast<Generations::Number>(each.cookie));
            if (each.wanted && --each.wanted->parts == 0) done.push_back(each.wanted);
        }
        out = replies.take();
    }
    if (!out.empty()) send_or_keep(std::move(out));
    complete_all(done);
}

}  // namespace coop::osc
