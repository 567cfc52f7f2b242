// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of one round: the messages of all ranks, and the receives for them. Every
// rank computes the same plan from the seed, without communication.
//
// Receives with wildcards may match in many ways. So that all messages are received in
// every case, the receives of one communicator on one rank follow one of these regimes
// in a round:
//
//     specific    every receive names source and tag
//     any_tag     every receive names its source only
//     any_source  every receive names its tag only
//     wild        every receive has both wildcards
//     nested      first specific ones, then half-wild of one kind, then wild:
//                 a later one never takes what an earlier one needs
//     uniform     all messages have the same source and tag: any mix, any order
#pragma once

#include <cstdint>
#include <vector>

#include "channels.h"
#include "layout.h"
#include "options.h"

namespace storm {

enum class Mode { kStandard, kSynchronous, kBuffered, kReady };
enum class Form { kBlocking, kNonblocking, kPersistent };
enum class Regime { kSpecific, kAnyTag, kAnySource, kWild, kNested, kUniform, kCount };

// How the ranks perform a round.
enum class Style {
    kPosted,      // all receives, a barrier, then the sends: also blocking and ready ones
    kUnexpected,  // all sends, then the receives: also blocking ones, and all kinds of probe
    kMixed,       // sends and receives in a random order; only buffered sends may be blocking
    kCount
};

struct Message {
    int channel;
    int source, target;  // world ranks
    int tag;
    std::size_t bytes;
    Mode mode;
    Form form;
    LayoutKind layout;
    std::uint64_t key;  // gives its contents
};

struct ReceivePlan {
    int channel;
    int source;  // world rank, or MPI_ANY_SOURCE
    int tag;     // or MPI_ANY_TAG
    std::size_t capacity;
    LayoutKind layout;
    bool may_repost;  // true if ordering allows to cancel and repost it
    std::uint64_t key;
};

struct Round {
    std::uint64_t key;
    Style style;
    std::vector<Message> messages;  // in the order in which each source sends
};

// A tag without messages on any channel.
constexpr int kUnusedTag = 4242;

Round make_round(const Options& options, const std::vector<Channel>& channels, int world_size, int thread,
                 std::uint64_t index);

// The receives of world rank `self`, in the order of posting.
std::vector<ReceivePlan> plan_receives(const Round& round, const std::vector<Channel>& channels, int self);

}  // namespace storm
