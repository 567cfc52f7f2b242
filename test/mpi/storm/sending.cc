// SPDX-License-Identifier: BSD-3-Clause
#include "round.h"

namespace storm {

RoundRun::Send::Send(const Message& m)
    : message(m), layout(m.layout, m.bytes, pattern::key({m.key, 3})), memory(layout.span() + 1) {
    layout.fill(memory.data(), m.key);
}

// Attaches a buffer for all buffered sends of the round. Only thread 0 has such sends,
// because the buffer belongs to the process.
void RoundRun::attach_buffer() {
    std::size_t bytes = 0;
    for (const Send& s : sends_)
        if (s.message.mode == Mode::kBuffered) bytes += s.message.bytes + MPI_BSEND_OVERHEAD + 64;
    if (bytes == 0) return;
    buffer_.resize(bytes);
    MPI_Buffer_attach(buffer_.data(), static_cast<int>(bytes));
}

void RoundRun::detach_buffer() {
    if (buffer_.empty()) return;
    void* address = nullptr;
    int bytes = 0;
    MPI_Buffer_detach(&address, &bytes);
    if (address != buffer_.data() || static_cast<std::size_t>(bytes) != buffer_.size())
        failed("MPI_Buffer_detach gave another buffer than was attached");
}

void RoundRun::start_send(Send& send) {
    using SendCall = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
    using StartCall = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    static constexpr SendCall kBlocking[] = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
    static constexpr StartCall kNonblocking[] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
    static constexpr StartCall kInit[] = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};

    const Message& m = send.message;
    const auto mode = static_cast<std::size_t>(m.mode);
    const void* address = send.memory.data() + send.layout.origin();
    const int count = send.layout.count(), target = channel(m.channel).rank_of(m.source, m.target);
    MPI_Datatype type = send.layout.type();
    ++state_.sends;
    switch (m.form) {
    case Form::kBlocking:
        kBlocking[mode](address, count, type, target, m.tag, comm(m.channel));
        ++state_.sends_done;
        break;
    case Form::kNonblocking:
        kNonblocking[mode](address, count, type, target, m.tag, comm(m.channel), &send.request);
        break;
    case Form::kPersistent:
        kInit[mode](address, count, type, target, m.tag, comm(m.channel), &send.request);
        MPI_Start(&send.request);
        break;
    }
}

}  // namespace storm
