// SPDX-License-Identifier: BSD-3-Clause
//
// A channel for the tests of the schedulers: rails with rates and a latency, a
// sender that keeps several messages in flight, completions found in sweeps. It uses
// no clock and a fixed sequence of random numbers, so that runs are reproducible.
//
// Units: bytes, nanoseconds, MB/s (10^6).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "coop/sched/scheduler.h"

namespace coop::sched::sim {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

inline RailSet rails_of(std::size_t count, std::uint64_t bytes_per_s = 0) {
    RailSet rails;
    for (std::size_t i = 0; i < count; ++i) {
        RailInfo info;
        info.hca = static_cast<std::uint16_t>(i);
        info.bytes_per_s = bytes_per_s;
        if (!rails.add(info)) break;
    }
    return rails;
}

class Channel {
public:
    Channel(const Channel&) = delete;  // the scheduler points to the configuration
    Channel& operator=(const Channel&) = delete;

    Channel(const SchedConfig& settings, const std::vector<double>& rates)
        : config(settings), scheduler(config, rails_of(rates.size())) {
        for (double rate : rates) links_.push_back({rate, 0, {}});
    }

    // Sets the rate of the rail from this message on, for everything that the rail
    // starts then, including stripes posted before.
    void set_rate_at(std::size_t message, std::size_t rail, double mb_per_s) {
        changes_.push_back({message, rail, mb_per_s});
    }

    // Sends `count` messages, with `window` of them in flight.
    void send(std::size_t count, std::uint64_t bytes, std::size_t window, Marker marker = Marker::kNone) {
        for (std::size_t left = count; left != 0 || under_way_ != 0;) {
            for (; left != 0 && under_way_ < window; --left) post(bytes, marker);
            sweep();
        }
    }

    // Sends a whole message as a fragment: by the policy for small messages, and not measured. It stays in flight until
    // a later sweep.
    void send_fragment(std::uint64_t bytes) {
        change_rates();
        missing_.push_back(1);
        bytes_.push_back(bytes);
        completed_ns_.push_back(0);
        ++under_way_;
        post_stripe({0, bytes, 1, scheduler.rail_of_small(bytes)}, missing_.size() - 1, kNotMeasured);
    }

    // Posts one message and does not wait for it. The next send() does.
    void begin(std::uint64_t bytes, Marker marker = Marker::kNone) { post(bytes, marker); }

    // Lets time pass with nothing in flight.
    void wait(std::uint64_t ns) { now_ns_ += ns; }

    // Sends in bursts, as bandwidth tests do: each burst starts when the one before is complete.
    void send_bursts(std::size_t bursts, std::size_t messages, std::uint64_t bytes) {
        for (std::size_t i = 0; i < bursts; ++i) send(messages, bytes, messages);
    }

    // MB/s of the messages [first, last), in the order of completion.
    double bandwidth(std::size_t first, std::size_t last) const {
        std::vector<std::uint64_t> at = completed_ns_;
        std::sort(at.begin(), at.end());
        std::uint64_t bytes = 0;
        for (std::size_t i = first; i < last; ++i) bytes += bytes_[i];
        const std::uint64_t from = first == 0 ? 0 : at[first - 1];
        return 1000.0 * static_cast<double>(bytes) / static_cast<double>(at[last - 1] - from);
    }
    std::size_t sent() const { return bytes_.size(); }
    double weight(RailIndex rail) const { return scheduler.rails()[rail].weight / kTotalWeight; }

    const SchedConfig config;
    Scheduler scheduler;
    std::uint64_t latency_ns = 5000;
    std::uint64_t post_ns = 300;       // cost of each stripe at the sender
    std::uint64_t sweep_every_ns = 1;  // sweeps find completions at multiples of this
    std::uint64_t late_every = 0;      // one sweep in this many, at random, is late; 0: none
    std::uint64_t late_ns = 0;         // by at most this: the process did not run
    std::uint64_t jitter_ns = 0;       // all other sweeps are late by at most this

private:
    struct OnWire {
        std::uint64_t ready_ns, posted_ns,
            bytes;  // ready_ns: earliest time on the wire; posted_ns: as reported to the scheduler
        std::size_t message;
    };
    struct Link {
        double mb_per_s;
        std::uint64_t done_ns;  // end of the front element, once it has begun
        std::deque<OnWire> queue;
    };
    struct Change {
        std::size_t message, rail;
        double mb_per_s;
    };

    void change_rates() {
        for (const Change& change : changes_)
            if (change.message == sent()) links_[change.rail].mb_per_s = change.mb_per_s;
    }

    void post(std::uint64_t bytes, Marker marker) {
        change_rates();
        const Schedule schedule = scheduler.make_schedule(bytes, marker, now_ns_);
        const std::uint64_t posted_ns = schedule.is_measured() ? now_ns_ : kNotMeasured;
        missing_.push_back(schedule.size());
        bytes_.push_back(bytes);
        completed_ns_.push_back(0);
        ++under_way_;
        for (const Stripe& stripe : schedule) post_stripe(stripe, missing_.size() - 1, posted_ns);
    }

    void post_stripe(const Stripe& stripe, std::size_t message, std::uint64_t posted_ns) {
        Link& link = links_[stripe.rail];
        link.queue.push_back({now_ns_, posted_ns, stripe.length_bytes, message});
        if (link.queue.size() == 1) begin_front(link, now_ns_);
        scheduler.on_posted(stripe.rail, stripe.length_bytes, posted_ns);
        now_ns_ += post_ns;
    }

    static void begin_front(Link& link, std::uint64_t start_ns) {
        link.done_ns = start_ns + static_cast<std::uint64_t>(1000.0 * static_cast<double>(link.queue.front().bytes) /
                                                             link.mb_per_s);
    }

    // The next sweep that finds a completion: reads the queue of one rail after the other.
    void sweep() {
        std::uint64_t first = UINT64_MAX;
        for (const Link& link : links_)
            if (!link.queue.empty()) first = std::min(first, link.done_ns + latency_ns);
        now_ns_ = std::max(now_ns_, (first + sweep_every_ns - 1) / sweep_every_ns * sweep_every_ns);
        if (late_every != 0 && chance() % late_every == 0) now_ns_ += chance() % (late_ns + 1);
        else if (jitter_ns != 0) now_ns_ += chance() % (jitter_ns + 1);
        for (RailIndex rail = 0; rail < links_.size(); ++rail) sweep(rail);
    }

    void sweep(RailIndex rail) {
        Link& link = links_[rail];
        while (!link.queue.empty() && link.done_ns + latency_ns <= now_ns_) {
            const OnWire stripe = link.queue.front();
            link.queue.pop_front();
            scheduler.on_completed(rail, stripe.bytes, stripe.posted_ns, now_ns_);
            if (!link.queue.empty()) begin_front(link, std::max(link.done_ns, link.queue.front().ready_ns));
            if (--missing_[stripe.message] != 0) continue;
            completed_ns_[stripe.message] = now_ns_;
            --under_way_;
        }
    }

    std::uint64_t chance() noexcept {
        seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
        return seed_ >> 33;
    }

    std::vector<Link> links_;
    std::vector<Change> changes_;
    std::vector<std::size_t> missing_;                 // stripes, by message
    std::vector<std::uint64_t> bytes_, completed_ns_;  // by message
    std::uint64_t now_ns_ = 0, seed_ = 1;
    std::size_t under_way_ = 0;
};

}  // namespace coop::sched::sim
