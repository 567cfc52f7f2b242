// SPDX-License-Identifier: BSD-3-Clause
//
// A list of actions with the time, or the count, when each is due. One per line,
// comments behind '#':
//
//     at 1.2s port h1/coop0/1 down
//     at 1.5s port h1/coop0/1 up
//     after 500 messages lid 0x3 down
//
// Times are from the start of the scenario; counts are messages that all ports
// of the subnet have sent since then, looked at every millisecond.
//
// Threading: parsed and run by one thread each, one after the other.
// Errors: "FILE:LINE: what is wrong", before anything is done.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/tool/action.h"

namespace coop::fabric {

struct ScenarioEvent {
    int line;
    std::int64_t at_ns;         // from the start; -1: counted
    std::uint64_t after_count;  // messages
    Action action;
};

class Scenario {
public:
    Error parse(const Segment& subnet, const std::string& name, std::string_view text);
    Error read(const Segment& subnet, const std::string& path);
    // Does everything at its time; returns when nothing is left, or when told to stop. Actions that fail are reported on stderr.
    void run(const Segment& subnet, const std::stop_token& stop) const;

    const std::vector<ScenarioEvent>& events() const { return events_; }  // timed ones by time, then counted ones by count

private:
    std::string name_;
    std::vector<ScenarioEvent> events_;
};

}  // namespace coop::fabric
