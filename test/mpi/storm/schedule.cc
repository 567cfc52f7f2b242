// SPDX-License-Identifier: BSD-3-Clause
#include "schedule.h"

#include <mpi.h>

#include <algorithm>
#include <cmath>

namespace storm {
namespace {

using pattern::Random;

constexpr int kMessagesPerRank = 10;  // per round
// Limits of stock transports and pml/coop. A message has one of these sizes, plus or
// minus a header, as often as a random size.
constexpr std::size_t kEdges[] = {0, 1, 64, 256, 1024, 4096, 8192, 32768, 65536, 131072, 262144, 1u << 20};
constexpr int kTags[] = {0, 1, 2, 77777, 0x3fffffff};  // none near MPI_TAG_UB: pml/ucx has only 23 bits
constexpr int kTagStride = 8;                          // per thread, on shared channels

std::size_t draw_bytes(Random& random, std::size_t max_bytes) {
    std::size_t bytes;
    if (random.one_in(2)) {
        const double u = static_cast<double>(random.below(1u << 30)) / (1u << 30);
        bytes = static_cast<std::size_t>(std::exp(u * std::log(static_cast<double>(max_bytes) + 1))) - 1;
    } else {
        bytes = kEdges[random.below(std::size(kEdges))] + random.below(9);
        // below the edge by up to two headers, or just above it
        if (random.one_in(2)) bytes -= std::min<std::size_t>(bytes, random.below(160));
    }
    return std::min(bytes, max_bytes);
}

int draw_tag(Random& random) {
    static const int highest = [] {
        int *bound = nullptr, set = 0;
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &set);
        return set != 0 ? *bound : 32767;
    }();
    return std::min(kTags[random.below(std::size(kTags))], highest);
}

Mode draw_mode(Random& random, Style style, bool buffer, std::size_t bytes) {
    switch (random.below(8)) {
    case 0:
    case 1: return Mode::kSynchronous;
    case 2: return buffer && bytes <= 256 * 1024 ? Mode::kBuffered : Mode::kStandard;
    case 3: return style == Style::kPosted ? Mode::kReady : Mode::kStandard;
    default: return Mode::kStandard;
    }
}

Form draw_form(Random& random, Style style, Mode mode) {
    // A blocking send is safe if the receive is posted, or if the send is buffered.
    const bool blocking = style == Style::kPosted || mode == Mode::kBuffered;
    if (random.one_in(4)) return Form::kPersistent;
    return blocking && random.one_in(2) ? Form::kBlocking : Form::kNonblocking;
}

LayoutKind draw_layout(Random& random) {
    return random.one_in(2) ? LayoutKind::kContiguous
                            : static_cast<LayoutKind>(random.below(static_cast<std::uint64_t>(LayoutKind::kCount)));
}

// The receiver and its senders compute the same regime from this.
Regime regime_of(std::uint64_t round_key, const Channel& channel, int channel_index, int target) {
    Random random(
        pattern::key({round_key, 7, static_cast<std::uint64_t>(channel_index), static_cast<std::uint64_t>(target)}));
    // Other threads receive on it, too: the tag distinguishes their messages.
    if (channel.shared) return random.one_in(2) ? Regime::kSpecific : Regime::kAnySource;
    return static_cast<Regime>(random.below(static_cast<std::uint64_t>(Regime::kCount)));
}

Message draw_message(Random& random, const Options& options, const std::vector<Channel>& channels, int thread,
                     int source, const Round& round) {
    Message m;
    do m.channel = static_cast<int>(random.below(channels.size()));
    while (!channels[static_cast<std::size_t>(m.channel)].has(source));
    const Channel& channel = channels[static_cast<std::size_t>(m.channel)];
    const std::vector<int>& targets = channel.targets(source);
    m.source = source;
    m.target = targets[random.below(targets.size())];
    m.tag = channel.shared ? thread * kTagStride + static_cast<int>(random.below(kTagStride)) : draw_tag(random);
    m.bytes = draw_bytes(random, options.max_bytes);
    m.mode = draw_mode(random, round.style, thread == 0, m.bytes);
    m.form = draw_form(random, round.style, m.mode);
    m.layout = draw_layout(random);
    m.key = random.next();
    return m;
}

// In the uniform regime all messages to one target have the same source and tag;
// other messages are removed.
void make_uniform(Round& round, const std::vector<Channel>& channels) {
    std::vector<Message> kept;
    for (Message m : round.messages) {
        if (regime_of(round.key, channels[static_cast<std::size_t>(m.channel)], m.channel, m.target) ==
            Regime::kUniform) {
            auto same = std::find_if(kept.begin(), kept.end(),
                                     [&](const Message& k) { return k.channel == m.channel && k.target == m.target; });
            if (same != kept.end()) {
                if (same->source != m.source) continue;
                m.tag = same->tag;
            }
        }
        kept.push_back(m);
    }
    round.messages = std::move(kept);
}

// `openness`: the number of wildcards. With one, `half_any_tag` decides whether it replaces
// the tag or the source.
void open_up(ReceivePlan& plan, std::uint64_t openness, bool half_any_tag) {
    if (openness == 2 || (openness == 1 && !half_any_tag)) plan.source = MPI_ANY_SOURCE;
    if (openness == 2 || (openness == 1 && half_any_tag)) plan.tag = MPI_ANY_TAG;
}

bool matches(const ReceivePlan& plan, const Message& m) {
    return plan.channel == m.channel && (plan.source == MPI_ANY_SOURCE || plan.source == m.source) &&
           (plan.tag == MPI_ANY_TAG || plan.tag == m.tag);
}

}  // namespace

Round make_round(const Options& options, const std::vector<Channel>& channels, int world_size, int thread,
                 std::uint64_t index) {
    Round round;
    round.key = pattern::key({options.seed, static_cast<std::uint64_t>(thread), index});
    Random random(round.key);
    round.style = static_cast<Style>(random.below(static_cast<std::uint64_t>(Style::kCount)));
    for (int i = 0; i < kMessagesPerRank * world_size; ++i) {
        const int source = static_cast<int>(random.below(static_cast<std::uint64_t>(world_size)));
        round.messages.push_back(draw_message(random, options, channels, thread, source, round));
    }
    make_uniform(round, channels);
    return round;
}

std::vector<ReceivePlan> plan_receives(const Round& round, const std::vector<Channel>& channels, int self) {
    struct Placed {
        std::uint64_t place;
        ReceivePlan plan;
    };
    std::vector<Placed> placed;
    for (const Message& m : round.messages) {
        if (m.target != self) continue;
        const Channel& channel = channels[static_cast<std::size_t>(m.channel)];
        const Regime regime = regime_of(round.key, channel, m.channel, self);
        Random random(pattern::key({m.key, 11}));
        ReceivePlan plan{m.channel, m.source, m.tag, 0, draw_layout(random), true, random.next()};
        std::uint64_t place = random.next() >> 2;
        switch (regime) {
        case Regime::kAnyTag: open_up(plan, 1, true); break;
        case Regime::kAnySource: open_up(plan, 1, false); break;
        case Regime::kWild: open_up(plan, 2, false); break;
        case Regime::kUniform: open_up(plan, random.below(3), random.one_in(2)); break;
        case Regime::kNested: {
            const std::uint64_t openness = random.below(3);
            open_up(plan, openness, (round.key >> 8 & 1) != 0);
            place |= openness << 62;  // after all narrower ones
            plan.may_repost = false;
            break;
        }
        case Regime::kSpecific:
        case Regime::kCount: break;
        }
        placed.push_back({place, plan});
    }
    std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.place < b.place; });

    std::vector<ReceivePlan> plans;
    for (Placed& p : placed) {
        for (const Message& m : round.messages)
            if (m.target == self && matches(p.plan, m)) p.plan.capacity = std::max(p.plan.capacity, m.bytes);
        plans.push_back(p.plan);
    }
    return plans;
}

}  // namespace storm
