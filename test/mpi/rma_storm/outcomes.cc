// SPDX-License-Identifier: BSD-3-Clause
//
// Operations whose outcome depends on timing: the ranks exchange what they fetched, and each rank checks that these
// values belong to some order in which the operations took effect one by one.
#include <algorithm>

#include "round_run.h"

namespace rma_storm {
namespace {

bool depends_on_timing(AreaKind kind) {
    return kind == AreaKind::kTickets || kind == AreaKind::kRace || kind == AreaKind::kUpdate;
}

std::string number(std::uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

struct Seen {
    std::size_t operation;
    bool fetched;
    std::uint64_t value;  // if fetched
    std::uint64_t bit;    // that it sets, or 0
};

}  // namespace

void RoundRun::resolve_outcomes() {
    exchange_outcomes();
    for (std::size_t a = 0; a < phase().areas.size(); ++a) {
        const AreaKind kind = phase().areas[a].kind;
        if (kind == AreaKind::kRace) check_race(static_cast<int>(a));
        if (kind == AreaKind::kTickets || kind == AreaKind::kUpdate) check_tickets(static_cast<int>(a));
    }
}

void RoundRun::exchange_outcomes() {
    outcomes_.clear();
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < phase().operations.size(); ++i) {
        const Operation& o = phase().operations[i];
        if (!depends_on_timing(area(o).kind)) continue;
        const std::size_t n = o.has_result() ? o.at_target.elements : 0, unit = bytes_of(o.at_target.element);
        outcomes_.push_back({i, std::vector<std::uint64_t>(n)});
        const std::size_t first = all.size();
        all.resize(first + n);
        if (o.origin != arena_.rank) continue;
        for (std::size_t e = 0; e < n; ++e)
            std::copy_n(fetched_[i].data() + e * unit, unit, reinterpret_cast<unsigned char*>(&all[first + e]));
    }
    if (all.empty()) return;
    state().now("exchanging fetched values");
    MPI_Allreduce(MPI_IN_PLACE, all.data(), static_cast<int>(all.size()), MPI_UINT64_T, MPI_BOR, arena_.comm);
    auto at = all.begin();
    for (Outcome& outcome : outcomes_)
        for (std::uint64_t& value : outcome.values) value = *at++;
}

// Exactly one compare-and-swap finds 0; all others find what it left.
void RoundRun::check_race(int area) {
    const Outcome* winner = nullptr;
    for (const Outcome& outcome : outcomes_) {
        if (phase().operations[outcome.operation].area != area || outcome.values[0] != 0) continue;
        if (winner != nullptr)
            failed("two compare-and-swaps found the same comparand: " + describe(phase(), winner->operation) +
                   ", and " + describe(phase(), outcome.operation));
        winner = &outcome;
    }
    for (const Outcome& outcome : outcomes_) {
        const Operation& o = phase().operations[outcome.operation];
        if (o.area != area) continue;
        if (winner == nullptr)
            failed("no compare-and-swap found the comparand: " + describe(phase(), outcome.operation));
        const std::uint64_t left = std::uint64_t{1} << phase().operations[winner->operation].key;
        if (&outcome != winner && outcome.values[0] != left)
            failed(describe(phase(), outcome.operation) + ": expected " + number(left) + ", which " +
                   describe(phase(), winner->operation) + " left, found " + number(outcome.values[0]));
        std::copy_n(reinterpret_cast<const unsigned char*>(&left), o.bytes(), model_.window(o.target).data() + o.at);
    }
}

void RoundRun::check_tickets(int area) {
    const Area& a = phase().areas[static_cast<std::size_t>(area)];
    for (std::size_t at = a.at; at < a.at + a.bytes; at += bytes_of(a.element)) check_location(area, at);
}

// Checks one element of the window.
void RoundRun::check_location(int area, std::size_t at) {
    std::vector<Seen> seen;
    std::uint64_t all = 0;
    for (const Outcome& outcome : outcomes_) {
        const Operation& o = phase().operations[outcome.operation];
        if (o.area != area || at < o.at) continue;
        std::size_t element = 0;
        bool found = false;
        const Shape shape(o.at_target);
        for (const Shape::Block& b : shape.blocks()) {
            found = at - o.at >= b.at && at - o.at < b.at + b.bytes;
            if (found) element += (at - o.at - b.at) / bytes_of(o.at_target.element);
            if (found) break;
            element += b.bytes / bytes_of(o.at_target.element);
        }
        if (!found) continue;
        const std::uint64_t bit = o.has_operand() ? std::uint64_t{1} << o.key : 0;
        const bool fetched = !outcome.values.empty();
        seen.push_back({outcome.operation, fetched, fetched ? outcome.values[element] : 0, bit});
        all |= bit;
    }
    const auto wrong = [&](const Seen& s, const std::string& why) {
        failed(describe(phase(), s.operation) + " fetched " + number(s.value) + " at offset " + std::to_string(at) +
               ": " + why);
    };
    for (const Seen& s : seen)
        if (s.fetched && (s.value & ~(all & ~s.bit)) != 0)
            wrong(s, "bits that no other operation sets (they set " + number(all) + ")");
    for (std::size_t i = 0; i < seen.size(); ++i) {
        for (std::size_t j = i + 1; j < seen.size(); ++j) {
            const Seen &a = seen[i], &b = seen[j];
            const Operation &first = phase().operations[a.operation], &second = phase().operations[b.operation];
            if (first.origin == second.origin && first.thread == second.thread && first.visit == second.visit &&
                !round_.window.unordered) {
                if (b.fetched && (b.value & a.bit) != a.bit)
                    wrong(b, "without the earlier " + describe(phase(), a.operation));
                if (a.fetched && (a.value & b.bit) != 0) wrong(a, "with the later " + describe(phase(), b.operation));
            }
            if (!a.fetched || !b.fetched) continue;
            const std::uint64_t both = a.value & b.value;
            const std::string other = describe(phase(), b.operation) + ", which fetched " + number(b.value);
            if (both != a.value && both != b.value) wrong(a, "neither before nor after " + other);
            if (a.bit != 0 && b.bit != 0 && ((a.value & b.bit) != 0) == ((b.value & a.bit) != 0))
                wrong(a, "both or none of it and " + other + ", came first");
        }
    }
}

}  // namespace rma_storm
