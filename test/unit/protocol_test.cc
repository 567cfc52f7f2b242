// SPDX-License-Identifier: BSD-3-Clause
//
// rndv/protocol.h: the decision as a table, and the words for it.
#include "coop/rndv/protocol.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace coop::rndv {

std::ostream& operator<<(std::ostream& out, const Choice& choice) {
    return out << name(choice.row) << " (" << text(choice.reason) << "), split " << static_cast<int>(choice.split);
}

namespace {

constexpr std::size_t kEagerLimit = 4096;

Situation large() {
    Situation s;
    s.bytes = 1 << 20;
    s.eager_limit = kEagerLimit;
    return s;
}

struct Case {
    const char* what;
    Situation situation;
    Choice expected;
};

template <class Change>
Situation with(Situation s, Change change) {
    change(s);
    return s;
}

using S = Situation;

Situation getting() {
    return with(large(), [](S& s) { s.can_get = true; });
}
Situation putting() {
    return with(large(), [](S& s) { s.can_put = true; });
}
Situation both() {
    return with(getting(), [](S& s) { s.can_put = true; });
}

const Case kCases[] = {
    // Up to the eager limit nothing else matters.
    {"empty", with(both(), [](S& s) { s.bytes = 0; }), {Row::kEager, Reason::kFitsEager}},
    {"at the limit", with(both(), [](S& s) { s.bytes = kEagerLimit; }), {Row::kEager, Reason::kFitsEager}},
    {"at the limit, synchronous",
     with(both(),
          [](S& s) {
              s.bytes = kEagerLimit;
              s.synchronous = true;
          }),
     {Row::kEager, Reason::kSynchronousFitsInline}},
    {"at the limit, in pieces, by wish",
     with(both(),
          [](S& s) {
              s.bytes = kEagerLimit;
              s.sender_contiguous = false;
              s.wish = Wish::kRput;
          }),
     {Row::kEager, Reason::kFitsEager}},
    {"beyond the limit", with(both(), [](S& s) { s.bytes = kEagerLimit + 1; }), {Row::kRget, Reason::kReceiverReads}},

    // Without a wish, the transport's abilities decide.
    {"gets and puts", both(), {Row::kRget, Reason::kReceiverReads}},
    {"gets", getting(), {Row::kRget, Reason::kReceiverReads}},
    {"puts", putting(), {Row::kRput, Reason::kNoGet}},
    {"neither", large(), {Row::kSend, Reason::kNoRdma}},
    {"synchronous makes no difference",
     with(both(), [](S& s) { s.synchronous = true; }),
     {Row::kRget, Reason::kReceiverReads}},

    // Thresholds.
    {"below rdma_min", with(both(), [](S& s) { s.rdma_min = s.bytes + 1; }), {Row::kSend, Reason::kBelowRdmaMin}},
    {"nobody waits, below isend_rdma_min",
     with(both(), [](S& s) { s.isend_rdma_min = s.bytes + 1; }),
     {Row::kSend, Reason::kNotAwaited}},
    {"nobody waits, at isend_rdma_min",
     with(both(), [](S& s) { s.isend_rdma_min = s.bytes; }),
     {Row::kRget, Reason::kReceiverReads}},
    {"nobody waits, a slow link",
     with(both(),
          [](S& s) {
              s.isend_rdma_min = s.bytes + 1;
              s.link = Link::kSlow;
          }),
     {Row::kSend, Reason::kSlowLink}},
    {"nobody waits, a fast link", with(both(), [](S& s) { s.link = Link::kFast; }), {Row::kRget, Reason::kFastLink}},
    {"rget wished, a fast link",
     with(both(),
          [](S& s) {
              s.link = Link::kFast;
              s.wish = Wish::kRget;
          }),
     {Row::kRget, Reason::kForced}},
    {"puts only, a fast link", with(putting(), [](S& s) { s.link = Link::kFast; }), {Row::kRput, Reason::kNoGet}},
    {"the sender waits, below isend_rdma_min",
     with(both(),
          [](S& s) {
              s.isend_rdma_min = s.bytes + 1;
              s.send_call = SendCall::kSend;
          }),
     {Row::kRget, Reason::kReceiverReads}},
    {"rget wished, below isend_rdma_min",
     with(both(),
          [](S& s) {
              s.isend_rdma_min = s.bytes + 1;
              s.wish = Wish::kRget;
          }),
     {Row::kRget, Reason::kForced}},
    {"no RDMA, below isend_rdma_min",
     with(large(), [](S& s) { s.isend_rdma_min = s.bytes + 1; }),
     {Row::kSend, Reason::kNoRdma}},
    {"at rdma_min", with(both(), [](S& s) { s.rdma_min = s.bytes; }), {Row::kRget, Reason::kReceiverReads}},
    {"a small share of the bandwidth",
     with(both(), [](S& s) { s.rdma_share = 0.49; }),
     {Row::kSend, Reason::kStripedOverTransports}},
    {"half of the bandwidth", with(both(), [](S& s) { s.rdma_share = 0.5; }), {Row::kRget, Reason::kReceiverReads}},
    {"no RDMA, hence no share of it", with(large(), [](S& s) { s.rdma_share = 0; }), {Row::kSend, Reason::kNoRdma}},

    // Short pieces (large_pieces is false) cannot go by RDMA, whatever was asked for.
    {"sender in pieces", with(both(), [](S& s) { s.sender_contiguous = false; }), {Row::kSend, Reason::kSenderPieces}},
    {"receiver in pieces",
     with(both(), [](S& s) { s.receiver_contiguous = false; }),
     {Row::kSend, Reason::kReceiverPieces}},
    {"both in pieces",
     with(both(), [](S& s) { s.sender_contiguous = s.receiver_contiguous = false; }),
     {Row::kSend, Reason::kSenderPieces}},
    {"in pieces, rget wished",
     with(both(),
          [](S& s) {
              s.sender_contiguous = false;
              s.wish = Wish::kRget;
          }),
     {Row::kSend, Reason::kSenderPieces}},

    // Wishes that can be met: thresholds do not hold.
    {"rget wished", with(both(), [](S& s) { s.wish = Wish::kRget; }), {Row::kRget, Reason::kForced}},
    {"rput wished", with(both(), [](S& s) { s.wish = Wish::kRput; }), {Row::kRput, Reason::kForced}},
    {"send wished", with(both(), [](S& s) { s.wish = Wish::kSend; }), {Row::kSend, Reason::kForced}},
    {"rput wished, below rdma_min, small share",
     with(both(),
          [](S& s) {
              s.wish = Wish::kRput;
              s.rdma_min = s.bytes + 1;
              s.rdma_share = 0.1;
          }),
     {Row::kRput, Reason::kForced}},

    // Wishes that cannot: the next best, and the reason says so.
    {"rget wished, puts only",
     with(putting(), [](S& s) { s.wish = Wish::kRget; }),
     {Row::kRput, Reason::kForcedUnavailable}},
    {"rput wished, gets only",
     with(getting(), [](S& s) { s.wish = Wish::kRput; }),
     {Row::kRget, Reason::kForcedUnavailable}},
    {"rget wished, no RDMA",
     with(large(), [](S& s) { s.wish = Wish::kRget; }),
     {Row::kSend, Reason::kForcedUnavailable}},
    {"rput wished, no RDMA",
     with(large(), [](S& s) { s.wish = Wish::kRput; }),
     {Row::kSend, Reason::kForcedUnavailable}},

    // Tried in vain.
    {"get refused, puts", with(both(), [](S& s) { s.get_refused = true; }), {Row::kRput, Reason::kGetRefused}},
    {"get refused, gets only", with(getting(), [](S& s) { s.get_refused = true; }), {Row::kSend, Reason::kRdmaRefused}},
    {"put refused, puts only", with(putting(), [](S& s) { s.put_refused = true; }), {Row::kSend, Reason::kRdmaRefused}},
    {"both refused",
     with(both(), [](S& s) { s.get_refused = s.put_refused = true; }),
     {Row::kSend, Reason::kRdmaRefused}},
    {"put refused, gets", with(both(), [](S& s) { s.put_refused = true; }), {Row::kRget, Reason::kReceiverReads}},
    {"rget wished but refused, puts",
     with(both(),
          [](S& s) {
              s.wish = Wish::kRget;
              s.get_refused = true;
          }),
     {Row::kRput, Reason::kGetRefused}},
    {"rget wished but refused, gets only",
     with(getting(),
          [](S& s) {
              s.wish = Wish::kRget;
              s.get_refused = true;
          }),
     {Row::kSend, Reason::kRdmaRefused}},
    {"rput wished but refused, gets",
     with(both(),
          [](S& s) {
              s.wish = Wish::kRput;
              s.put_refused = true;
          }),
     {Row::kRget, Reason::kForcedUnavailable}},
    {"rput wished but refused, puts only",
     with(putting(),
          [](S& s) {
              s.wish = Wish::kRput;
              s.put_refused = true;
          }),
     {Row::kSend, Reason::kRdmaRefused}},
};

// Two processes of one node that share memory; enough cores, nothing else to do.
Situation sharing(SendCall send = SendCall::kIsend, RecvCall recv = RecvCall::kIrecv) {
    return with(both(), [=](S& s) {
        s.same_node = s.can_share = true;
        s.coop_min = 32768;
        s.send_call = send;
        s.recv_call = recv;
    });
}

Situation wishing(Wish wish, Situation s = sharing()) {
    s.wish = wish;
    return s;
}

Situation loaded(Situation s, std::uint64_t sender, std::uint64_t receiver) {
    s.sender_load = sender;
    s.receiver_load = receiver;
    return s;
}

constexpr SendCall kSendCallList[] = {SendCall::kSend, SendCall::kIsend, SendCall::kBsend, SendCall::kSsend,
                                      SendCall::kRsend};
constexpr RecvCall kRecvCallList[] = {RecvCall::kRecv, RecvCall::kIrecv};
constexpr Wish kCooperativeWishes[] = {Wish::kHybrid, Wish::kCoop, Wish::kCoopFixed, Wish::kCoopColl, Wish::kCoopLoad};

constexpr bool is_forced(Wish wish) { return wish == Wish::kRget || wish == Wish::kRput || wish == Wish::kSend; }

// Adds every combination of the transport's abilities and the wish, with sizes on both sides of the eager limit and of
// rdma_min.
void add_transports(std::vector<Situation>& all) {
    for (unsigned bits = 0; bits < 512; ++bits)
        for (std::size_t wish = 0; wish < kWishes; ++wish)
            for (std::size_t bytes :
                 {std::size_t{0}, kEagerLimit, kEagerLimit + 1, std::size_t{65535}, std::size_t{65536}})
                for (double share : {0.0, 0.49, 0.5, 1.0}) {
                    Situation s;
                    s.bytes = bytes;
                    s.eager_limit = kEagerLimit;
                    s.rdma_min = 65536;
                    s.isend_rdma_min = share < 1 ? 0 : 1 << 20;
                    if (bits & 1) s.link = share < 1 ? Link::kFast : Link::kSlow;
                    s.rdma_share = share;
                    s.wish = static_cast<Wish>(wish);
                    s.synchronous = bits & 1;
                    s.sender_contiguous = bits & 2;
                    s.receiver_contiguous = bits & 4;
                    s.can_get = bits & 8;
                    s.can_put = bits & 16;
                    s.get_refused = bits & 32;
                    s.put_refused = bits & 64;
                    s.kernel_copy_denied = bits & 128;
                    s.same_node = bits & 256;
                    all.push_back(s);
                }
}

// Adds combinations of the calls, loads and states of two sides that share memory.
void add_pairs(std::vector<Situation>& all) {
    constexpr std::uint64_t kLoads[][2] = {{0, 0}, {7, 7}, {0, 7}, {3, 7}, {7, 0}, {7, 3}, {0, 1 << 20}, {1 << 20, 0}};
    for (unsigned bits = 0; bits < 256; ++bits)
        for (std::size_t wish = 0; wish < kWishes; ++wish)
            for (std::size_t bytes : {kEagerLimit, std::size_t{32767}, std::size_t{32768}})
                for (const auto& loads : kLoads)
                    for (SendCall send : kSendCallList)
                        for (RecvCall recv : kRecvCallList) {
                            Situation s = loaded(sharing(send, recv), loads[0], loads[1]);
                            s.bytes = bytes;
                            s.wish = static_cast<Wish>(wish);
                            s.slot_free = bits & 1;
                            s.offered = bits & 2;
                            s.receiver_sends = bits & 4;
                            s.crowded = bits & 8;
                            s.get_refused = bits & 16;
                            s.put_refused = bits & 32;
                            s.sender_contiguous = bits & 64;
                            s.large_pieces = bits & 128;
                            if (s.wish == Wish::kCoopLoad)
                                s.sender_surplus = static_cast<std::int64_t>(all.size() % 3) - 1;
                            all.push_back(s);
                            if (bits % 16) continue;
                            s.lane_max = 32767;
                            all.push_back(s);
                            s.lane_max = 0;
                            if (s.wish == Wish::kHybrid && s.bytes > kEagerLimit && s.sender_contiguous) {
                                s.lane_is_quicker = true;
                                all.push_back(s);
                                s.lane_is_quicker = false;
                            }
                            s.one_way = true;
                            s.bounce_max = 32767;
                            all.push_back(s);
                        }
}

const std::vector<Situation>& all_situations() {
    static const std::vector<Situation> all = [] {
        std::vector<Situation> made;
        add_transports(made);
        add_pairs(made);
        return made;
    }();
    return all;
}

bool implies(bool a, bool b) { return !a || b; }

TEST(Choose, decides_as_the_table_says) {
    for (const Case& c : kCases) EXPECT_EQ(choose(c.situation), c.expected) << c.what;
}

TEST(Choose, never_picks_what_the_transport_lacks_or_has_refused) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        const bool together = s.can_share && !s.get_refused && !s.put_refused;
        EXPECT_TRUE(implies(choice.row == Row::kCoop, together && s.slot_free)) << describe(choice, s);
        EXPECT_TRUE(implies(is_shared(choice), together)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.row == Row::kRtr, together && s.offered)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.row == Row::kBounce, s.can_share)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.row == Row::kRget, s.can_get && !s.get_refused)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.row == Row::kRput, s.can_put && !s.put_refused)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.row == Row::kEager, s.bytes <= s.eager_limit)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.row == Row::kLane, s.lane_max > 0 || s.lane_is_quicker)) << describe(choice, s);
    }
}

TEST(Choose, moves_short_pieces_as_fragments) {
    for (const Situation& s : all_situations())
        if ((!s.sender_contiguous || !s.receiver_contiguous) && !s.large_pieces) {
            const Row row = choose(s).row;
            EXPECT_TRUE(row == Row::kEager || row == Row::kSend || row == Row::kBounce || row == Row::kLane)
                << describe(choose(s), s);
        }
}

TEST(Choose, moves_large_pieces_as_if_they_were_one) {
    for (const Situation& s : all_situations()) {
        Situation whole = s, pieces = s;
        whole.sender_contiguous = whole.receiver_contiguous = true;
        pieces.sender_contiguous = false;
        pieces.large_pieces = true;
        EXPECT_EQ(choose(pieces), choose(whole)) << describe(choose(pieces), pieces);
    }
}

TEST(Choose, says_forced_only_when_the_wish_is_met) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        const bool met = (s.wish == Wish::kRget && choice.row == Row::kRget) ||
                         (s.wish == Wish::kRput && choice.row == Row::kRput) ||
                         (s.wish == Wish::kSend && choice.row == Row::kSend) ||
                         ((s.wish == Wish::kCoop || s.wish == Wish::kCoopFixed) && choice.row == Row::kCoop);
        EXPECT_TRUE(implies(choice.reason == Reason::kForced, met)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.reason == Reason::kForcedUnavailable, !met && is_forced(s.wish)))
            << describe(choice, s);
    }
}

TEST(Choose, blames_the_transport_only_for_what_it_lacks) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        EXPECT_TRUE(implies(choice.reason == Reason::kNoGet, !s.can_get)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.reason == Reason::kNoRdma, !(s.can_get || s.can_put))) << describe(choice, s);
        EXPECT_TRUE(implies(choice.reason == Reason::kGetRefused, s.get_refused)) << describe(choice, s);
        EXPECT_TRUE(implies(choice.reason == Reason::kRdmaRefused, s.get_refused || s.put_refused))
            << describe(choice, s);
        const bool alone = s.same_node && s.can_get && !s.get_refused;  // an rput would make the sender copy alone
        const bool wish_fails = s.wish == Wish::kRget ? !s.can_get || s.get_refused
                                                      : !s.can_put || s.put_refused || alone;
        EXPECT_TRUE(implies(choice.reason == Reason::kForcedUnavailable, wish_fails)) << describe(choice, s);
    }
}

TEST(Choose, reaches_every_row) {
    std::set<Row> rows;
    for (const Situation& s : all_situations()) rows.insert(choose(s).row);
    EXPECT_EQ(rows.size(), kRows);
}

TEST(Choose, reaches_every_reason_that_others_do_not_give) {
    std::set<Reason> reasons;
    for (const Situation& s : all_situations()) reasons.insert(choose(s).reason);
    reasons.insert(Reason::kNothingLeft);     // given by a receiver that has everything
    reasons.insert(Reason::kReadFromSender);  // given by a sender before there is a request
    reasons.insert(Reason::kPacketIsQuicker);
    EXPECT_EQ(reasons.size(), kReasons);
}

// --- the choice by calls -------------------------------------------------------------

// Table II of the paper (Cooperative Rendezvous Protocols). The paper moves ready sends by RTR. Here RTR needs an
// offered receive; without one, as in this table, a ready send goes like any other blocking send.
struct ByCalls {
    SendCall send;
    Row with_recv, with_irecv;
};
constexpr ByCalls kTableII[] = {
    {SendCall::kSend, Row::kCoop, Row::kRput},  {SendCall::kIsend, Row::kRget, Row::kCoop},
    {SendCall::kBsend, Row::kRget, Row::kRput}, {SendCall::kSsend, Row::kCoop, Row::kRput},
    {SendCall::kRsend, Row::kCoop, Row::kRput},
};
static_assert(std::size(kTableII) == kSendCalls);

TEST(ByCalls, coop_coll_follows_table_ii_of_the_paper) {
    for (const ByCalls& line : kTableII) {
        EXPECT_EQ(choose(wishing(Wish::kCoopColl, sharing(line.send, RecvCall::kRecv))).row, line.with_recv)
            << int(line.send);
        EXPECT_EQ(choose(wishing(Wish::kCoopColl, sharing(line.send, RecvCall::kIrecv))).row, line.with_irecv)
            << int(line.send);
    }
}

TEST(ByCalls, the_reason_names_who_waits) {
    const auto reason = [](SendCall send, RecvCall recv) {
        return choose(wishing(Wish::kCoopColl, sharing(send, recv))).reason;
    };
    EXPECT_EQ(reason(SendCall::kSsend, RecvCall::kRecv), Reason::kBothWait);
    EXPECT_EQ(reason(SendCall::kIsend, RecvCall::kRecv), Reason::kReceiverWaits);
    EXPECT_EQ(reason(SendCall::kBsend, RecvCall::kRecv), Reason::kReceiverWaits);
    EXPECT_EQ(reason(SendCall::kRsend, RecvCall::kIrecv), Reason::kSenderWaits);
    EXPECT_EQ(reason(SendCall::kBsend, RecvCall::kIrecv), Reason::kSenderWaits);
    EXPECT_EQ(reason(SendCall::kIsend, RecvCall::kIrecv), Reason::kNobodyWaits);
}

TEST(ByCalls, neither_load_nor_crowding_nor_size_changes_the_table) {
    for (const ByCalls& line : kTableII)
        for (RecvCall recv : kRecvCallList) {
            const Situation quiet = wishing(Wish::kCoopColl, sharing(line.send, recv));
            for (const Situation& s :
                 {loaded(quiet, 9, 1), loaded(quiet, 1, 9), with(quiet, [](S& t) { t.crowded = true; }),
                  with(quiet, [](S& t) { t.receiver_sends = true; }),
                  with(quiet, [](S& t) { t.coop_min = t.bytes + 1; })})
                EXPECT_EQ(choose(s), choose(quiet)) << describe(choose(s), s);
        }
}

// --- the choice by load --------------------------------------------------------------

Situation ahead(Situation s, std::int64_t sender_surplus) {
    s.sender_surplus = sender_surplus;
    return s;
}

constexpr Choice kReceiverLighter{Row::kRget, Reason::kReceiverLighter},
    kSenderLighter{Row::kRput, Reason::kSenderLighter, Split::kSenderLeads};
constexpr Choice kReceiverTurn{Row::kRget, Reason::kReceiverTurn},
    kSenderTurn{Row::kRput, Reason::kSenderTurn, Split::kSenderLeads};
constexpr Choice kEven{Row::kRget, Reason::kEvenLoad};

TEST(ByLoad, the_side_with_clearly_less_to_copy_copies) {
    const Situation s = wishing(Wish::kCoopLoad);
    const std::uint64_t clear = 3 * s.bytes;
    for (std::int64_t surplus : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, INT64_MIN, INT64_MAX}) {
        EXPECT_EQ(choose(ahead(loaded(s, clear, 0), surplus)), kReceiverLighter);
        EXPECT_EQ(choose(ahead(loaded(s, 0, clear), surplus)), kSenderLighter);
        EXPECT_EQ(choose(ahead(loaded(s, clear + 7, 7), surplus)), kReceiverLighter);
        EXPECT_EQ(choose(ahead(loaded(s, 7, clear + 7), surplus)), kSenderLighter);
        EXPECT_EQ(choose(ahead(loaded(s, UINT64_MAX, 0), surplus)), kReceiverLighter);
        EXPECT_EQ(choose(ahead(loaded(s, 0, UINT64_MAX), surplus)), kSenderLighter);
    }
}

TEST(ByLoad, at_about_the_same_load_they_take_turns) {
    const Situation s = wishing(Wish::kCoopLoad);
    const std::uint64_t clear = 3 * s.bytes;
    const std::uint64_t kPairs[][2] = {
        {0, 0}, {5, 5}, {4, 5}, {5, 4}, {clear - 1, 0}, {0, clear - 1}, {UINT64_MAX, UINT64_MAX}};
    for (const auto& loads : kPairs) {
        const Situation now = loaded(s, loads[0], loads[1]);
        EXPECT_EQ(choose(now), kEven) << loads[0] << ' ' << loads[1];
        for (std::int64_t surplus : {std::int64_t{1}, INT64_MAX}) EXPECT_EQ(choose(ahead(now, surplus)), kReceiverTurn);
        for (std::int64_t surplus : {std::int64_t{-1}, INT64_MIN}) EXPECT_EQ(choose(ahead(now, surplus)), kSenderTurn);
    }
}

TEST(ByLoad, a_length_beyond_all_loads_is_never_clearly_exceeded) {
    Situation s = wishing(Wish::kCoopLoad);
    for (std::uint64_t bytes : {UINT64_MAX / 3 + 1, UINT64_MAX}) {
        s.bytes = bytes;
        EXPECT_EQ(choose(loaded(s, UINT64_MAX, 0)), kEven);
        EXPECT_EQ(choose(loaded(s, 0, UINT64_MAX)), kEven);
    }
}

TEST(ByLoad, calls_make_no_difference) {
    for (SendCall send : kSendCallList)
        for (RecvCall recv : kRecvCallList) {
            const Situation s = wishing(Wish::kCoopLoad, sharing(send, recv));
            EXPECT_EQ(choose(loaded(s, 0, 3 * s.bytes)), kSenderLighter);
            EXPECT_EQ(choose(ahead(s, -1)), kSenderTurn);
        }
}

TEST(ByLoad, turns_are_for_this_wish_alone) {
    for (std::size_t i = 0; i < kWishes; ++i) {
        const auto wish = static_cast<Wish>(i);
        EXPECT_EQ(turns_matter(wishing(wish)), wish == Wish::kCoopLoad) << kWishNames[i];
        EXPECT_FALSE(turns_matter(with(wishing(wish), [](S& t) { t.can_share = false; }))) << kWishNames[i];
        if (wish == Wish::kCoopLoad) continue;
        for (std::int64_t surplus : {INT64_MIN, INT64_MAX})
            EXPECT_EQ(choose(ahead(wishing(wish), surplus)), choose(wishing(wish))) << kWishNames[i];
    }
}

// --- the lane -------------------------------------------------------------------------

Situation laned(std::size_t bytes) {
    return with(sharing(SendCall::kSend), [bytes](S& s) {
        s.bytes = bytes;
        s.lane_max = 65536;
    });
}

TEST(Lane, takes_what_fits_one_packet_whatever_is_wished) {
    for (std::size_t i = 0; i < kWishes; ++i)
        for (const bool synchronous : {false, true})
            EXPECT_EQ(choose(with(wishing(static_cast<Wish>(i), laned(kEagerLimit)),
                                  [=](S& s) { s.synchronous = synchronous; })),
                      (Choice{Row::kLane, Reason::kFitsLane}))
                << kWishNames[i];
}

TEST(Lane, takes_longer_messages_up_to_its_limit_under_hybrid_and_send) {
    const Choice lane{Row::kLane, Reason::kBelowLaneMax};
    for (std::size_t i = 0; i < kWishes; ++i) {
        const Wish wish = static_cast<Wish>(i);
        EXPECT_EQ(choose(wishing(wish, laned(65536))) == lane, wish == Wish::kHybrid || wish == Wish::kSend)
            << kWishNames[i];
        EXPECT_NE(choose(wishing(wish, laned(65537))), lane) << kWishNames[i];
    }
    EXPECT_EQ(choose(with(laned(20000), [](S& s) { s.sender_contiguous = false; })), lane) << "it is packed";
    EXPECT_EQ(choose(with(laned(20000), [](S& s) { s.kernel_copy_denied = true; })), lane);
    EXPECT_EQ(choose(with(laned(20000), [](S& s) { s.offered = true; })), lane);
    for (const SendCall call : kSendCallList) {
        EXPECT_EQ(choose(with(laned(20000), [=](S& s) { s.send_call = call; })) == lane, sender_waits(call))
            << "a sender that computes sends no fragments";
        EXPECT_EQ(
            choose(with(laned(20000), [=](S& s) { s.send_call = call, s.can_get = s.can_put = s.can_share = false; })),
            lane);
    }
    EXPECT_NE(choose(with(laned(20000), [](S& s) { s.lane_max = 0; })).row, Row::kLane);
}

TEST(Lane, needs_no_offer_of_the_receiver) {
    for (const std::size_t bytes : {kEagerLimit, std::size_t{65536}}) EXPECT_FALSE(wants_offer(laned(bytes)));
    EXPECT_TRUE(wants_offer(laned(65537)));
}

// --- bounce buffers -------------------------------------------------------------------

Situation one_way(std::size_t bytes) {
    return with(sharing(SendCall::kSend, RecvCall::kIrecv), [=](S& s) {
        s.bytes = bytes;
        s.bounce_max = 32768;
        s.one_way = true;
    });
}

TEST(Bouncing, is_for_blocking_sends_in_a_row_that_are_short_enough) {
    const Choice bounce{Row::kBounce, Reason::kOneWay};
    EXPECT_EQ(choose(one_way(kEagerLimit)).row, Row::kEager);
    EXPECT_EQ(choose(one_way(kEagerLimit + 1)), bounce);
    EXPECT_EQ(choose(one_way(32768)), bounce);
    EXPECT_NE(choose(one_way(32769)), bounce);
    EXPECT_EQ(choose(with(one_way(20000), [](S& s) { s.sender_contiguous = false; })), bounce) << "it is packed";
    EXPECT_EQ(choose(with(one_way(20000), [](S& s) { s.crowded = true; })), bounce);
}

TEST(Bouncing, is_not_for_others) {
    const auto bounces = [](auto change) { return choose(with(one_way(20000), change)).row == Row::kBounce; };
    EXPECT_TRUE(bounces([](S&) {}));
    EXPECT_FALSE(bounces([](S& s) { s.one_way = false; }));
    EXPECT_FALSE(bounces([](S& s) { s.bounce_max = 0; }));
    EXPECT_FALSE(bounces([](S& s) { s.synchronous = true; }));
    EXPECT_FALSE(bounces([](S& s) { s.can_share = false; }));
    for (SendCall call : {SendCall::kIsend, SendCall::kBsend, SendCall::kSsend, SendCall::kRsend})
        EXPECT_FALSE(bounces([=](S& s) { s.send_call = call; }));
    for (std::size_t i = 0; i < kWishes; ++i)
        EXPECT_EQ(bounces([=](S& s) { s.wish = static_cast<Wish>(i); }), static_cast<Wish>(i) == Wish::kHybrid)
            << kWishNames[i];
}

// --- the hybrid ----------------------------------------------------------------------

struct HybridCase {
    SendCall send;
    RecvCall recv;
    Choice expected;
};

TEST(Hybrid, with_cores_to_spare_the_calls_say_who_leads_and_the_other_helps) {
    const HybridCase cases[] = {
        {SendCall::kSend, RecvCall::kRecv, {Row::kCoop, Reason::kBothWait, Split::kBoth}},
        {SendCall::kSsend, RecvCall::kRecv, {Row::kCoop, Reason::kBothWait, Split::kBoth}},
        {SendCall::kRsend, RecvCall::kRecv, {Row::kCoop, Reason::kBothWait, Split::kBoth}},
        {SendCall::kIsend, RecvCall::kRecv, {Row::kCoop, Reason::kReceiverWaits, Split::kReceiverLeads}},
        {SendCall::kBsend, RecvCall::kRecv, {Row::kCoop, Reason::kReceiverWaits, Split::kReceiverLeads}},
        {SendCall::kSend, RecvCall::kIrecv, {Row::kCoop, Reason::kSenderWaits, Split::kSenderLeads}},
        {SendCall::kSsend, RecvCall::kIrecv, {Row::kCoop, Reason::kSenderWaits, Split::kSenderLeads}},
        {SendCall::kRsend, RecvCall::kIrecv, {Row::kCoop, Reason::kSenderWaits, Split::kSenderLeads}},
        {SendCall::kBsend, RecvCall::kIrecv, {Row::kCoop, Reason::kSenderWaits, Split::kSenderLeads}},
        {SendCall::kIsend, RecvCall::kIrecv, {Row::kCoop, Reason::kEvenLoad, Split::kReceiverLeads}},
    };
    for (const HybridCase& c : cases)
        EXPECT_EQ(choose(sharing(c.send, c.recv)), c.expected) << int(c.send) << " x " << int(c.recv);
}

constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;  // a load in bytes, far above twice any message of these tests

TEST(Hybrid, where_nobody_waits_the_lighter_side_leads) {
    const Situation s = sharing(SendCall::kIsend, RecvCall::kIrecv);
    EXPECT_EQ(choose(loaded(s, 5, 0)), (Choice{Row::kCoop, Reason::kReceiverLighter, Split::kReceiverLeads}));
    EXPECT_EQ(choose(loaded(s, 0, 5)), (Choice{Row::kCoop, Reason::kEvenLoad, Split::kReceiverLeads}))
        << "a small difference";
    EXPECT_EQ(choose(loaded(s, 0, kMuch)), (Choice{Row::kCoop, Reason::kSenderLighter, Split::kSenderLeads}));
}

TEST(Hybrid, the_sender_copies_where_it_has_less_than_half_even_with_this_message) {
    const Situation s = sharing(SendCall::kIsend, RecvCall::kIrecv);
    const std::uint64_t enough = 2 * (7 + s.bytes);
    EXPECT_EQ(choose(loaded(s, 7, enough + 1)).reason, Reason::kEvenLoad);
    EXPECT_EQ(choose(loaded(s, 7, enough + 2)).reason, Reason::kSenderLighter);
}

TEST(Hybrid, nobody_helps_where_both_have_other_copies_to_do) {
    EXPECT_EQ(choose(loaded(sharing(SendCall::kIsend, RecvCall::kIrecv), 5, 3)),
              (Choice{Row::kRget, Reason::kReceiverLighter}));
    EXPECT_EQ(choose(loaded(sharing(SendCall::kIsend, RecvCall::kIrecv), 3, 5)),
              (Choice{Row::kRget, Reason::kEvenLoad}));
    EXPECT_EQ(choose(loaded(sharing(SendCall::kIsend, RecvCall::kIrecv), 3, kMuch)),
              (Choice{Row::kRput, Reason::kSenderLighter, Split::kSenderLeads}));
    EXPECT_EQ(choose(loaded(sharing(SendCall::kIsend, RecvCall::kRecv), 3, 5)),
              (Choice{Row::kRget, Reason::kReceiverWaits}));
    EXPECT_EQ(choose(loaded(sharing(SendCall::kSend, RecvCall::kIrecv), 5, 3)),
              (Choice{Row::kRput, Reason::kSenderWaits, Split::kSenderLeads}));
}

TEST(Hybrid, a_receiver_that_sends_as_well_decides_by_load_and_copies_whole_messages) {
    for (SendCall send : kSendCallList)
        for (RecvCall recv : kRecvCallList) {
            const Situation s = with(sharing(send, recv), [](S& t) { t.receiver_sends = true; });
            EXPECT_EQ(choose(s), (Choice{Row::kRget, Reason::kEvenLoad}));
            EXPECT_EQ(choose(loaded(s, 5, 0)), (Choice{Row::kRget, Reason::kReceiverLighter}));
            EXPECT_EQ(choose(loaded(s, 0, kMuch)), (Choice{Row::kRput, Reason::kSenderLighter, Split::kSenderLeads}));
        }
}

TEST(Hybrid, on_a_crowded_node_one_side_leads_even_where_both_wait) {
    const auto crowded = [](SendCall send, RecvCall recv) {
        return with(sharing(send, recv), [](S& t) { t.crowded = true; });
    };
    EXPECT_EQ(choose(crowded(SendCall::kSend, RecvCall::kRecv)),
              (Choice{Row::kCoop, Reason::kEvenLoad, Split::kReceiverLeads}));
    EXPECT_EQ(choose(loaded(crowded(SendCall::kSend, RecvCall::kRecv), 0, kMuch)),
              (Choice{Row::kCoop, Reason::kSenderLighter, Split::kSenderLeads}));
    EXPECT_EQ(choose(crowded(SendCall::kIsend, RecvCall::kRecv)),
              (Choice{Row::kCoop, Reason::kReceiverWaits, Split::kReceiverLeads}));
    EXPECT_EQ(choose(crowded(SendCall::kSend, RecvCall::kIrecv)),
              (Choice{Row::kCoop, Reason::kSenderWaits, Split::kSenderLeads}));
    for (const Situation& s : all_situations())
        EXPECT_TRUE(implies(s.crowded && s.wish == Wish::kHybrid && choose(s).row == Row::kCoop,
                            choose(s).split != Split::kBoth))
            << describe(choose(s), s);
}

TEST(Hybrid, copies_short_messages_by_the_receiver) {
    const Situation s = sharing(SendCall::kSend, RecvCall::kRecv);
    EXPECT_EQ(choose(with(s, [](S& t) { t.bytes = t.coop_min - 1; })), (Choice{Row::kRget, Reason::kBelowCoopMin}));
    EXPECT_EQ(choose(with(s, [](S& t) { t.bytes = t.coop_min; })), (Choice{Row::kCoop, Reason::kBothWait}));
    const Situation crowded = with(sharing(SendCall::kIsend, RecvCall::kRecv), [](S& t) { t.crowded = true; });
    EXPECT_EQ(choose(with(crowded, [](S& t) { t.bytes = 2 * t.coop_min - 1; })),
              (Choice{Row::kRget, Reason::kBelowCoopMin}));
    EXPECT_EQ(choose(with(crowded, [](S& t) { t.bytes = 2 * t.coop_min; })).reason, Reason::kReceiverWaits);
    EXPECT_EQ(choose(with(wishing(Wish::kCoop), [](S& t) { t.bytes = t.coop_min - 1; })),
              (Choice{Row::kCoop, Reason::kForced}))
        << "a wish knows no threshold";
}

// --- cooperative wishes and their fallbacks -------------------------------------------

TEST(Cooperative, coop_and_coop_fixed_are_taken_at_their_word) {
    for (SendCall send : kSendCallList)
        for (RecvCall recv : kRecvCallList)
            for (const Situation& s : {sharing(send, recv), loaded(sharing(send, recv), 3, 5),
                                       with(sharing(send, recv), [](S& t) { t.crowded = true; }),
                                       with(sharing(send, recv), [](S& t) { t.receiver_sends = true; })}) {
                EXPECT_EQ(choose(wishing(Wish::kCoop, s)), (Choice{Row::kCoop, Reason::kForced, Split::kBoth}));
                EXPECT_EQ(choose(wishing(Wish::kCoopFixed, s)), (Choice{Row::kCoop, Reason::kForced, Split::kHalves}));
            }
}

TEST(Cooperative, without_a_free_slot_the_receiver_copies) {
    for (Wish wish : kCooperativeWishes) {
        const Situation s = wishing(wish, sharing(SendCall::kSend, RecvCall::kRecv));
        const Choice without = choose(with(s, [](S& t) { t.slot_free = false; }));
        const Choice expected = is_shared(choose(s)) ? Choice{Row::kRget, Reason::kNoSlot} : choose(s);
        EXPECT_EQ(without, expected) << "a slot is needed only where both copy";
    }
}

TEST(Cooperative, without_a_board_the_transport_decides_as_ever) {
    for (Wish wish : kCooperativeWishes) {
        const Situation s = wishing(wish, with(sharing(), [](S& t) { t.can_share = false; }));
        EXPECT_EQ(choose(s), (Choice{Row::kRget, Reason::kReceiverReads}));
        EXPECT_EQ(choose(with(s, [](S& t) { t.can_get = false; })), (Choice{Row::kRput, Reason::kNoGet}));
        EXPECT_EQ(choose(with(s, [](S& t) { t.can_get = t.can_put = false; })), (Choice{Row::kSend, Reason::kNoRdma}));
    }
}

TEST(Cooperative, a_refusal_leaves_the_message_to_one_side_or_to_fragments) {
    for (Wish wish : kCooperativeWishes) {
        const Situation s = wishing(wish);
        EXPECT_EQ(choose(with(s, [](S& t) { t.put_refused = true; })), (Choice{Row::kRget, Reason::kReceiverReads}));
        EXPECT_EQ(choose(with(s, [](S& t) { t.get_refused = true; })), (Choice{Row::kRput, Reason::kGetRefused}));
        EXPECT_EQ(choose(with(s, [](S& t) { t.get_refused = t.put_refused = true; })),
                  (Choice{Row::kSend, Reason::kRdmaRefused}));
    }
}

TEST(Cooperative, where_the_kernel_denies_copies_fragments_say_so) {
    for (Wish wish :
         {Wish::kHybrid, Wish::kCoop, Wish::kCoopFixed, Wish::kCoopColl, Wish::kCoopLoad, Wish::kRget, Wish::kRput}) {
        const Situation s = wishing(wish, with(large(), [](S& t) { t.kernel_copy_denied = true; }));
        EXPECT_EQ(choose(s), (Choice{Row::kSend, Reason::kNoKernelCopy}));
    }
}

TEST(Cooperative, thresholds_of_rdma_hold_first) {
    for (Wish wish : kCooperativeWishes) {
        EXPECT_EQ(choose(with(wishing(wish), [](S& t) { t.rdma_min = t.bytes + 1; })),
                  (Choice{Row::kSend, Reason::kBelowRdmaMin}));
        EXPECT_EQ(choose(with(wishing(wish), [](S& t) { t.rdma_share = 0.4; })),
                  (Choice{Row::kSend, Reason::kStripedOverTransports}));
    }
}

TEST(Cooperative, forced_rows_know_nothing_of_calls_load_or_offers) {
    for (SendCall send : kSendCallList)
        for (RecvCall recv : kRecvCallList) {
            const Situation s = with(loaded(sharing(send, recv), 5, 3), [](S& t) { t.offered = true; });
            EXPECT_EQ(choose(wishing(Wish::kRget, s)), (Choice{Row::kRget, Reason::kForced}));
            EXPECT_EQ(choose(wishing(Wish::kRput, s)), (Choice{Row::kRput, Reason::kForced, Split::kSenderLeads}));
            EXPECT_EQ(choose(wishing(Wish::kSend, s)), (Choice{Row::kSend, Reason::kForced}));
        }
}

// --- a matched receive can end even if its sender makes no further call ------------------

TEST(Site04Choose, inside_a_node_a_sender_copies_alone_only_what_the_receiver_cannot_read) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        const bool readable = s.same_node && s.can_get && !s.get_refused;
        EXPECT_TRUE(implies(readable && choice.row == Row::kRput, is_shared(choice))) << describe(choice, s);
    }
}

TEST(Site04Choose, rput_inside_a_node_without_boards_is_left_to_the_receiver) {
    const Situation s = wishing(Wish::kRput, with(both(), [](S& t) { t.same_node = true; }));
    EXPECT_EQ(choose(s), (Choice{Row::kRget, Reason::kForcedUnavailable}));
    EXPECT_EQ(choose(with(s, [](S& t) { t.can_get = false; })), (Choice{Row::kRput, Reason::kForced}))
        << "it cannot read";
    EXPECT_EQ(choose(with(s, [](S& t) { t.same_node = false; })), (Choice{Row::kRput, Reason::kForced}))
        << "between nodes, as asked for";
}

TEST(Site04Choose, between_two_of_a_node_that_do_not_share_memory_nothing_is_sent_as_a_stream) {
    const Situation s = with(both(), [](S& t) { t.isend_rdma_min = t.bytes + 1; });
    EXPECT_EQ(choose(s).row, Row::kSend);
    EXPECT_EQ(choose(with(s, [](S& t) { t.same_node = true; })).row, Row::kRget);
}

// --- offers --------------------------------------------------------------------------

Situation offered(Situation s) {
    s.offered = true;
    return s;
}

TEST(OffersTaken, an_offer_taken_is_rtr_and_the_split_is_what_it_would_have_been) {
    for (SendCall send : kSendCallList)
        for (RecvCall recv : kRecvCallList)
            for (const Situation& s : {sharing(send, recv), loaded(sharing(send, recv), 3, 5),
                                       with(sharing(send, recv), [](S& t) { t.crowded = true; })}) {
                const Choice without = choose(s), with_offer = choose(offered(s));
                EXPECT_EQ(with_offer.row, Row::kRtr);
                EXPECT_EQ(with_offer.reason, Reason::kOffered);
                const Split expected = without.row == Row::kRget   ? Split::kReceiverLeads
                                       : without.row == Row::kRput ? Split::kSenderLeads
                                                                   : without.split;
                EXPECT_EQ(with_offer.split, expected) << describe(without, s);
            }
}

TEST(OffersTaken, neither_a_slot_nor_the_size_stands_in_the_way) {
    EXPECT_EQ(choose(with(offered(sharing()), [](S& t) { t.slot_free = false; })).row, Row::kRtr)
        << "the offer is in a slot";
    EXPECT_EQ(choose(with(offered(sharing()), [](S& t) { t.coop_min = t.bytes + 1; })).row, Row::kRtr);
}

TEST(OffersTaken, are_looked_for_by_the_hybrid_where_both_may_copy_and_it_is_worth_it) {
    for (SendCall send : kSendCallList) {
        const Situation s = sharing(send);
        EXPECT_TRUE(wants_offer(s));
        EXPECT_TRUE(wants_offer(with(s, [](S& t) { t.crowded = true; })));
        EXPECT_TRUE(wants_offer(with(s, [](S& t) { t.bytes = t.coop_min; })));
        EXPECT_FALSE(wants_offer(with(s, [](S& t) { t.bytes = t.coop_min - 1; })));
        EXPECT_FALSE(wants_offer(with(s, [](S& t) { t.can_share = false; })));
        EXPECT_FALSE(wants_offer(with(s, [](S& t) { t.sender_contiguous = false; })));
        EXPECT_FALSE(wants_offer(with(s, [](S& t) { t.bytes = t.eager_limit; }))) << "it goes eagerly";
        EXPECT_FALSE(wants_offer(with(s, [](S& t) { t.rdma_min = t.bytes + 1; }))) << "it goes as fragments";
    }
}

TEST(OffersTaken, are_looked_for_by_coop_coll_for_ready_sends_only) {
    for (SendCall send : kSendCallList)
        EXPECT_EQ(wants_offer(wishing(Wish::kCoopColl, sharing(send))), send == SendCall::kRsend);
    EXPECT_FALSE(
        wants_offer(with(wishing(Wish::kCoopColl, sharing(SendCall::kRsend)), [](S& t) { t.bytes = t.coop_min - 1; })));
    for (Wish wish : {Wish::kCoop, Wish::kCoopFixed, Wish::kCoopLoad, Wish::kRget, Wish::kRput, Wish::kSend})
        for (SendCall send : kSendCallList) EXPECT_FALSE(wants_offer(wishing(wish, sharing(send))));
}

TEST(OffersTaken, whoever_wants_one_can_use_it) {
    for (const Situation& s : all_situations())
        EXPECT_TRUE(implies(wants_offer(s), choose(offered(s)).row == Row::kRtr)) << describe(choose(offered(s)), s);
}

TEST(LoadMatters, where_both_could_copy_and_under_the_hybrid_for_long_messages_only) {
    for (std::size_t i = 0; i < kWishes; ++i) {
        const Wish wish = static_cast<Wish>(i);
        const Situation s = wishing(wish, sharing());
        EXPECT_TRUE(load_matters(with(s, [](S& t) { t.bytes = t.coop_min; }))) << kWishNames[i];
        EXPECT_EQ(load_matters(with(s, [](S& t) { t.bytes = t.coop_min - 1; })), wish != Wish::kHybrid)
            << kWishNames[i];
        EXPECT_FALSE(load_matters(with(s, [](S& t) { t.can_share = false; }))) << kWishNames[i];
    }
}

// --- shares --------------------------------------------------------------------------

TEST(SharesOf, one_side_copies_all_where_one_side_copies) {
    const auto expect = [](Choice choice, std::uint64_t sender, std::uint64_t receiver) {
        const Shares share = shares(choice, 1001);
        EXPECT_EQ(share.sender, sender) << choice;
        EXPECT_EQ(share.receiver, receiver) << choice;
    };
    expect({Row::kEager, Reason::kFitsEager}, 0, 0);
    expect({Row::kSend, Reason::kForced}, 0, 0);
    expect({Row::kBounce, Reason::kOneWay}, 0, 0);
    expect({Row::kLane, Reason::kBelowLaneMax}, 0, 0);
    expect({Row::kRput, Reason::kForced}, 1001, 0);
    expect({Row::kRget, Reason::kForced}, 0, 1001);
    for (Row row : {Row::kCoop, Row::kRtr}) {
        expect({row, Reason::kForced, Split::kSenderLeads}, 1001, 0);
        expect({row, Reason::kForced, Split::kReceiverLeads}, 0, 1001);
        expect({row, Reason::kForced, Split::kBoth}, 500, 501);
        expect({row, Reason::kForced, Split::kHalves}, 500, 501);
    }
}

TEST(SharesOf, every_byte_is_copied_once) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        const Shares share = shares(choice, s.bytes);
        const bool by_cpu = choice.row != Row::kEager && choice.row != Row::kSend && choice.row != Row::kBounce &&
                            choice.row != Row::kLane;
        EXPECT_EQ(share.sender + share.receiver, by_cpu ? s.bytes : 0) << describe(choice, s);
    }
}

// --- words ---------------------------------------------------------------------------

TEST(Words, every_wish_has_a_name_of_its_own) {
    EXPECT_EQ(std::set<std::string>(std::begin(kWishNames), std::end(kWishNames)).size(), kWishes);
    EXPECT_STREQ(kWishNames[static_cast<std::size_t>(Wish::kHybrid)], "hybrid");
    EXPECT_STREQ(kWishNames[static_cast<std::size_t>(Wish::kRget)], "rget");
    EXPECT_STREQ(kWishNames[static_cast<std::size_t>(Wish::kSend)], "send");
    EXPECT_STREQ(kWishNames[static_cast<std::size_t>(Wish::kCoopFixed)], "coop_fixed");
    EXPECT_STREQ(kWishNames[static_cast<std::size_t>(Wish::kCoopLoad)], "coop_load");
}

TEST(Words, every_row_has_a_name_of_its_own) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < kRows; ++i) names.insert(name(static_cast<Row>(i)));
    EXPECT_EQ(names.size(), kRows);
}

TEST(Rows, each_protocol_is_listed_at_its_number_and_once_by_preference) {
    std::set<const Protocol*> preferred(std::begin(rows::kByPreference), std::end(rows::kByPreference));
    EXPECT_EQ(preferred.size(), kRows);
    for (std::size_t i = 0; i < kRows; ++i) {
        EXPECT_EQ(static_cast<std::size_t>(rows::kByNumber[i]->row), i) << rows::kByNumber[i]->name;
        EXPECT_EQ(preferred.count(rows::kByNumber[i]), 1u) << rows::kByNumber[i]->name;
    }
}

TEST(Rows, a_protocol_that_lacks_memory_or_a_slot_is_not_chosen_again) {
    for (const Protocol* row : rows::kByNumber)
        for (const Lack lack : {Lack::kMemory, Lack::kSlot}) {
            Situation s = with(sharing(SendCall::kSend, RecvCall::kRecv),
                               [&](S& x) { x.offered = row->row == Row::kRtr; });
            if (row->mover({row->row, Reason::kForced}) != Mover::kBoth && lack == Lack::kSlot) continue;
            if (row->mover({row->row, Reason::kForced}) == Mover::kPackets) continue;
            if (row->row == Row::kRtr) continue;  // the receive has its slot and its memory when it is offered
            row->abort(s, lack);
            EXPECT_NE(choose(s).row, row->row) << row->name;
        }
}

TEST(Words, every_reason_has_a_text_of_its_own) {
    std::set<std::string> texts;
    for (std::size_t i = 0; i < kReasons; ++i) texts.insert(text(static_cast<Reason>(i)));
    EXPECT_EQ(texts.size(), kReasons);
    EXPECT_EQ(texts.count("unknown"), 0u);
    EXPECT_STREQ(text(static_cast<Reason>(kReasons)), "unknown") << "kReasons counts them all";
}

TEST(Words, every_choice_has_a_sentence_with_its_size_row_and_reason) {
    for (const Situation& s : all_situations()) {
        const Choice choice = choose(s);
        const std::string sentence = describe(choice, s);
        EXPECT_EQ(
            sentence.find(std::to_string(s.bytes) + " bytes go by " + name(choice.row) + ": " + text(choice.reason)),
            0u)
            << sentence;
    }
}

TEST(Words, the_sentence_has_the_numbers_that_decided) {
    const auto ending = [](const Situation& s) {
        const Choice choice = choose(s);
        const std::string sentence = describe(choice, s);
        return sentence.substr(sentence.find(text(choice.reason)) + std::string(text(choice.reason)).size());
    };
    EXPECT_EQ(ending(with(large(), [](S& s) { s.bytes = 100; })), " of 4096 bytes");
    EXPECT_EQ(ending(with(both(), [](S& s) { s.rdma_min = 1 << 21; })), " of 2097152 bytes");
    EXPECT_EQ(ending(with(both(), [](S& s) { s.isend_rdma_min = 1 << 21; })), " of 2097152 bytes");
    EXPECT_EQ(ending(with(both(), [](S& s) { s.rdma_share = 0.25; })), ", which has 25 % of the bandwidth");
    EXPECT_EQ(ending(both()), "");
    EXPECT_EQ(ending(with(sharing(), [](S& s) { s.bytes = 20000; })), " of 32768 bytes");
    EXPECT_EQ(ending(loaded(wishing(Wish::kCoopLoad), 4194304, 3)), " (sender 4194304 bytes, receiver 3 bytes)");
    EXPECT_EQ(ending(loaded(wishing(Wish::kCoopLoad), 0, 4194304)), " (sender 0 bytes, receiver 4194304 bytes)");
    EXPECT_EQ(ending(ahead(loaded(wishing(Wish::kCoopLoad), 5, 3), 1)), " (sender 5 bytes, receiver 3 bytes)");
    EXPECT_EQ(ending(ahead(loaded(wishing(Wish::kCoopLoad), 5, 3), -1)), " (sender 5 bytes, receiver 3 bytes)");
    EXPECT_EQ(ending(wishing(Wish::kCoopLoad)), " (sender 0 bytes, receiver 0 bytes)");
}

TEST(Words, a_receiver_that_has_everything_says_so) {
    const Choice choice = {Row::kSend, Reason::kNothingLeft};
    EXPECT_EQ(describe(choice, both()), "1048576 bytes go by send: " + std::string(text(Reason::kNothingLeft)));
}

}  // namespace
}  // namespace coop::rndv
