// SPDX-License-Identifier: BSD-3-Clause
//
// The end of an epoch over several rails. (Multi-rail dissertation, section 5.2.1)
//
//     origin                                             target
//     writes ── rail 0 ── signal 1 of 3 ───────────────► on_signal()
//     writes ── rail 1 ── signal 2 of 3 ──────────► on_signal()
//     records ─ frame ─── signal 0 of 3, in a record ──────────► on_signal(): the epoch is over
//
// A rail keeps the order of what it carries: a signal behind writes arrives when they are in the memory of the target.
// Rails keep no order among each other. So the origin sends a signal on each rail that has carried a write, and behind
// its records, and each signal says how many there are. The epoch is over when the target has all of them. They may
// come in any order, before the target exposes its memory, and mixed with those of the next epochs of the same origin.
//
// Epochs are numbered for each origin and target from 0, whichever call ends them.
//
// Threading: none; the caller holds the lock of the window. Errors: functions that return text say what is wrong with a
// signal; null: nothing is. A wrong signal changes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coop/rma/packet.h"

namespace coop::rma {

// At a target: the epochs of one origin.
class SyncCounter {
public:
    static constexpr std::uint32_t kMostSignals = 64;  // of an epoch
    // So many epochs may have signals at once. An origin whose program is correct has two: it knows that the target has
    // seen the end of an epoch when it begins the one after the next.
    static constexpr std::uint32_t kMostEpochs = 4;

    // Calls ended(signal) for each epoch that is over now, in their order; the signal is one of that epoch.
    template <class F>
    const char* on_signal(const Signal& signal, F ended) {
        if (const char* const why = judge(signal)) return why;
        Open& open = open_[signal.epoch % kMostEpochs];
        open.end = signal.end;
        open.touched = signal.touched;
        open.signals = signal.signals;
        open.arrived |= std::uint64_t{1} << signal.place;
        while (const Open* const first = first_if_over()) {
            ended(Signal{next_, first->end, first->touched, 0, first->signals});
            open_[next_ % kMostEpochs] = {};
            ++next_;
        }
        return nullptr;
    }

    // The number of epochs that are over.
    std::uint32_t over() const noexcept { return next_; }

private:
    struct Open {
        std::uint64_t arrived = 0;  // bit i: the signal of place i
        End end{};
        std::uint8_t touched = 0, signals = 0;  // 0: none has arrived
    };

    const char* judge(const Signal& signal) const noexcept {
        if (signal.end < End::kComplete || signal.end > End::kLast || signal.touched > 1) return "kind of a signal";
        if (signal.signals == 0 || signal.signals > kMostSignals) return "number of signals";
        if (signal.place >= signal.signals) return "place of a signal";
        const std::uint32_t ahead = signal.epoch - next_;
        if (static_cast<std::int32_t>(ahead) < 0) return "signal of an epoch that is over";
        if (ahead >= kMostEpochs) return "signal of a distant epoch";
        const Open& open = open_[signal.epoch % kMostEpochs];
        if (open.signals == 0) return nullptr;
        if (open.signals != signal.signals || open.end != signal.end || open.touched != signal.touched)
            return "signals of an epoch that differ";
        return open.arrived >> signal.place & 1 ? "signal that came twice" : nullptr;
    }

    const Open* first_if_over() const noexcept {
        const Open& first = open_[next_ % kMostEpochs];
        const bool over = first.signals != 0 && first.arrived == ~std::uint64_t{0} >> (64 - first.signals);
        return over ? &first : nullptr;
    }

    std::uint32_t next_ = 0;  // the first epoch that is not over
    std::array<Open, kMostEpochs> open_{};
};

// The fences of a window in which each process tells each other one of its end. A process that has got all of them is
// sure that the others have called the fence, and that their operations on its own memory have ended. Those on other
// targets may go on: if any process has records that its target may not have executed, all have to meet once more.
//
// A process may be one fence ahead of this one, but not two, because it needs this one's end of the next one.
class Fences {
public:
    Fences() = default;
    explicit Fences(std::uint32_t others) noexcept : others_(others) {}

    // Another process has ended its `number`-th fence, counted from 0.
    const char* on_end(std::uint32_t number, bool touched) noexcept {
        if (number - passed_ > 1) return "fence";
        Round& round = rounds_[number % 2];
        ++round.ended;
        round.touched = round.touched || touched;
        return nullptr;
    }
    // Of the fence that this process is in.
    bool all_have_ended() const noexcept { return rounds_[passed_ % 2].ended == others_; }
    bool others_have_touched() const noexcept { return rounds_[passed_ % 2].touched; }
    // Precondition: all_have_ended().
    void pass() noexcept { rounds_[passed_++ % 2] = {}; }

private:
    struct Round {
        std::uint32_t ended = 0;
        bool touched = false;
    };
    std::uint32_t others_ = 0;
    std::uint32_t passed_ = 0;
    std::array<Round, 2> rounds_{};
};

}  // namespace coop::rma
