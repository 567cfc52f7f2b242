// SPDX-License-Identifier: BSD-3-Clause
//
// Prints the parts of the documentation that are generated from declarations in
// the code, as reStructuredText: reference PART, where PART is one of these:
//
//     parameters        every parameter of pml/coop: help, type, unit, default, range, level
//     parameters-short  the same as a list, for the manual page
//     coopib-parameters, coopib-parameters-short, coopib-variables  those of btl/coopib
//     rdmaag-parameters, rdmaag-parameters-short, rdmaag-variables, rdmaag-variables-short  those of coll/rdmaag
//     rdmaag-algorithms  the choice of an algorithm by coll/rdmaag
//     multirail-parameters, multirail-parameters-short, multirail-variables, multirail-variables-short  those of
//                       osc/multirail
//     multirail-words   the words of the report of osc/multirail
//     multirail-reasons  the reasons for the ways of one-sided operations
//     rma-epochs        the calls that each state of a window permits
//     faults            the names that pml_coop_fault knows
//     variables         the MPI_T performance variables
//     packets           the control headers, field by field
//     decisions         the choice of a protocol: conditions in order, and results
//
// Offsets and sizes come from the compiler, rows and reasons from choose(), so the
// output agrees with the code. If a field or a reason is missing here, the program
// ends with an error, and the build of the documentation fails.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coop/async/counts.h"
#include "coop/base/counters.h"
#include "coop/base/fault.h"
#include "coop/base/param.h"
#include "coop/node/lane_limit.h"
#include "coop/rndv/protocol.h"
#include "coop/wire/headers.h"
#include "multirail.h"
#include "ompi/mca/pml/coop/params.h"
#include "opal/mca/btl/coopib/params.h"
#include "opal/mca/btl/coopib/variables.h"
#include "rdmaag.h"
#include "rma.h"
#include "rst.h"

namespace {

constexpr const char* kPrefix = "pml_coop_";
constexpr const char* kCoopibPrefix = "btl_coopib_";

// --- parameters ------------------------------------------------------------

void print_parameters() { print(coop::to_rst("Parameters of pml/coop", kPrefix, coop::pml::params())); }

void print_coopib_parameters() { print(coop::to_rst("Parameters of btl/coopib", kCoopibPrefix, coop::ib::params())); }

void print_parameters_short() { print_short(kPrefix, coop::pml::params()); }
void print_coopib_parameters_short() { print_short(kCoopibPrefix, coop::ib::params()); }

// --- faults ----------------------------------------------------------------

const char* meaning(coop::Fault fault) {
    using coop::Fault;
    switch (fault) {
    case Fault::kBusy: return "a send is refused: the transport is out of resources";
    case Fault::kAlloc: return "the transport has no descriptor";
    case Fault::kSendi: return "the immediate send is refused";
    case Fault::kRegister: return "memory cannot be registered";
    case Fault::kNoId: return "no memory for the id of a send";
    case Fault::kGet: return "get is not available";
    case Fault::kGetBusy: return "a get is refused: the transport is out of resources";
    case Fault::kPut: return "put is not available";
    case Fault::kPutBusy: return "a put is refused: the transport is out of resources";
    case Fault::kHcaGet: return "a copy by an HCA inside the node is not started (pml_coop_hca)";
    case Fault::kHcaBusy: return "the same, because the HCA is out of resources";
    case Fault::kHcaLost: return "a copy by an HCA has started and fails";
    case Fault::kHcaKey: return "the buffer for a copy by an HCA cannot be registered";
    case Fault::kPages: return "there is no memory for more of a ring of the lane, or for its slot, from then on";
    case Fault::kOffer: return "the kernel refuses to copy a message from the memory of its sender, which waits";
    case Fault::kSlow: return "coll/rdmaag only: a trial of its own ways counts as an hour longer";
    case Fault::kCorruptMatch: return "one bit of a MATCH header is flipped before it leaves";
    case Fault::kCorruptRts: return "the same for an RTS";
    case Fault::kCorruptCts: return "the same for a CTS";
    case Fault::kCorruptFrag: return "the same for a FRAG";
    case Fault::kCorruptFin: return "the same for a FIN";
    case Fault::kCount: break;
    }
    fail("a fault has no meaning");
}

void print_faults() {
    std::vector<std::vector<std::string>> rows = {{"Name", "Effect on the chosen call"}};
    for (std::size_t i = 0; i < coop::kFaultCount; ++i)
        rows.push_back({code(coop::kFaultLabels[i]), meaning(static_cast<coop::Fault>(i))});
    print_table("25 75", rows);
}

// --- performance variables -------------------------------------------------

const char* class_of(coop::VariableKind kind) {
    switch (kind) {
    case coop::VariableKind::kTotal: return "counter";
    case coop::VariableKind::kLevel: return "level";
    case coop::VariableKind::kHighWater: return "high-water mark";
    }
    fail("a kind of variable has no class");
}

void print_variables() {
    std::vector<std::vector<std::string>> rows = {{"Variable", "Class", "Meaning"}};
    for (std::size_t i = 0; i < coop::rndv::kRows; ++i) {
        const std::string name = coop::rndv::name(static_cast<coop::rndv::Row>(i));
        rows.push_back(
            {code(kPrefix + ("messages_" + name)), "counter", "Messages that this process sent by " + name + "."});
        rows.push_back({code(kPrefix + ("bytes_" + name)), "counter",
                        "Bytes of the messages that this process sent by " + name + "."});
    }
    for (const coop::Variable& v : coop::kVariables)
        rows.push_back({code(std::string(kPrefix) + v.name), class_of(v.kind), v.help});
    for (const coop::async::HandlerVariable& v : coop::async::kHandlerVariables)
        rows.push_back({code(std::string(kPrefix) + v.name), "counter", v.help});
    for (const coop::node::LaneVariable& v : coop::node::kLaneVariables)
        rows.push_back({code(std::string(kPrefix) + v.name), "level", v.help});
    print_table("40 15 45", rows);
}

const char* elements_of(coop::ib::Scope scope) {
    switch (scope) {
    case coop::ib::Scope::kProcess: return "one";
    case coop::ib::Scope::kHca: return "one per HCA";
    case coop::ib::Scope::kRail: return "one per rail";
    }
    fail("a scope has no words");
}

void print_coopib_variables() {
    std::vector<std::vector<std::string>> rows = {{"Variable", "Elements", "Meaning"}};
    for (const coop::ib::Variable& v : coop::ib::kVariables)
        rows.push_back({code(std::string(kCoopibPrefix) + v.name), elements_of(v.scope), v.help});
    print_table("40 15 45", rows);
}

// --- packets ---------------------------------------------------------------

struct Field {
    const char* name;
    std::size_t offset, bytes;
    const char* meaning;
};

#define FIELD(Header, member, meaning) \
    Field { #member, offsetof(coop::wire::Header, member), sizeof(coop::wire::Header::member), meaning }

constexpr Field kMatch[] = {
    FIELD(MatchHeader, kind, "1; the other kinds follow in the order of this page"),
    FIELD(MatchHeader, flags, "0 in a MATCH; flags of an RTS: see below"),
    FIELD(MatchHeader, context, "context id of the communicator"),
    FIELD(MatchHeader, source, "rank of the sender in that communicator"),
    FIELD(MatchHeader, tag, "tag of the message; negative: internal to the library"),
    FIELD(MatchHeader, sequence, "sequence number of the message for this sender and communicator; wraps"),
    FIELD(MatchHeader, check, "check word over the header"),
};

// An RTS begins with a whole match header.
std::span<const Field> parts_of(const Field& field) {
    if (std::string_view(field.name) == "match") return kMatch;
    return {&field, 1};
}

// The layout as a picture (docs/ext/coop_figures.py), then the fields.
void print_header(coop::wire::Kind kind, std::size_t header_bytes, const char* followed_by,
                  std::span<const Field> fields) {
    const std::string name = coop::wire::name(kind);
    const std::string title = name + " (" + std::to_string(header_bytes) + " bytes)";
    print(title + "\n" + std::string(title.size(), '-') + "\n\n.. packet:: " + title + "\n");
    if (followed_by[0]) print(std::string("   :then: ") + followed_by + "\n");
    print("\n");
    std::size_t next = 0;
    for (const Field& f : fields) {
        if (f.offset != next) fail(name + ": no field is given for byte " + std::to_string(next));
        next = f.offset + f.bytes;
        for (const Field& part : parts_of(f))
            print("   " + std::to_string(part.offset) + " " + std::to_string(part.bytes) + " " + part.name + "\n");
    }
    if (next != header_bytes) fail(name + ": no field is given for byte " + std::to_string(next));
    print("\n");

    std::vector<std::vector<std::string>> rows = {{"Offset", "Bytes", "Field", "Meaning"}};
    for (const Field& f : fields)
        rows.push_back({std::to_string(f.offset), std::to_string(f.bytes), code(f.name), f.meaning});
    print_table("10 10 22 58", rows);
}

void print_packets() {
    using coop::wire::Kind;
    print_header(Kind::kMatch, sizeof(coop::wire::MatchHeader), "payload", kMatch);

    const Field rts[] = {
        FIELD(RtsHeader, match,
              "a MATCH header with kind 2; its check word covers the RTS and the handle, slot and pieces after it"),
        FIELD(RtsHeader, length, "bytes of the whole message"),
        FIELD(RtsHeader, send_id, "names the send request in the answer; 0 in row bounce, which needs no answer"),
        FIELD(RtsHeader, address,
              "address of the send buffer; valid with the flag *get*. In row bounce: generation (upper 32 bits) and "
              "index of the bounce buffer"),
        FIELD(RtsHeader, inline_bytes, "payload in this packet; with the flag *pieces*: bytes of their list"),
        FIELD(RtsHeader, handle_bytes, "size of the registration handle after the header"),
        FIELD(RtsHeader, row, "protocol that the sender offers"),
        FIELD(RtsHeader, reason, "reason for this row"),
        FIELD(RtsHeader, call, "MPI call of the sender"),
    };
    print_header(Kind::kRts, sizeof(coop::wire::RtsHeader), "handle, slot (rtr), payload or pieces; bounce: nothing",
                 rts);
    const std::vector<std::vector<std::string>> flags = {
        {"Flag", "Value", "Meaning"},
        {"contiguous", std::to_string(coop::wire::kFlagContiguous), "the send buffer is one piece of memory"},
        {"get", std::to_string(coop::wire::kFlagGet), "address and handle are valid: the receiver may get"},
        {"synchronous", std::to_string(coop::wire::kFlagSync), "answer even if the RTS contains all data"},
        {"share", std::to_string(coop::wire::kFlagShare), "the sender has mapped the receiver's board and may put"},
        {"pieces", std::to_string(coop::wire::kFlagPieces),
         "the send buffer is not contiguous; its pieces follow (with *get*)"},
        {"wish", std::to_string(coop::wire::kFlagWish), "three bits: the sender's ``pml_coop_protocol``"},
    };
    static_assert((coop::wire::kFlagContiguous | coop::wire::kFlagGet | coop::wire::kFlagSync | coop::wire::kFlagShare |
                   coop::wire::kFlagPieces | coop::wire::kFlagWish) == 0xff);
    print_table("20 10 70", flags);

    const Field cts[] = {
        FIELD(CtsHeader, kind, "3"),
        FIELD(CtsHeader, row, "protocol granted"),
        FIELD(CtsHeader, check, "check word over header, handle and pieces"),
        FIELD(CtsHeader, sender, "rank in the job of the process that wrote this header"),
        FIELD(CtsHeader, send_id, "from the RTS"),
        FIELD(CtsHeader, recv_id, "names the receive request in FRAG and FIN"),
        FIELD(CtsHeader, offset, "start of the granted range of the message"),
        FIELD(CtsHeader, length, "its length; 0: all data has arrived"),
        FIELD(CtsHeader, address, "address of the byte at ``offset``; valid for rput and coop"),
        FIELD(CtsHeader, copy,
              "slot, generation, chunk size and split (which side leads) of a cooperative copy: in row coop, and in "
              "row rput between two processes with boards; otherwise 0"),
        FIELD(CtsHeader, handle_bytes, "size of the registration handle after the header; rput and coop only"),
        FIELD(CtsHeader, reason, "reason for this row"),
        FIELD(CtsHeader, pieces, "number of pieces of the receive buffer that follow; 0: contiguous"),
        FIELD(CtsHeader, counted,
              "1: the receiver has added the sender's part to the sender's load, and the sender must subtract it; rput "
              "and coop only"),
        FIELD(CtsHeader, offloads,
              "1: an HCA could read a part if the sender writes the key of its buffer into the slot; coop only"),
        FIELD(CtsHeader, sees, "1: the receiver has mapped the sender's shared memory and can read bounce buffers"),
        FIELD(CtsHeader, reserved, "zero"),
    };
    print_header(Kind::kCts, sizeof(coop::wire::CtsHeader), "handle, pieces", cts);

    const Field frag[] = {
        FIELD(FragHeader, kind, "4"),
        FIELD(FragHeader, reserved, "zero"),
        FIELD(FragHeader, check, "check word over the header"),
        FIELD(FragHeader, sender, "rank in the job of the process that wrote this header"),
        FIELD(FragHeader, recv_id, "from the CTS"),
        FIELD(FragHeader, offset, "offset of the payload in the message"),
    };
    print_header(Kind::kFrag, sizeof(coop::wire::FragHeader), "payload", frag);

    const Field fin[] = {
        FIELD(FinHeader, kind, "5"),
        FIELD(FinHeader, what,
              "0: this FIN goes to the receiver of the message; otherwise it goes to the sender: 1 + the reason for "
              "the row"),
        FIELD(FinHeader, check, "check word over the header"),
        FIELD(FinHeader, sender, "rank in the job of the process that wrote this header"),
        FIELD(FinHeader, id, "the receive request (to the receiver) or the send request (to the sender)"),
        FIELD(FinHeader, bytes,
              "bits 0 to 47: bytes put or read. Only to the sender: bits 48 to 55: the row that moved the data; "
              "bits 56 to 62: the number of FINs of this message (0: one); bit 63: *sees* as in the CTS"),
    };
    print_header(Kind::kFin, sizeof(coop::wire::FinHeader), "", fin);
}

// --- decisions -------------------------------------------------------------

using coop::rndv::Choice, coop::rndv::Link, coop::rndv::Reason, coop::rndv::RecvCall, coop::rndv::Row,
    coop::rndv::SendCall, coop::rndv::Situation, coop::rndv::Split, coop::rndv::Wish;

bool gets(const Situation& s) { return s.can_get && !s.get_refused; }
bool puts(const Situation& s) { return s.can_put && !s.put_refused; }
bool refused(const Situation& s) { return s.get_refused || s.put_refused; }
bool short_message(const Situation& s) { return s.bytes <= s.eager_limit; }
bool forced(const Situation& s) { return s.wish == Wish::kRget || s.wish == Wish::kRput || s.wish == Wish::kSend; }

bool on_boards(const Situation& s) { return s.can_share && !refused(s); }
bool both_may_copy(const Situation& s) { return !forced(s) && on_boards(s); }
bool no_slot(const Situation& s) {
    Situation with_slot = s;
    with_slot.slot_free = true;
    return on_boards(s) && !s.slot_free && coop::rndv::is_shared(coop::rndv::choose(with_slot));
}
bool by(Wish wish, const Situation& s) { return both_may_copy(s) && s.wish == wish; }

bool sender_waits(const Situation& s) { return s.send_call != SendCall::kIsend && s.send_call != SendCall::kBsend; }
bool receiver_waits(const Situation& s) { return s.recv_call == RecvCall::kRecv; }
bool both_wait(const Situation& s) { return sender_waits(s) && receiver_waits(s); }
bool sender_is_the_one(const Situation& s) { return !receiver_waits(s) && s.send_call != SendCall::kIsend; }

bool lighter_receiver(const Situation& s) { return s.receiver_load < s.sender_load; }
bool clearly_lighter_receiver(const Situation& s) { return s.sender_load >= s.receiver_load + 3 * s.bytes; }
bool clearly_lighter_sender(const Situation& s) { return s.receiver_load >= s.sender_load + 3 * s.bytes; }
bool much_lighter_sender(const Situation& s) { return s.receiver_load / 2 > s.sender_load + s.bytes; }
bool busy(const Situation& s) { return s.sender_load > 0 && s.receiver_load > 0; }
bool hybrid(const Situation& s) { return by(Wish::kHybrid, s); }
bool busy_one_copies(const Situation& s) { return hybrid(s) && busy(s); }
bool nobody_decides(const Situation& s) {
    return (!receiver_waits(s) && s.send_call == SendCall::kIsend) || (both_wait(s) && s.crowded);
}

bool is_stream(const Situation& s) {
    return !forced(s) && (s.can_get || s.can_put) && !s.same_node && !sender_waits(s) && s.bytes < s.isend_rdma_min;
}

struct Case {
    const char* condition;
    bool (*holds)(const Situation&);
};
constexpr Case kCases[] = {
    {"``hybrid``, 64 KiB or more, both sides wait, and the receiver finds the lane quicker, or tries it",
     [](const Situation& s) { return s.lane_is_quicker; }},
    {"*lane*, fits one packet of it", [](const Situation& s) { return s.lane_max > 0 && short_message(s); }},
    {"*lane*, at most ``pml_coop_lane_max``: ``send``; or ``hybrid``, and the sender waits or the transport does not "
     "get",
     [](const Situation& s) {
         return s.bytes <= s.lane_max &&
                (s.wish == Wish::kSend ||
                 (s.wish == Wish::kHybrid && (coop::rndv::sender_waits(s.send_call) || !s.can_get)));
     }},
    {"fits the eager limit, standard send", [](const Situation& s) { return short_message(s) && !s.synchronous; }},
    {"fits the eager limit, synchronous send", [](const Situation& s) { return short_message(s) && s.synchronous; }},
    {"``hybrid``, both boards are mapped, *one way*, at most ``pml_coop_bounce_max``",
     [](const Situation& s) {
         return s.wish == Wish::kHybrid && s.can_share && s.one_way && !s.synchronous &&
                s.send_call == SendCall::kSend && s.bytes <= s.bounce_max;
     }},
    {"the send buffer is in pieces", [](const Situation& s) { return !s.sender_contiguous; }},
    {"the receive buffer is in pieces", [](const Situation& s) { return !s.receiver_contiguous; }},
    {"``send``", [](const Situation& s) { return s.wish == Wish::kSend; }},
    {"*free*, shorter than ``pml_coop_rdma_min``",
     [](const Situation& s) { return !forced(s) && s.bytes < s.rdma_min; }},
    {"*free*, RDMA is possible, on different nodes, the sender does not wait, ``pml_coop_isend_rdma_min`` is 0, "
     "shorter "
     "than 64 KiB, and the link is *slow*",
     [](const Situation& s) { return is_stream(s) && s.link == Link::kSlow; }},
    {"*free*, RDMA is possible, on different nodes, the sender does not wait, shorter than ``pml_coop_isend_rdma_min``",
     [](const Situation& s) { return is_stream(s) && s.link == Link::kDoesNotMatter; }},
    {"*free*, the RDMA transport has less than half of the bandwidth to the peer",
     [](const Situation& s) { return !forced(s) && (s.can_get || s.can_put) && s.rdma_share < 0.5; }},

    {"*shared*, the sender has taken an offer", [](const Situation& s) { return both_may_copy(s) && s.offered; }},
    {"*boards*, the sender or both would copy, but the receiver has no free slot or cannot send the CTS", no_slot},
    {"*boards*, ``rput``", [](const Situation& s) { return on_boards(s) && s.wish == Wish::kRput; }},
    {"*shared*, ``coop``", [](const Situation& s) { return by(Wish::kCoop, s); }},
    {"*shared*, ``coop_fixed``", [](const Situation& s) { return by(Wish::kCoopFixed, s); }},
    {"*shared*, ``coop_coll``: both wait", [](const Situation& s) { return by(Wish::kCoopColl, s) && both_wait(s); }},
    {"*shared*, ``coop_coll``: the receiver waits",
     [](const Situation& s) { return by(Wish::kCoopColl, s) && receiver_waits(s); }},
    {"*shared*, ``coop_coll``: the sender waits, or its send is buffered",
     [](const Situation& s) { return by(Wish::kCoopColl, s) && sender_is_the_one(s); }},
    {"*shared*, ``coop_coll``: neither waits", [](const Situation& s) { return by(Wish::kCoopColl, s); }},
    {"*shared*, ``coop_load``: the receiver has *clearly less* to copy",
     [](const Situation& s) { return by(Wish::kCoopLoad, s) && clearly_lighter_receiver(s); }},
    {"*shared*, ``coop_load``: the sender has *clearly less* to copy",
     [](const Situation& s) { return by(Wish::kCoopLoad, s) && clearly_lighter_sender(s); }},
    {"*shared*, ``coop_load``: it is the receiver's *turn*",
     [](const Situation& s) { return by(Wish::kCoopLoad, s) && s.sender_surplus > 0; }},
    {"*shared*, ``coop_load``: it is the sender's *turn*",
     [](const Situation& s) { return by(Wish::kCoopLoad, s) && s.sender_surplus < 0; }},
    {"*shared*, ``coop_load``: otherwise", [](const Situation& s) { return by(Wish::kCoopLoad, s); }},

    {"*shared*, ``hybrid``, shorter than ``pml_coop_coop_min`` (twice that on a node with more processes than "
     "cores)",
     [](const Situation& s) { return hybrid(s) && !coop::rndv::long_enough_for_two(s); }},
    {"*shared*, ``hybrid``, the receiver sends as well: the sender has *much less* to copy",
     [](const Situation& s) { return hybrid(s) && s.receiver_sends && much_lighter_sender(s); }},
    {"*shared*, ``hybrid``, the receiver sends as well: the receiver has less to copy",
     [](const Situation& s) { return hybrid(s) && s.receiver_sends && lighter_receiver(s); }},
    {"*shared*, ``hybrid``, the receiver sends as well: otherwise",
     [](const Situation& s) { return hybrid(s) && s.receiver_sends; }},
    {"*shared*, ``hybrid``, both wait, enough cores",
     [](const Situation& s) { return hybrid(s) && both_wait(s) && !s.crowded; }},
    {"*shared*, ``hybrid``, *busy*, *undecided*: the sender has *much less* to copy",
     [](const Situation& s) { return busy_one_copies(s) && nobody_decides(s) && much_lighter_sender(s); }},
    {"*shared*, ``hybrid``, *busy*, *undecided*: the receiver has less to copy",
     [](const Situation& s) { return busy_one_copies(s) && nobody_decides(s) && lighter_receiver(s); }},
    {"*shared*, ``hybrid``, *busy*, *undecided*: otherwise",
     [](const Situation& s) { return busy_one_copies(s) && nobody_decides(s); }},
    {"*shared*, ``hybrid``, *busy*, the receiver waits",
     [](const Situation& s) { return busy_one_copies(s) && receiver_waits(s); }},
    {"*shared*, ``hybrid``, *busy*, the sender waits, or its send is buffered", busy_one_copies},
    {"*shared*, ``hybrid``, *undecided*: the sender has *much less* to copy",
     [](const Situation& s) { return hybrid(s) && nobody_decides(s) && much_lighter_sender(s); }},
    {"*shared*, ``hybrid``, *undecided*: the receiver has less to copy",
     [](const Situation& s) { return hybrid(s) && nobody_decides(s) && lighter_receiver(s); }},
    {"*shared*, ``hybrid``, *undecided*: otherwise", [](const Situation& s) { return hybrid(s) && nobody_decides(s); }},
    {"*shared*, ``hybrid``, the receiver waits", [](const Situation& s) { return hybrid(s) && receiver_waits(s); }},
    {"*shared*, ``hybrid``, the sender waits, or its send is buffered", hybrid},

    {"``rget``, the transport gets", [](const Situation& s) { return s.wish == Wish::kRget && gets(s); }},
    {"``rput``, the transport puts; on one node, only if it does not get",
     [](const Situation& s) { return s.wish == Wish::kRput && puts(s) && !(s.same_node && gets(s)); }},
    {"*free*, the transport gets, on different nodes, the sender does not wait, ``pml_coop_isend_rdma_min`` is 0, "
     "shorter "
     "than 64 KiB, and the link is *fast*",
     [](const Situation& s) { return !forced(s) && gets(s) && s.link == Link::kFast; }},
    {"*free*, the transport gets", [](const Situation& s) { return !forced(s) && gets(s); }},
    {"``rput``, the transport gets", gets},
    {"the transport puts, and get was refused", [](const Situation& s) { return puts(s) && s.get_refused; }},
    {"``rget``, the transport puts", [](const Situation& s) { return puts(s) && s.wish == Wish::kRget; }},
    {"*free*, the transport puts", puts},
    {"the kernel denies copies between the two", [](const Situation& s) { return s.kernel_copy_denied; }},
    {"get or put was refused", refused},
    {"``rget`` or ``rput``, neither get nor put", forced},
    {"*free*, neither get nor put", [](const Situation&) { return true; }},
};

const char* copiers(const Choice& choice) {
    const coop::rndv::Protocol& protocol = coop::rndv::protocol(choice.row);
    if (protocol.uses_bounce) return "sender, then receiver";
    if (protocol.starts_at_once) return "as without the offer";
    switch (protocol.mover(choice)) {
    case coop::rndv::Mover::kPackets: return "–";
    case coop::rndv::Mover::kSender: return "sender";
    case coop::rndv::Mover::kReceiver: return "receiver";
    case coop::rndv::Mover::kBoth: break;
    }
    if (!protocol.idle_side_helps) return "sender; receiver if the sender makes no progress";
    switch (choice.split) {
    case Split::kBoth: return "both, chunk by chunk";
    case Split::kHalves: return "each one half; all if the other side makes no progress";
    case Split::kReceiverLeads: return "receiver; the sender helps if it is idle or the receiver makes no progress";
    case Split::kSenderLeads: return "sender; the receiver helps if it is idle or the sender makes no progress";
    }
    fail("a row has no copier");
}

// Enumerates all combinations of inputs: each call of pick(n) returns one of n
// values, a digit of one number.
class Digits {
public:
    explicit Digits(unsigned long number) : rest_(number) {}
    unsigned pick(unsigned n) {
        const auto digit = static_cast<unsigned>(rest_ % n);
        rest_ /= n;
        return digit;
    }
    bool bit() { return pick(2) == 1; }
    bool used_up() const { return rest_ == 0; }

private:
    unsigned long rest_;
};

void pick_common(Situation& s, Digits& digits) {
    s.eager_limit = 4024;
    s.bytes = digits.bit() ? 1 << 20 : 64;
    s.rdma_min = digits.bit() ? 2 << 20 : 0;
    s.rdma_share = digits.bit() ? 1 : 0.4;
    s.wish = static_cast<Wish>(digits.pick(coop::rndv::kWishes));
    s.synchronous = digits.bit();
    s.sender_contiguous = digits.bit();
    s.receiver_contiguous = digits.bit();
    s.get_refused = digits.bit();
    s.put_refused = digits.bit();
}

// Two processes that have mapped each other's board.
bool pick_sharing(Situation& s, unsigned long number) {
    Digits digits(number);
    pick_common(s, digits);
    constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
    constexpr std::uint64_t kLoads[][2] = {{0, 0}, {5, 5},     {0, 5},     {3, 5},    {5, 0},
                                           {5, 3}, {0, kMuch}, {3, kMuch}, {kMuch, 0}};
    constexpr std::int64_t kSurplus[] = {0, 1, -1};
    const auto& loads = kLoads[digits.pick(9)];
    s.same_node = s.can_share = s.can_get = s.can_put = true;
    s.sender_load = loads[0];
    s.receiver_load = loads[1];
    if (s.wish == Wish::kCoopLoad) s.sender_surplus = kSurplus[digits.pick(3)];
    s.coop_min = digits.bit() ? 2 << 20 : 0;
    s.one_way = digits.bit();
    s.bounce_max = s.one_way && digits.bit() ? 1 << 20 : 0;
    s.slot_free = digits.bit();
    s.offered = digits.bit();
    s.receiver_sends = digits.bit();
    s.crowded = digits.bit();
    s.send_call = static_cast<SendCall>(digits.pick(coop::rndv::kSendCalls));
    s.recv_call = static_cast<RecvCall>(digits.pick(2));
    s.lane_is_quicker = digits.bit() && s.wish == Wish::kHybrid && s.bytes > s.eager_limit && s.sender_contiguous &&
                        s.receiver_contiguous;
    return digits.used_up();
}

// Two processes without boards, on one node or on two.
bool pick_apart(Situation& s, unsigned long number) {
    Digits digits(number);
    pick_common(s, digits);
    s.can_get = digits.bit();
    s.can_put = digits.bit();
    s.same_node = digits.bit();
    s.kernel_copy_denied = digits.bit();
    const unsigned limit = digits.pick(4);
    s.isend_rdma_min = limit == 1 || limit == 2 ? 2 << 20 : 0;
    s.send_call = static_cast<SendCall>(digits.pick(coop::rndv::kSendCalls));
    if (limit >= 2 && !s.same_node && !sender_waits(s)) s.link = limit == 2 ? Link::kSlow : Link::kFast;
    return digits.used_up();
}

// Two processes of one node with a lane; what else differs between rows is varied below.
bool pick_lane(Situation& s, unsigned long number) {
    Digits digits(number);
    pick_common(s, digits);
    s.same_node = true;
    s.can_get = digits.bit();
    s.can_put = digits.bit();
    s.send_call = static_cast<SendCall>(digits.pick(coop::rndv::kSendCalls));
    s.lane_max = digits.bit() ? 2 << 20 : 8192;
    return digits.used_up();
}

// Fails unless the table holds for every situation.
void print_decisions() {
    std::vector<std::optional<Choice>> answers(std::size(kCases));
    std::vector<bool> shown(coop::rndv::kReasons, false);
    shown[static_cast<std::size_t>(Reason::kNothingLeft)] = true;  // decided by the receiver alone: the last line
    for (const Reason reason : {Reason::kReadFromSender, Reason::kPacketIsQuicker})
        shown[static_cast<std::size_t>(reason)] = true;  // decided before there is a request
    for (auto pick : {pick_apart, pick_lane, pick_sharing})
        for (unsigned long n = 0;; ++n) {
            Situation s;
            if (!pick(s, n)) break;
            std::size_t i = 0;
            while (!kCases[i].holds(s)) ++i;
            Choice choice = coop::rndv::choose(s);
            if (coop::rndv::protocol(choice.row).starts_at_once) choice.split = Split::kBoth;  // as without the offer
            if (answers[i] && *answers[i] != choice)
                fail(std::string("the case \"") + kCases[i].condition + "\" has two answers");
            answers[i] = choice;
            shown[static_cast<std::size_t>(choice.reason)] = true;
        }
    for (std::size_t i = 0; i < shown.size(); ++i)
        if (!shown[i])
            fail(std::string("no situation leads to the reason \"") + coop::rndv::text(static_cast<Reason>(i)) + '"');

    std::vector<std::vector<std::string>> rows = {
        {"", "First condition that holds", "Row", "Copied by", "Reason in the report"}};
    for (std::size_t i = 0; i < std::size(kCases); ++i) {
        if (!answers[i]) fail(std::string("the case \"") + kCases[i].condition + "\" never occurs");
        rows.push_back({std::to_string(i + 1), kCases[i].condition, code(coop::rndv::name(answers[i]->row)),
                        copiers(*answers[i]), coop::rndv::text(answers[i]->reason)});
    }
    rows.push_back(
        {"–", "receiver: the RTS contains all data", "as offered", "–", coop::rndv::text(Reason::kNothingLeft)});
    print_table("6 38 10 18 28", rows);
}

struct Part {
    std::string_view name;
    void (*print)();
};
constexpr Part kParts[] = {
    {"parameters", print_parameters},
    {"parameters-short", print_parameters_short},
    {"coopib-parameters", print_coopib_parameters},
    {"coopib-parameters-short", print_coopib_parameters_short},
    {"coopib-variables", print_coopib_variables},
    {"rdmaag-parameters", print_rdmaag_parameters},
    {"rdmaag-parameters-short", print_rdmaag_parameters_short},
    {"rdmaag-variables", print_rdmaag_variables},
    {"rdmaag-variables-short", print_rdmaag_variables_short},
    {"rdmaag-algorithms", print_rdmaag_algorithms},
    {"rdmaag-trials", print_rdmaag_trials},
    {"multirail-parameters", print_multirail_parameters},
    {"multirail-parameters-short", print_multirail_parameters_short},
    {"multirail-variables", print_multirail_variables},
    {"multirail-variables-short", print_multirail_variables_short},
    {"multirail-words", print_multirail_words},
    {"multirail-reasons", print_multirail_reasons},
    {"rma-epochs", print_rma_epochs},
    {"faults", print_faults},
    {"variables", print_variables},
    {"packets", print_packets},
    {"decisions", print_decisions},
};

}  // namespace

int main(int argc, char** argv) {
    for (const Part& part : kParts)
        if (argc == 2 && part.name == argv[1]) {
            part.print();
            return 0;
        }
    std::string names;
    for (const Part& part : kParts) names += (names.empty() ? "" : " | ") + std::string(part.name);
    fail("usage: reference " + names);
}
