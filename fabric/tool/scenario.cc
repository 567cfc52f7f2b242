// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/scenario.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <sstream>

#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

constexpr std::int64_t kLookEvery_ns = 1'000'000;  // interval at which the message count is checked

// Takes "at TIME" or "after N messages" off the words.
Error take_when(Words& words, ScenarioEvent& event) {
    if (words[0] == "at") {
        const auto ns = words.size() < 2 ? std::nullopt : parse_time_ns(words[1]);
        if (!ns) return bad_value("at", words.size() < 2 ? "" : words[1], kTimeWords);
        event.at_ns = *ns;
        words.erase(words.begin(), words.begin() + 2);
        return {};
    }
    if (words[0] == "after") {
        if (words.size() < 3 || words[2] != "messages")
            return {"'after' goes with a number and 'messages': after 500 messages …"};
        if (Error error = parse_in_range("after", words[1], 0, ~std::uint64_t{0} >> 1, event.after_count)) return error;
        words.erase(words.begin(), words.begin() + 3);
        return {};
    }
    return {"'" + words[0] + "' is neither 'at' nor 'after': a line is 'at TIME ACTION' or 'after N messages ACTION'"};
}

std::uint64_t sent_messages(const Segment& subnet) {
    std::uint64_t sum = 0;
    for (const Port& port : subnet.ports()) sum += port.counters.sent_messages.load(std::memory_order_relaxed);
    return sum;
}

// Sleeps until that time; returns false if told to stop.
bool sleep_until(std::int64_t time_ns, const std::stop_token& stop) {
    std::mutex lock;
    std::condition_variable_any stopped;
    std::unique_lock guard(lock);
    while (!stop.stop_requested()) {
        const std::int64_t left_ns = time_ns - now_ns();
        if (left_ns <= 0) return true;
        stopped.wait_for(guard, stop, std::chrono::nanoseconds(left_ns), [] { return false; });
    }
    return false;
}

}  // namespace

Error Scenario::parse(const Segment& subnet, const std::string& name, std::string_view text) {
    name_ = name;
    std::istringstream lines{std::string(text)};
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        std::istringstream stream(line.substr(0, line.find('#')));
        Words words;
        for (std::string word; stream >> word;) words.push_back(word);
        if (words.empty()) continue;
        ScenarioEvent event{number, -1, 0, {}};
        Error error = take_when(words, event);
        if (!error) error = parse_action(subnet, words, event.action);
        if (error) return {name + ":" + std::to_string(number) + ": " + error.text};
        events_.push_back(std::move(event));
    }
    std::ranges::stable_sort(events_, [](const ScenarioEvent& x, const ScenarioEvent& y) {
        const bool x_is_counted = x.at_ns < 0, y_is_counted = y.at_ns < 0;
        if (x_is_counted != y_is_counted) return y_is_counted;
        return x_is_counted ? x.after_count < y.after_count : x.at_ns < y.at_ns;
    });
    return {};
}

Error Scenario::read(const Segment& subnet, const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    if (!file || !(text << file.rdbuf())) return {"cannot read the scenario '" + path + "', or it is empty"};
    return parse(subnet, path, text.str());
}

void Scenario::run(const Segment& subnet, const std::stop_token& stop) const {
    const std::int64_t start_ns = now_ns();
    const std::uint64_t start_count = sent_messages(subnet);
    const auto counted_begin = std::ranges::find_if(events_,
                                                    [](const ScenarioEvent& event) { return event.at_ns < 0; });
    auto timed = events_.begin(), counted = counted_begin;
    const auto perform = [&](const ScenarioEvent& event) {
        if (const Error error = event.action(subnet))
            std::fprintf(stderr, "coop-fabric: %s:%d: %s\n", name_.c_str(), event.line, error.text.c_str());
    };
    while (timed != counted_begin || counted != events_.end()) {
        std::int64_t next_ns = timed != counted_begin ? start_ns + timed->at_ns : now_ns() + kLookEvery_ns;
        if (counted != events_.end()) next_ns = std::min(next_ns, now_ns() + kLookEvery_ns);
        if (!sleep_until(next_ns, stop)) return;
        for (; timed != counted_begin && now_ns() >= start_ns + timed->at_ns; ++timed) perform(*timed);
        for (; counted != events_.end() && sent_messages(subnet) - start_count >= counted->after_count; ++counted)
            perform(*counted);
    }
}

}  // namespace coop::fabric
