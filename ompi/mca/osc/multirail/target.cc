// SPDX-License-Identifier: BSD-3-Clause
//
// At the target: executes records and collects replies. At the origin: takes the replies.
#include <algorithm>
#include <cstring>
#include <utility>

#include "diagnose.h"
#include "frames.h"
#include "mapped.h"
#include "window.h"

namespace coop::osc {
namespace {

// Answers to one process that wait for the transport, in packets. Gets beyond that are kept as records, which need less
// memory than their answers.
constexpr std::size_t kMostPackets = 4;

}  // namespace

// --- replies ---

std::uint32_t Replies::most() const noexcept {
    return static_cast<std::uint32_t>((window_.frame_bytes_ - sizeof(rma::Packet) - sizeof(rma::Reply)) / 16 * 16);
}

std::uint32_t Replies::room(std::uint32_t to) const noexcept {
    const auto open = std::find_if(open_.begin(), open_.end(), [to](const Open& each) { return each.to == to; });
    if (open == open_.end() || !open->buffer.bytes) return most();
    const std::size_t room = open->writer.room();
    return room < sizeof(rma::Reply) ? 0 : static_cast<std::uint32_t>((room - sizeof(rma::Reply)) / 16 * 16);
}

std::byte* Replies::add(std::uint32_t to, const rma::Reply& reply) {
    auto open = std::find_if(open_.begin(), open_.end(), [to](const Open& each) { return each.to == to; });
    if (open == open_.end()) open = open_.insert(open_.end(), Open{to, {}, {}});
    if (open->buffer.bytes) {
        if (std::byte* const at = open->writer.add(reply)) return at;
        close(*open);
    }
    open->buffer = window_.take_buffer();
    open->writer = rma::FrameWriter({open->buffer.bytes.get(), open->buffer.size});
    return open->writer.add(reply);
}

void Replies::close(Open& open) {
    rma::Packet packet{};
    packet.kind = rma::Packets::kReply;
    packet.window = window_.context_;
    packet.source = window_.rank_;
    const std::size_t bytes = open.writer.seal(packet).size();
    closed_.push_back({&window_.peer(open.to), true, std::move(open.buffer), bytes});
    process.count(Count::kReplies);
    open.buffer = {};
}

std::vector<Outgoing> Replies::take() {
    for (Open& open : open_)
        if (open.buffer.bytes) close(open);
    return std::move(closed_);
}

// --- as target ---

const char* Window::execute(std::uint32_t source, std::span<const std::byte> frame, Replies& replies) {
    rma::FrameReader reader(frame);
    while (!reader.at_end()) {
        process.count(Count::kRecords);
        if (const char* why = execute(source, reader.next_record(), replies)) return why;
    }
    return nullptr;
}

const char* Window::execute(std::uint32_t source, const rma::ReadRecord& read, Replies& replies) {
    const rma::Record& record = read.record;
    const auto answer = [&](rma::Answer what) {
        rma::Reply reply{};
        reply.answer = what;
        reply.cookie = record.cookie;
        reply.refused = std::exchange(peer(source).refused_by_us, false);
        replies.add(source, reply);
    };
    const auto grant = [&](std::uint32_t to, std::uint64_t) { this->grant(to, replies); };
    switch (record.kind) {
    case rma::Kind::kLock: {
        if (record.type > 1 || record.operation > 1) return "type of a lock";
        return locks_.request(source, static_cast<rma::LockType>(record.type), 0, grant, record.operation == 1)
                   ? nullptr
                   : "lock";
    }
    case rma::Kind::kUnlock:
        if (!locks_.release(source, grant)) return "unlock";
        answer(rma::Answer::kUnlocked);
        return nullptr;
    case rma::Kind::kFlush: answer(rma::Answer::kFlushed); return nullptr;
    case rma::Kind::kPost: pscw_.on_post(source); return nullptr;
    case rma::Kind::kComplete:
    case rma::Kind::kFence: return on_signal(source, rma::signal_of(record));
    case rma::Kind::kReceive:
    case rma::Kind::kSend: return on_block_wanted(source, record);
    default: break;
    }
    if (read.runs.empty()) {
        const rma::Run run{record.at, record.bytes, 0, 1};
        return apply(source, read, {&run, 1}, replies);
    }
    runs_.resize(read.runs.size() / sizeof(rma::Run));
    std::memcpy(runs_.data(), read.runs.data(), read.runs.size());
    return apply(source, read, runs_, replies);
}

void Window::grant(std::uint32_t to, Replies& replies) {
    if (to == rank_) {
        peer(to).lock = Peer::Lock::kHeld;
        return;
    }
    rma::Reply reply{};
    reply.answer = rma::Answer::kGranted;
    replies.add(to, reply);
}

std::byte* Window::address_of(std::uint64_t offset) const noexcept {
    return reinterpret_cast<std::byte*>(is_dynamic() ? offset : cards_[rank_].base + offset);
}

bool Window::own_memory_has(std::span<const rma::Run> runs) const noexcept {
    if (!is_dynamic()) return rma::are_inside(runs, cards_[rank_].bytes);
    return rma::are_attached(runs, attachments_.regions());
}

// The origin cannot know whether the memory is attached. It learns of the refusal by the result of the operation, or,
// if that has none, by the answer to its next flush or unlock.
const char* Window::refuse(std::uint32_t source, const rma::Record& record, Replies& replies) {
    if (!rma::has_position(record.kind)) {
        peer(source).refused_by_us = true;
        return nullptr;
    }
    rma::Reply reply{};
    reply.answer = rma::Answer::kRefused;
    reply.cookie = record.cookie;
    reply.position = record.bytes;
    replies.add(source, reply);
    return nullptr;
}

const char* Window::apply(std::uint32_t source, const rma::ReadRecord& read, std::span<const rma::Run> runs,
                          Replies& replies) {
    const rma::Record& record = read.record;
    if (rma::count_bytes(runs) != record.bytes) return "bytes of the runs";
    if (!own_memory_has(runs)) return is_dynamic() ? refuse(source, record, replies) : "place in the window";

    std::optional<ElementType> element;
    std::uint64_t span = 1;
    if (record.kind >= rma::Kind::kAccumulate) {
        ompi_datatype_t* const type = type_of(record.type);
        element = type ? element_type(*type) : std::nullopt;
        if (!element) return "datatype";
        span = element->span;
        if (record.kind == rma::Kind::kSwap ? record.bytes != element->size : record.bytes % span != 0)
            return "bytes of elements";
        if (record.kind != rma::Kind::kSwap && !is_defined(record.operation, *type)) return "operation";
        const bool moves_data = record.operation != kNoOp || record.kind == rma::Kind::kSwap;
        if (moves_data != ((record.flags & rma::kHasData) != 0)) return "data of an operation";
        for (const rma::Run& run : runs)
            if (run.bytes % span != 0) return "runs of elements";
    }

    // A long answer is made as the transport takes it, and so is a short one behind it, or behind many packets.
    if (Peer& origin = peer(source);
        record.kind == rma::Kind::kGet && (record.bytes > replies.most() || !origin.answers.empty() ||
                                           origin.waiting.size() + replies.packets() >= kMostPackets)) {
        origin.answers.push_back(std::make_unique<LongAnswer>(record, runs));
        note_waiting(origin);
        return nullptr;
    }
    const std::byte* data = read.data;
    std::byte* result = nullptr;
    std::uint64_t position = record.position, room = 0;
    const auto answer = [&](const std::byte* from, std::uint64_t bytes) {
        while (bytes > 0) {
            if (room == 0) {
                rma::Reply reply{};
                reply.answer = rma::Answer::kData;
                room = std::min<std::uint64_t>(replies.most() / span * span, record.position + record.bytes - position);
                reply.bytes = static_cast<std::uint32_t>(room);
                reply.cookie = record.cookie;
                reply.position = position;
                result = replies.add(source, reply);
            }
            const std::uint64_t part = std::min(bytes, room);
            std::memcpy(result, from, part);
            result += part, from += part, position += part;
            room -= part, bytes -= part;
        }
    };
    // The kernel may have begun to refuse copies by this origin, while others go on.
    const bool beside_origins = has_words_ && record.kind >= rma::Kind::kAccumulate;
    const RecordLock word(beside_origins ? memory_.locks[rank_] : nullptr);
    for (rma::RunCursor cursor(runs); !cursor.at_end();) {
        const rma::Block block = cursor.next(UINT64_MAX);
        std::byte* const at = address_of(block.offset);
        switch (record.kind) {
        case rma::Kind::kPut:
            std::memcpy(at, data, block.bytes);
            data += block.bytes;
            break;
        case rma::Kind::kGet: answer(at, block.bytes); break;
        case rma::Kind::kFetch: answer(at, block.bytes); [[fallthrough]];
        case rma::Kind::kAccumulate:
            reduce(record.operation, *element, data, at, block.bytes);
            if (record.operation != kNoOp) data += block.bytes;
            break;
        default:  // kSwap
            answer(at, block.bytes);
            if (std::memcmp(at, data, block.bytes) == 0) std::memcpy(at, data + block.bytes, block.bytes);
        }
    }
    return nullptr;
}

// Whether the next bytes of the answer are still attached: the program may have detached them since the get arrived.
bool Window::may_continue(const LongAnswer& answer, std::uint32_t bytes) const noexcept {
    if (!is_dynamic()) return true;
    rma::RunCursor cursor = answer.cursor;
    for (std::uint64_t missing = bytes; missing > 0;) {
        const rma::Block block = cursor.next(missing);
        if (!attachments_.covers(block.offset, block.bytes)) return false;
        missing -= block.bytes;
    }
    return true;
}

// One packet, of the answers that wait longest.
void Window::continue_answers(Peer& peer, std::vector<Outgoing>& out) {
    Replies replies(*this);
    while (!peer.answers.empty()) {
        LongAnswer& answer = *peer.answers.front();
        const std::uint32_t room = replies.room(peer.rank);
        // An answer is not cut for the sake of a nearly full packet.
        if (answer.left > room && room < replies.most()) break;
        continue_answer(peer, answer, std::min(room, answer.left), replies);
        if (answer.left == 0) peer.answers.pop_front();
    }
    out = replies.take();
}

void Window::continue_answer(const Peer& peer, LongAnswer& answer, std::uint32_t bytes, Replies& replies) {
    rma::Reply reply{};
    reply.answer = rma::Answer::kData;
    reply.bytes = bytes;
    reply.cookie = answer.cookie;
    reply.position = answer.position;
    if (!may_continue(answer, reply.bytes)) {
        reply.answer = rma::Answer::kRefused;
        reply.bytes = 0;
        reply.position = answer.left;
        replies.add(peer.rank, reply);
        answer.left = 0;
        return;
    }
    std::byte* to = replies.add(peer.rank, reply);
    answer.position += bytes;
    answer.left -= bytes;
    for (std::uint64_t missing = bytes; missing > 0;) {
        const rma::Block block = answer.cursor.next(missing);
        std::memcpy(to, address_of(block.offset), block.bytes);
        to += block.bytes;
        missing -= block.bytes;
    }
}

// --- as origin ---

const char* Window::on_reply(std::uint32_t source, std::span<const std::byte> packet, RequestList& done) {
    if (!peers_[source]) return "source";
    rma::FrameReader reader(packet);
    while (!reader.at_end()) {
        const std::byte* data = nullptr;
        const rma::Reply reply = reader.next_reply(&data);
        if (const char* why = on_answer(*peers_[source], reply, data, done)) return why;
    }
    return nullptr;
}

const char* Window::on_answer(Peer& from, const rma::Reply& reply, const std::byte* data, RequestList& done) {
    switch (reply.answer) {
    case rma::Answer::kFlushed:
    case rma::Answer::kUnlocked:
    case rma::Answer::kReceived:
        if (reply.answer == rma::Answer::kReceived && from.messages-- == 0) return "answer to a message";
        from.refused = from.refused || reply.refused != 0;
        return reply.cookie <= UINT32_MAX && from.operations.end(static_cast<Generations::Number>(reply.cookie))
                   ? nullptr
                   : "flush";
    case rma::Answer::kGranted:
        if (from.lock != Peer::Lock::kAsked) return "grant of a lock";
        from.lock = Peer::Lock::kHeld;
        return nullptr;
    case rma::Answer::kRefused:
    case rma::Answer::kData: break;
    }
    Result* const result = ids_.find(reply.cookie);
    if (!result || &result->peer != &from) return "cookie";
    if (reply.answer == rma::Answer::kRefused) {
        if (reply.position == 0 || reply.position > result->missing) return "bytes of a result";
        result->missing -= reply.position;
        from.refused = true;
        if (result->request) result->request->super.req_status.MPI_ERROR = MPI_ERR_RMA_RANGE;
        if (result->missing == 0) end_result(result, done);
        return nullptr;
    }
    if (reply.position > result->bytes || reply.bytes > result->bytes - reply.position || reply.bytes > result->missing)
        return "position of a result";
    result->put(reply.position, data, reply.bytes);
    result->missing -= reply.bytes;
    if (result->missing == 0) end_result(result, done);
    return nullptr;
}

void Result::put(std::uint64_t position, const std::byte* data, std::size_t count) noexcept {
    if (memory) std::memcpy(memory + position, data, count);
    else unpacker->put(position, data, count);
}

void Window::end_result(Result* result, RequestList& done) noexcept {
    if (result->unpacker) {
        result->unpacker->finish();
        done.spent.push_back(std::move(result->unpacker));
    }
    result->peer.operations.end(result->generation);
    if (result->is_fetched) fetched_bytes_ -= result->bytes;
    if (!result->request) --results_;
    else if (--result->request->parts == 0) done.push_back(result->request);
    ids_.release(result->id);
    delete result;
}

}  // namespace coop::osc
