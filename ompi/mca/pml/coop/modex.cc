// SPDX-License-Identifier: BSD-3-Clause
#include "modex.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "coop/base/architecture.h"
#include "diagnose.h"
#include "processes.h"

namespace coop::pml {
namespace {

constexpr const char* kKey = "pml.coop";

// True if the kernel lets this process copy from itself, which a seccomp filter may forbid.
bool copies_work_here() noexcept {
    const BoardCard own = board_card();
    return node::try_copy(own.pid, own.nonce_address, own.nonce) == 0;
}

std::optional<Card> ask_for_card(ompi_proc_t* proc) noexcept {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    int rc;
    OPAL_MODEX_RECV_STRING(rc, kKey, &proc->super.proc_name, &bytes, &size);
    std::optional<Card> card;
    if (rc == OMPI_SUCCESS && bytes && size >= sizeof(Card::wire_version))
        std::memcpy(&card.emplace(), bytes, std::min(size, sizeof(Card)));
    std::free(bytes);
    return card;
}

// Another process of our job on this node.
bool is_neighbour(const ompi_proc_t* proc) noexcept {
    return proc != ompi_proc_local() && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags) && is_of_our_job(proc);
}

// Cards of neighbours, by name. Under Module::lock. Never destroyed: a process may end without MPI_Finalize.
std::unordered_map<std::uint64_t, Card>& known() {
    static auto& all = *new std::unordered_map<std::uint64_t, Card>;
    return all;
}

}  // namespace

std::optional<Card> card_of(ompi_proc_t* proc) noexcept {
    {
        Guard guard(module.lock);
        if (const auto found = known().find(name_of(proc)); found != known().end()) return found->second;
    }
    const auto card = ask_for_card(proc);
    if (card && is_neighbour(proc)) {
        Guard guard(module.lock);
        known().try_emplace(name_of(proc), *card);
    }
    return card;
}

void read_cards(ompi_proc_t** procs, std::size_t count) noexcept {
    for (ompi_proc_t* proc : std::span(procs, count))
        if (is_neighbour(proc)) card_of(proc);
}

void publish_modex() noexcept {
    Card card{wire::kVersion,
              static_cast<std::uint32_t>(module.given.report),
              board_card(),
              copies_work_here(),
              Architecture::of(opal_local_arch),
              0,
              lane_card()};
    int rc;
    OPAL_MODEX_SEND_STRING(rc, OPAL_PMIX_GLOBAL, const_cast<char*>(kKey), &card, sizeof card);
    static_cast<void>(rc);  // a peer that finds no card reports it
}

void check_version(const ompi_proc_t* proc, const std::optional<Card>& card) noexcept {
    const std::uint32_t theirs = card ? card->architecture.word() : 0;  // 0: from an older version
    if (theirs != 0 && theirs != opal_local_arch) architectures_differ(proc->super.proc_name.vpid, theirs);
    if (!card || card->wire_version != wire::kVersion)
        versions_differ(proc->super.proc_name.vpid, card ? std::to_string(card->wire_version) : "unknown");
}

bool rank_0_can_copy() noexcept {
    opal_process_name_t name{OMPI_PROC_MY_NAME->jobid, 0};
    ompi_proc_t* proc = ompi_proc_find(reinterpret_cast<ompi_process_name_t*>(&name));
    const auto card = proc ? card_of(proc) : std::nullopt;
    return card && card->copy_works;
}

std::int64_t published_report(ompi_proc_t* proc) noexcept {
    const auto card = card_of(proc);
    return card ? card->report : 0;
}

}  // namespace coop::pml
