// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/protocol.h"

#include "coop/rndv/rows/row.h"

namespace coop::rndv {

const Protocol& protocol(Row row) noexcept { return *rows::kByNumber[static_cast<std::size_t>(row)]; }

Choice choose(const Situation& s) noexcept {
    for (const Protocol* row : rows::kByPreference)
        if (const auto choice = row->can_use(s)) return *choice;
    return rows::last_resort(s);
}

bool wants_offer(const Situation& s) noexcept {
    if (!s.can_share || !s.sender_contiguous || !long_enough_for_two(s) || s.get_refused || s.put_refused) return false;
    if (s.wish != Wish::kHybrid && !(s.wish == Wish::kCoopColl && s.send_call == SendCall::kRsend)) return false;
    return protocol(choose(s).row).shows_buffer(s);
}

std::string describe(const Choice& choice, const Situation& s) {
    return std::to_string(s.bytes) + " bytes go by " + name(choice.row) + ": " + text(choice.reason) +
           numbers(choice.reason, s);
}

}  // namespace coop::rndv
