// SPDX-License-Identifier: BSD-3-Clause
//
// The plan of one round: which messages all ranks send, and how each receiver
// asks for them. Every rank computes the same plan from the seed; nothing is
// communicated about it.
//
// Receives with wildcards may match in many ways. So that every way ends well,
// the receives of one communicator on one rank follow one of these regimes in
// a round:
//
//     specific    every receive names source and tag
//     any_tag     every receive names its source only
//     any_source  every receive names its tag only
//     wild        no receive names anything
//     nested      first specific ones, then half-wild of one kind, then wild:
//                 a later one never takes what an earlier one needs
//     uniform     all messages have one source and one tag: any mix, any order
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

// How the ranks go about a round.
enum class Style {
    kPosted,      // all receives, a barrier, then the sends: blocking and ready ones too
    kUnexpected,  // all sends, then the receives: blocking ones, all kinds of probe
    kMixed,       // sends and receives in a random order, all nonblocking
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
    std::uint64_t key;  // of its contents
};

struct ReceivePlan {
    int channel;
    int source;  // world rank, or MPI_ANY_SOURCE
    int tag;     // or MPI_ANY_TAG
    std::size_t capacity;
    LayoutKind layout;
    bool may_repost;  // whether order allows to cancel it and to post it again
    std::uint64_t key;
};

struct Round {
    std::uint64_t key;
    Style style;
    std::vector<Message> messages;  // in the order in which each source sends
};

// A tag that no message has, on any channel.
constexpr int kUnusedTag = 4242;

Round make_round(const Options& options, const std::vector<Channel>& channels, int world_size, int thread,
                 std::uint64_t index);

// The receives of world rank `self`, in the order to post them.
std::vector<ReceivePlan> plan_receives(const Round& round, const std::vector<Channel>& channels, int self);

}  // namespace storm
