// SPDX-License-Identifier: BSD-3-Clause
#include "modex.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "coop/base/architecture.h"
#include "diagnose.h"

namespace coop::pml {
namespace {

constexpr const char* kKey = "pml.coop";

// Fields are only added at the end, so that an older version can read the fields that it knows.
struct Card {
    std::uint32_t wire_version = 0;
    std::uint32_t report = 0;
    BoardCard board;
    std::uint64_t copy_works = 0;  // at least from this process to itself
    Architecture architecture{};
    std::uint32_t unused = 0;
    LaneCard lane;
};
static_assert(sizeof(Card) == 72);
// A card that an older version has published is shorter: what it does not tell is absent, not descriptor 0.
static_assert(Card{}.board.fd == -1 && Card{}.lane.fd == -1);

std::optional<Card> card_of(ompi_proc_t* proc) noexcept {
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

// True if the kernel lets this process copy from itself, which a seccomp filter may forbid.
bool copies_work_here() noexcept {
    const BoardCard own = board_card();
    return node::try_copy(own.pid, own.nonce_address, own.nonce) == 0;
}

}  // namespace

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

void check_version(ompi_proc_t* proc) noexcept {
    if (proc == ompi_proc_local()) return;
    const auto card = card_of(proc);
    const std::uint32_t theirs = card ? card->architecture.word() : 0;  // 0: from an older version
    if (theirs != 0 && theirs != opal_local_arch) architectures_differ(proc->super.proc_name.vpid, theirs);
    if (!card || card->wire_version != wire::kVersion)
        versions_differ(proc->super.proc_name.vpid, card ? std::to_string(card->wire_version) : "unknown");
}

bool published_board(ompi_proc_t* proc, BoardCard& board, bool& copies) noexcept {
    const auto card = card_of(proc);
    if (!card) return false;
    board = card->board;
    copies = card->copy_works;
    return true;
}

LaneCard published_lane(ompi_proc_t* proc) noexcept {
    const auto card = card_of(proc);
    return card ? card->lane : LaneCard{};
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
