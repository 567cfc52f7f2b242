// SPDX-License-Identifier: BSD-3-Clause
//
// A list of actions, each with the time or the message count at which it is due.
// One per line; comments begin with '#':
//
//     at 1.2s port h1/coop0/1 down
//     at 1.5s port h1/coop0/1 up
//     after 500 messages lid 0x3 down
//
// Times are relative to the start of the scenario; counts are messages sent by all
// ports of the subnet since then, checked every millisecond.
//
// Threading: one thread parses, then one thread runs it.
// Errors: "FILE:LINE: what is wrong", before any action is performed.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/tool/action.h"

namespace coop::fabric {

struct ScenarioEvent {
    int line;
    std::int64_t at_ns;         // relative to the start; -1: due at a count
    std::uint64_t after_count;  // messages
    Action action;
};

class Scenario {
public:
    Error parse(const Segment& subnet, const std::string& name, std::string_view text);
    Error read(const Segment& subnet, const std::string& path);
    // Performs each action when it is due; returns after the last one, or when told to stop. Prints failures to stderr.
    void run(const Segment& subnet, const std::stop_token& stop) const;

    const std::vector<ScenarioEvent>& events() const {
        return events_;
    }  // timed ones by time, then counted ones by count

private:
    std::string name_;
    std::vector<ScenarioEvent> events_;
};

}  // namespace coop::fabric
