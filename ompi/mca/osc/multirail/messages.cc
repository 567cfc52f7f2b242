// SPDX-License-Identifier: BSD-3-Clause
//
// Operations as records in frames, which the target executes. A frame collects the operations of many calls.
#include <algorithm>
#include <cstring>
#include <utility>

#include "diagnose.h"
#include "frames.h"
#include "queued.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

constexpr std::uint64_t kMostOfRecord = std::uint64_t{1} << 30;
// Most outstanding results of calls without a request. (Those with a request are limited by the program.)
constexpr std::uint32_t kMostResults = 16384;
// Most bytes of results of accumulates without data. A target makes these answers at once, since accumulates have an
// order, and a short record can ask for a long one.
constexpr std::uint64_t kMostFetchedBytes = std::uint64_t{4} << 20;

rma::RunBuilder without_first(std::uint64_t bytes, const rma::RunBuilder& layout) {
    rma::RunBuilder rest;
    rma::RunCursor cursor(layout.runs());
    while (bytes > 0) bytes -= cursor.next(bytes).bytes;
    while (!cursor.at_end()) rest.add(cursor.next(UINT64_MAX));
    return rest;
}

constexpr std::uint64_t round_down(std::uint64_t bytes, std::uint64_t unit) noexcept { return bytes / unit * unit; }

}  // namespace

void Window::touch(Peer& peer) {
    if (peer.touched) return;
    touched_.push_back(&peer);
    peer.touched = true;
}

// Each open frame is a buffer, so there is a limit for their number. Waits while it sends another one.
void Window::open_frame(Lock& lock, Peer& peer) {
    const auto most = static_cast<std::size_t>(process.config.open_frames);
    while (!peer.buffer.bytes && open_frames_ >= most) {
        process.count(Count::kEarlyFrames);
        send_frame(lock, *by_use_.front());
    }
    if (peer.buffer.bytes) {
        if (by_use_.back() == &peer) return;
        by_use_.remove(&peer);
    } else {
        touch(peer);
        peer.buffer = take_buffer();
        peer.frame = rma::FrameWriter({peer.buffer.bytes.get(), peer.buffer.size});
        ++open_frames_;
    }
    by_use_.push_back(&peer);
}

void Window::close_frame(Peer& peer, std::vector<Outgoing>& out) {
    if (!peer.buffer.bytes) return;
    rma::Packet packet{};
    packet.kind = rma::Packets::kFrame;
    packet.window = context_;
    packet.source = rank_;
    packet.sequence = peer.sequence++;
    const std::size_t bytes = peer.frame.seal(packet).size();
    out.push_back({&peer, false, std::move(peer.buffer), bytes});
    peer.buffer = {};
    peer.eager = false;
    by_use_.remove(&peer);
    --open_frames_;
    process.count(Count::kFrames);
}

void Window::close_frame(Lock& lock, Peer& peer, std::vector<Outgoing>& out) {
    constexpr std::size_t kMostClosed = 64;
    close_frame(peer, out);
    if (out.size() < kMostClosed) return;
    lock.unlock();
    send(std::exchange(out, {}));
    lock.lock();
}

void Window::send_frame(Lock& lock, Peer& peer) {
    std::vector<Outgoing> out;
    close_frame(peer, out);
    lock.unlock();
    send(std::move(out));
    lock.lock();
}

void Window::append(Lock& lock, Peer& peer, const rma::Record& record) {
    for (open_frame(lock, peer); !peer.frame.add(record); open_frame(lock, peer)) send_frame(lock, peer);
}

template <class F>
void Window::write_records(Lock& lock, Peer& peer, const Operation& what, std::span<const rma::Run> runs, F pack) {
    // Bytes of data in the frame for each byte accessed at the target.
    const std::uint64_t weight = !what.has_data ? 0 : what.kind == rma::Kind::kSwap ? 2 : 1;
    const std::size_t header = rma::header_bytes(what.kind);
    // The target has to store the old values until it has sent them.
    const std::uint64_t most_of_record = what.kind == rma::Kind::kFetch ? frame_bytes_ : kMostOfRecord;
    const auto allowance = [&](std::uint64_t room) {
        return round_down(weight == 0 ? most_of_record : room / 8 * 8 / weight, what.granule);
    };
    std::uint64_t position = what.position;
    rma::RunBuilder blocks;
    for (rma::RunCursor cursor(runs); !cursor.at_end();) {
        open_frame(lock, peer);
        const std::uint64_t room = peer.frame.room();
        // Rather than cut a long block to fill up a nearly full frame, send the frame.
        if (room < header + std::max<std::uint64_t>(rma::padded(weight * what.granule), 8) ||
            (weight * cursor.left_of_block() > room - header && room < peer.buffer.size / 4)) {
            send_frame(lock, peer);
            continue;
        }
        blocks.clear();
        bool whole = cursor.left_of_block() <= allowance(room - header);
        blocks.add(cursor.next(allowance(room - header)));
        // Further blocks need room for the list of runs, too.
        while (whole && !cursor.at_end()) {
            const std::uint64_t fixed = header + (blocks.runs().size() + 1) * sizeof(rma::Run);
            const std::uint64_t used = fixed + rma::padded(weight * blocks.bytes());
            const std::uint64_t most = used < room ? allowance(room - used) : 0;
            if (most == 0 || blocks.bytes() >= most_of_record / 2) break;
            whole = cursor.left_of_block() <= most;
            blocks.add(cursor.next(most));
        }
        const bool one = blocks.runs().size() == 1 && blocks.runs()[0].repeat == 1;
        rma::Record record{};
        record.kind = what.kind;
        record.type = what.type;
        record.operation = what.operation;
        record.flags = static_cast<std::uint8_t>((one ? 0 : rma::kHasRuns) | (what.has_data ? rma::kHasData : 0));
        record.bytes = static_cast<std::uint32_t>(blocks.bytes());
        record.at = one ? blocks.runs()[0].offset : blocks.runs().size();
        record.cookie = what.id;
        record.position = position;
        std::byte* const data = peer.frame.add(record, one ? std::span<const rma::Run>() : blocks.runs());
        if (what.has_data) pack(data, rma::data_bytes(record));
        position += blocks.bytes();
    }
    // All other kinds have results, for which the origin waits.
    if (what.kind == rma::Kind::kPut || what.kind == rma::Kind::kAccumulate) peer.unflushed = true;
}

template <class F>
void Window::wait_for_results(Lock& lock, F done) {
    if (done()) return;
    process.count(Count::kWaits);
    for (Peer* const each : touched_) expect(*each);
    wait_for(lock, done);
}

Result& Window::new_result(Lock& lock, Peer& peer, std::uint64_t bytes, Request* request) {
    if (!request) wait_for_results(lock, [&] { return results_ < kMostResults; });
    auto result = std::make_unique<Result>(peer, bytes);
    result->id = ids_.acquire(result.get());
    if (result->id == 0) throw std::bad_alloc();
    result->generation = peer.operations.begin();
    result->request = request;
    if (request) ++request->parts;
    else ++results_;
    return *result.release();
}

Result& Window::new_result(Lock& lock, Peer& peer, const Origin& to, const ElementType* element, std::uint64_t bytes,
                           Request* request) {
    Result& result = new_result(lock, peer, bytes, request);
    const ElementType* const with_gap = element && element->has_gap() ? element : nullptr;
    result.memory = with_gap ? nullptr : to.contiguous();
    if (!result.memory) result.unpacker = std::make_unique<Unpacker>(to, with_gap);
    return result;
}

void Window::put_message(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout) {
    Packer packer(origin);
    write_records(lock, peer, {.kind = rma::Kind::kPut}, layout.runs(),
                  [&](std::byte* to, std::uint64_t bytes) { packer.take(to, bytes); });
}

void Window::get_message(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout,
                         Request* request) {
    const Result& result = new_result(lock, peer, origin, nullptr, layout.bytes(), request);
    write_records(lock, peer, {.kind = rma::Kind::kGet, .id = result.id, .has_data = false}, layout.runs(),
                  [](std::byte*, std::uint64_t) {});
    if (request) expect(peer);
}

void Window::move_blocks(Lock& lock, Peer& peer, bool puts, std::byte* local, const rma::RunBuilder& layout,
                         Request* request) {
    if (puts) {
        write_records(lock, peer, {.kind = rma::Kind::kPut}, layout.runs(), [&](std::byte* to, std::uint64_t part) {
            std::memcpy(to, local, part);
            local += part;
        });
        return;
    }
    Result& result = new_result(lock, peer, layout.bytes(), request);
    result.memory = local;
    write_records(lock, peer, {.kind = rma::Kind::kGet, .id = result.id, .has_data = false}, layout.runs(),
                  [](std::byte*, std::uint64_t) {});
    if (request) expect(peer);
}

void Window::accumulate_message(Lock& lock, Peer& peer, const Origin& origin, const Origin* result,
                                const Target& target, std::uint64_t offset, const ElementType& element,
                                std::uint8_t operation, Request* request, Executed done) {
    rma::RunBuilder layout;
    // The origin's data may be shorter than the target's layout. MPI_NO_OP has no data.
    flatten_elements(target, element, offset, operation == kNoOp ? target.bytes() : origin.bytes(), layout);
    Operation what{.kind = rma::Kind::kAccumulate,
                   .type = number_of(*element.type),
                   .operation = operation,
                   .granule = element.span,
                   .position = done.bytes};
    what.has_data = operation != kNoOp;
    if (result) {
        if (!what.has_data) wait_for_results(lock, [&] { return fetched_bytes_ < kMostFetchedBytes; });
        Result& made = new_result(lock, peer, *result, &element, layout.bytes(), request);
        made.missing -= done.bytes;
        if (!made.memory && done.unpacker) made.unpacker = std::move(done.unpacker);
        made.is_fetched = !what.has_data;
        if (made.is_fetched) fetched_bytes_ += made.bytes;
        what.kind = rma::Kind::kFetch;
        what.id = made.id;
    } else if (!what.has_data) {
        return;
    }
    if (done.bytes > 0) layout = without_first(done.bytes, layout);
    if (what.has_data && (element.has_gap() || done.bytes > 0)) {
        const Operand operand(origin, element, operation);
        const std::byte* next = operand.data() + done.bytes;
        write_records(lock, peer, what, layout.runs(), [&](std::byte* to, std::uint64_t bytes) {
            std::memcpy(to, next, bytes);
            next += bytes;
        });
    } else if (what.has_data) {
        Packer packer(origin);
        write_records(lock, peer, what, layout.runs(),
                      [&](std::byte* to, std::uint64_t bytes) { packer.take(to, bytes); });
    } else {
        write_records(lock, peer, what, layout.runs(), [](std::byte*, std::uint64_t) {});
    }
    if (request) expect(peer);
}

void Window::send_queued(Lock& lock, Peer& peer, const rma::AccumulateQueue& queue, const Unexecuted& rest) {
    const auto entries = queue.entries();
    const auto send = [&](std::span<const rma::AccumulateQueue::Entry> some, std::uint64_t from) {
        for_each_queued(some, [&](const ElementType& element, const rma::AccumulateQueue::Entry& entry) {
            Operation what{.kind = entry.result ? rma::Kind::kFetch : rma::Kind::kAccumulate,
                           .type = entry.type,
                           .operation = entry.operation,
                           .granule = element.span};
            const std::byte* const operand = queue.operand_of(entry);
            const std::byte* next = operand;
            for (const rma::Block& block : queue.blocks_of(entry)) {
                const std::uint64_t done = from > block.offset ? std::min(from - block.offset, block.bytes) : 0;
                next += done;
                if (done == block.bytes) continue;
                const rma::Run run{block.offset + done, block.bytes - done, 0, 1};
                if (entry.result) {
                    Result& result = new_result(lock, peer, run.bytes, nullptr);
                    result.memory = entry.result + (next - operand);
                    what.id = result.id;
                }
                write_records(lock, peer, what, {&run, 1}, [&](std::byte* to, std::uint64_t bytes) {
                    std::memcpy(to, next, bytes);
                    next += bytes;
                });
            }
        });
    };
    send(entries.subspan(rest.first, rest.next - rest.first), rest.offset);
    send(entries.subspan(rest.next), 0);
}

void Window::swap_message(Lock& lock, Peer& peer, const Origin& value, const void* comparand, const Origin& result,
                          std::uint64_t offset) {
    const auto bytes = static_cast<std::uint32_t>(value.bytes());
    const Operation what{.kind = rma::Kind::kSwap,
                         .id = new_result(lock, peer, result, nullptr, bytes, nullptr).id,
                         .type = number_of(*element_type(*value.type)->type),
                         .granule = bytes};
    const rma::Run run{offset, bytes, 0, 1};
    write_records(lock, peer, what, {&run, 1}, [&](std::byte* to, std::uint64_t) {
        std::memcpy(to, comparand, bytes);
        std::memcpy(to + bytes, value.address, bytes);
    });
}

void Window::expect(Peer& peer) noexcept {
    peer.eager = true;
    note_waiting(peer);
}

}  // namespace coop::osc
