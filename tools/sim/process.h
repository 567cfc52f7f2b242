// SPDX-License-Identifier: BSD-3-Clause
//
// A process: its CPU, its notices that were not seen yet, and the step of its program
// that it is in.
//
// Units: nanoseconds. Threading: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/agenda.h"
#include "sim/workload.h"

namespace coop::sim {

enum class NoticeKind : std::uint8_t {
    kRts,         // `what`: a message
    kCts,         // `what`: a message
    kCompletion,  // `what`: a stripe, at its sender
    kFailure,     // `what`: a stripe, at its sender
    kFin,         // `what`: a message, at the receiver, with the number of a stripe
    kAddress,     // `what`: the process that may be written to during its present call
};

struct Notice {
    double at_ns;
    std::uint64_t order;
    std::uint32_t what;
    NoticeKind kind;
    std::uint8_t stripe = 0;
};

class Inbox {
public:
    void add(const Notice& notice) {
        heap_.push_back(notice);
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    double next_ns() const noexcept { return heap_.empty() ? kNever : heap_.front().at_ns; }
    Notice take() noexcept {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const Notice notice = heap_.back();
        heap_.pop_back();
        return notice;
    }

private:
    static bool later(const Notice& a, const Notice& b) noexcept {
        return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order;
    }

    std::vector<Notice> heap_;
};

struct Process {
    std::uint32_t job = 0, rank = 0;
    NodeIndex host = 0;
    Inbox inbox;
    double cpu_ns = 0;         // end of its present work
    double sweep_ns = kNever;  // time of its next sweep

    std::uint32_t iteration = 0, step_number = 0;
    Step step;
    std::uint32_t to_send = 0;        // messages whose buffers are still read
    std::uint32_t to_receive = 0;     // incomplete messages of the step
    std::uint32_t to_ask_for = 0;     // those of to_receive without an RTS yet
    bool sent_by_rendezvous = false;  // in this iteration
    double step_began_ns = 0;
    bool finished = false;
};

}  // namespace coop::sim
