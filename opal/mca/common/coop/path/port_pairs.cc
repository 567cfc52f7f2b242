// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/port_pairs.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

namespace coop::path {
namespace {

// A process's ports, sorted by position on the node. `wishes[i]`: index of port i in the original list.
struct Ports {
    std::vector<PortRecord> by_place;
    std::vector<std::size_t> wishes;
};

auto place_of(const PortRecord& port) { return std::tuple(port.position, port.hca, port.port, port.lid, port.gid); }

Ports sorted(std::span<const PortRecord> list) {
    Ports ports;
    ports.wishes.resize(std::min(list.size(), kMaxPorts));
    std::iota(ports.wishes.begin(), ports.wishes.end(), 0);
    std::stable_sort(ports.wishes.begin(), ports.wishes.end(),
                     [&](std::size_t a, std::size_t b) { return place_of(list[a]) < place_of(list[b]); });
    for (const std::size_t wish : ports.wishes) ports.by_place.push_back(list[wish]);
    return ports;
}

// An order of the two processes that both sides compute alike.
bool comes_before(const Ports& a, const Ports& b) {
    for (std::size_t i = 0; i < std::min(a.by_place.size(), b.by_place.size()); ++i)
        if (const int order = std::memcmp(&a.by_place[i], &b.by_place[i], sizeof(PortRecord)); order != 0)
            return order < 0;
    return std::pair(a.by_place.size(), a.wishes) < std::pair(b.by_place.size(), b.wishes);
}

// Two ports that reach each other, as indices of `by_place`.
struct Match {
    std::size_t a, b;
};

bool share_a_plane(const PortRecord& x, const PortRecord& y) { return x.plane != 0 && x.plane == y.plane; }

// Smaller is better.
auto unfitness(const Ports& a, const Ports& b, const Match& match) {
    const PortRecord &x = a.by_place[match.a], &y = b.by_place[match.b];
    const bool same_rate = x.rate_mbytes_per_s == y.rate_mbytes_per_s;
    const bool same_place = x.position == y.position && x.port == y.port;
    const std::int64_t rate = same_rate ? 0 : std::min(x.rate_mbytes_per_s, y.rate_mbytes_per_s);
    return std::tuple(!share_a_plane(x, y), !same_rate, !(same_rate && same_place), -rate, match.a + match.b,
                      std::min(match.a, match.b), match.a);
}

std::vector<Match> all_matches(const Ports& a, const Ports& b, Reach reach) {
    std::vector<std::pair<decltype(unfitness(a, b, Match{})), Match>> ranked;
    for (std::size_t i = 0; i < a.by_place.size(); ++i)
        for (std::size_t j = 0; j < b.by_place.size(); ++j)
            if (reach_each_other(a.by_place[i], b.by_place[j], reach))
                ranked.emplace_back(unfitness(a, b, {i, j}), Match{i, j});
    std::sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    std::vector<Match> matches;
    for (const auto& [unfit, match] : ranked) matches.push_back(match);
    return matches;
}

// How much a port is used by the pairs so far.
struct Use {
    std::int64_t spare;  // unused part of its rate, in MB/s; negative if its pairs can exceed the rate
    std::size_t pairs = 0;
};

class Pairing {
public:
    Pairing(const Ports& a, const Ports& b, Reach reach)
        : a_(a), b_(b), matches_(all_matches(a, b, reach)), uses_a_(uses_of(a)), uses_b_(uses_of(b)) {
        for (const Match& match : matches_)
            if (uses_a_[match.a].pairs == 0 && uses_b_[match.b].pairs == 0) add(match);
        std::sort(pairs_.begin(), pairs_.end(),
                  [](const Match& x, const Match& y) { return std::tie(x.a, x.b) < std::tie(y.a, y.b); });
        for (std::size_t i = 0; i < uses_a_.size(); ++i)
            if (uses_a_[i].pairs == 0)
                add_left_over([i](const Match& m) { return m.a == i; },
                              [this](const Match& m) -> const Use& { return uses_b_[m.b]; });
        for (std::size_t j = 0; j < uses_b_.size(); ++j)
            if (uses_b_[j].pairs == 0)
                add_left_over([j](const Match& m) { return m.b == j; },
                              [this](const Match& m) -> const Use& { return uses_a_[m.a]; });
    }

    const std::vector<Match>& pairs() const { return pairs_; }

private:
    static std::vector<Use> uses_of(const Ports& ports) {
        std::vector<Use> uses;
        for (const PortRecord& port : ports.by_place) uses.push_back({port.rate_mbytes_per_s});
        return uses;
    }

    void add(const Match& match) {
        const std::int64_t rate = std::min(a_.by_place[match.a].rate_mbytes_per_s,
                                           b_.by_place[match.b].rate_mbytes_per_s);
        for (Use* use : {&uses_a_[match.a], &uses_b_[match.b]}) {
            use->spare -= rate;
            ++use->pairs;
        }
        pairs_.push_back(match);
    }

    // Adds the best match of a port without a pair: the one whose other port has the most spare rate; if equal,
    // the fewest pairs.
    template <class IsOfPort, class OtherUse>
    void add_left_over(IsOfPort is_of_port, OtherUse other_use) {
        const Match* best = nullptr;
        const auto key = [&](const Match& m) { return std::tuple(-other_use(m).spare, other_use(m).pairs, m.a, m.b); };
        for (const Match& match : matches_)
            if (is_of_port(match) && (best == nullptr || key(match) < key(*best))) best = &match;
        if (best != nullptr) add(*best);
    }

    const Ports &a_, &b_;
    std::vector<Match> matches_;
    std::vector<Use> uses_a_, uses_b_;
    std::vector<Match> pairs_;
};

// The ports of a process, reduced to the first `count` of its list.
Ports first_ports(const Ports& ports, std::size_t count) {
    Ports first;
    for (std::size_t i = 0; i < ports.by_place.size(); ++i) {
        if (ports.wishes[i] >= count) continue;
        first.by_place.push_back(ports.by_place[i]);
        first.wishes.push_back(ports.wishes[i]);
    }
    return first;
}

// Keeps the `most` pairs that both processes prefer.
void leave_out(std::vector<PortPair>& pairs, std::size_t most) {
    std::vector<PortPair> wanted = pairs;
    std::stable_sort(wanted.begin(), wanted.end(),
                     [](const PortPair& x, const PortPair& y) { return x.local + x.remote < y.local + y.remote; });
    wanted.resize(std::min(most, wanted.size()));
    std::erase_if(pairs,
                  [&](const PortPair& pair) { return std::find(wanted.begin(), wanted.end(), pair) == wanted.end(); });
}

// All pairs, as indices into the lists.
std::vector<PortPair> pair_all(const Ports& a, const Ports& b, Reach reach) {
    const Pairing pairing(a, b, reach);
    std::vector<PortPair> pairs;
    for (const Match& match : pairing.pairs()) pairs.push_back({a.wishes[match.a], b.wishes[match.b]});
    return pairs;
}

std::vector<PortPair> pair_in_order(const Ports& a, const Ports& b, Reach reach, std::size_t most) {
    std::vector<PortPair> pairs = pair_all(a, b, reach);
    if (most == 0 || pairs.size() <= most) return pairs;
    for (std::size_t count = 1; count <= std::max(a.by_place.size(), b.by_place.size()); ++count) {
        pairs = pair_all(first_ports(a, count), first_ports(b, count), reach);
        if (pairs.size() >= most) break;
    }
    leave_out(pairs, most);
    return pairs;
}

}  // namespace

std::vector<PortPair> pair_ports(std::span<const PortRecord> local, std::span<const PortRecord> remote,
                                 std::size_t most) {
    const Ports ours = sorted(local), theirs = sorted(remote);
    const Reach reach = reach_between(local, remote);
    if (!comes_before(theirs, ours)) return pair_in_order(ours, theirs, reach, most);
    std::vector<PortPair> pairs = pair_in_order(theirs, ours, reach, most);
    for (PortPair& pair : pairs) std::swap(pair.local, pair.remote);
    return pairs;
}

}  // namespace coop::path
