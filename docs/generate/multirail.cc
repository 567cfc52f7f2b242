// SPDX-License-Identifier: BSD-3-Clause
#include "multirail.h"

#include <string>
#include <vector>

#include "ompi/mca/osc/multirail/params.h"
#include "ompi/mca/osc/multirail/variables.h"
#include "rst.h"

namespace {

using coop::osc::Reason, coop::osc::Way;

constexpr const char* kPrefix = "osc_multirail_";

std::vector<coop::osc::Variable> all_variables() {
    std::vector<coop::osc::Variable> all;
    for (const coop::osc::CountRow& row : coop::osc::kCountRows) all.push_back({row.name, row.help});
    for (const auto scope : {coop::osc::Scope::kProcess, coop::osc::Scope::kWindow})
        for (std::size_t cell = 0; cell < coop::osc::kCells; ++cell)
            all.push_back(coop::osc::cell_variable(cell, scope));
    return all;
}

// A reason and the ways that follow from it: the first one, and the other one where HCAs execute the epoch.
struct Meaning {
    Way way;
    Way with_hcas;
    const char* words;
};

Meaning meaning(Reason reason) {
    switch (reason) {
    case Reason::kOwnMemory: return {Way::kMapped, Way::kMapped, "the target is the process itself"};
    case Reason::kSameNode:
        return {Way::kMapped, Way::kMapped, "the target's memory is shared memory that this process has mapped"};
    case Reason::kLong:
        return {
            Way::kDirect, Way::kDirect,
            "a put or get of at least ``osc_multirail_direct_min`` bytes, one block at the origin, whose blocks at the "
            "target have that length on average"};
    case Reason::kShort: return {Way::kMessage, Way::kStaged, "a put or get of fewer bytes"};
    case Reason::kSeveralBlocks:
        return {
            Way::kMessage, Way::kStaged,
            "a put or get of that many bytes whose datatype has gaps at the origin, or shorter blocks at the target"};
    case Reason::kNotRegistered:
        return {Way::kMessage, Way::kMessage,
                "the target's memory is not registered, because the transport refused it"};
    case Reason::kNoRdma:
        return {Way::kMessage, Way::kMessage,
                "the window has no transport for RDMA: ``btl/coopib`` does not carry the packets to all other nodes "
                "or, on one node, ``vader`` carries them"};
    case Reason::kDynamic:
        return {Way::kMessage, Way::kMessage, "a put or get in a window of ``MPI_Win_create_dynamic``"};
    case Reason::kAtTarget:
        return {Way::kMessage, Way::kMessage,
                "an accumulate that neither its origin nor an HCA can execute, or that belongs to an active epoch of a "
                "window whose memory its processes have not mapped"};
    case Reason::kAtOrigin:
        return {Way::kCma, Way::kStaged,
                "an accumulate that this process executes, in a passive epoch: of a window whose processes are all on "
                "this node, under a lock in shared memory, or of one that HCAs control, under a lock that they change"};
    case Reason::kOtherTransport:
        return {Way::kMessage, Way::kMessage,
                "the target is on the own node, its memory is not mapped, and another transport than that of the "
                "window's RDMA carries packets there (``vader``); HCAs do not execute the epoch"};
    case Reason::kTargetHelps:
        return {Way::kMessage, Way::kMessage,
                "a put or get of short blocks in an epoch that HCAs execute, with ``osc_multirail_target_helps``: of "
                "four blocks or more, or while an earlier one to the same target has not ended"};
    case Reason::kNotShared:
        return {
            Way::kCma, Way::kCma,
            "the target is on this node, and its memory is not shared, but the kernel permits to read and write it"};
    case Reason::kBothCopy:
        return {Way::kMessage, Way::kMessage,
                "the same, but a put or get of at least ``osc_multirail_rendezvous_min`` bytes in one block, in an "
                "active epoch: both processes copy"};
    case Reason::kCollected:
        return {Way::kMessage, Way::kMessage,
                "the same, but in an active epoch, and the blocks have fewer than ``osc_multirail_cma_min`` bytes on "
                "average: one message carries many of them"};
    case Reason::kNotPermitted:
        return {Way::kMessage, Way::kMessage,
                "the target is on this node, its memory is not shared, and the kernel does not permit all processes of "
                "the node to read and write the memory of the others"};
    case Reason::kRefused:
        return {Way::kMessage, Way::kStaged,
                "what is left of a put or get after RDMA was refused, for example because the memory of the origin "
                "could not be registered; or an operation for which the kernel has refused a copy"};
    }
    fail("a reason without a meaning");
}

std::string words_of(const Meaning& meaning) {
    const std::string first = code(text(meaning.way));
    return meaning.with_hcas == meaning.way ? first : first + ", " + code(text(meaning.with_hcas));
}

}  // namespace

void print_multirail_parameters() { print(coop::to_rst("Parameters of osc/multirail", kPrefix, coop::osc::params())); }
void print_multirail_parameters_short() { print_short(kPrefix, coop::osc::params()); }

void print_multirail_variables() {
    std::vector<std::vector<std::string>> rows = {{"Variable", "Meaning"}};
    for (const coop::osc::Variable& v : all_variables()) rows.push_back({code(kPrefix + v.name), v.help});
    print_table("45 55", rows);
}

void print_multirail_variables_short() {
    for (const coop::osc::Variable& v : all_variables())
        print("**" + (kPrefix + v.name) + "**\n    " + v.help + "\n\n");
}

void print_multirail_words() {
    std::string ways;
    for (const char* const word : coop::osc::kWayTexts) ways += (ways.empty() ? "" : ", ") + code(word);
    std::vector<std::vector<std::string>> rows = {{"Words", "Number of"}};
    rows.push_back({ways, "Operations of this process, by their way. In the lines of windows also bytes of data."});
    rows.push_back({code("reason:"), "Operations of this process, by the reason for their way."});
    for (const coop::osc::CountRow& row : coop::osc::kCountRows) rows.push_back({code(row.name), row.help});
    print_table("30 70", rows);
}

void print_multirail_reasons() {
    std::vector<std::vector<std::string>> rows = {{"Reason", "Way", "Meaning"}};
    for (std::size_t i = 0; i < coop::osc::kReasons; ++i) {
        const auto reason = static_cast<Reason>(i);
        const Meaning is = meaning(reason);
        rows.push_back({code(text(reason)), words_of(is), is.words});
    }
    print_table("22 18 60", rows);
}
