// SPDX-License-Identifier: BSD-3-Clause
#include "modex.h"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "diagnose.h"

namespace coop::pml {
namespace {

constexpr const char* kKey = "pml.coop";

// Only grows at its end: an older reader takes what it knows.
struct Card {
    std::uint32_t wire_version;
    std::uint32_t report;
};
static_assert(sizeof(Card) == 8);

std::optional<Card> card_of(ompi_proc_t* proc) noexcept {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    int rc;
    OPAL_MODEX_RECV_STRING(rc, kKey, &proc->super.proc_name, &bytes, &size);
    std::optional<Card> card;
    if (rc == OMPI_SUCCESS && bytes && size >= sizeof(Card)) std::memcpy(&card.emplace(), bytes, sizeof(Card));
    std::free(bytes);
    return card;
}

}  // namespace

void publish_modex() noexcept {
    Card card{wire::kVersion, static_cast<std::uint32_t>(module.config.report)};
    int rc;
    OPAL_MODEX_SEND_STRING(rc, OPAL_PMIX_GLOBAL, const_cast<char*>(kKey), &card, sizeof card);
    static_cast<void>(rc);  // a peer that finds nothing says so
}

bool same_version(ompi_proc_t* proc) noexcept {
    static std::unordered_set<std::uint64_t> known_good;  // under Module::lock; a look-up in PMIx takes 20 us
    const auto& name = proc->super.proc_name;
    const std::uint64_t key = (std::uint64_t{name.jobid} << 32) | name.vpid;
    {
        Guard guard(module.lock);
        if (proc == ompi_proc_local() || known_good.contains(key)) return true;
    }
    const auto card = card_of(proc);
    if (card && card->wire_version == wire::kVersion) {
        Guard guard(module.lock);
        known_good.insert(key);
        return true;
    }
    versions_differ(proc->super.proc_name.vpid, card ? std::to_string(card->wire_version) : "unknown");
}

std::int64_t published_report(ompi_proc_t* proc) noexcept {
    const auto card = card_of(proc);
    return card ? card->report : 0;
}

}  // namespace coop::pml
