// SPDX-License-Identifier: BSD-3-Clause
#include "rma.h"

#include "coop/rma/epoch.h"
#include "rst.h"

namespace {

using coop::rma::Access, coop::rma::Call, coop::rma::Cell, coop::rma::If, coop::rma::Needs;

std::string call_words(Call call) {
    if (call == Call::kAccess) return "communication";
    if (call == Call::kWait) return code("wait") + ", " + code("test");
    if (call == Call::kFlush) return code("flush") + ", " + code("flush_local");
    if (call == Call::kFlushAll) return code("flush_all") + ", " + code("flush_local_all");
    if (call == Call::kFenceNoSucceed) return code("fence") + ", NOSUCCEED";
    return code(coop::rma::name(call));
}

std::string condition_words(If condition) {
    switch (condition) {
    case If::kNever: return "error";
    case If::kAlways: return "";
    case If::kInGroup: return "target in the group";
    case If::kLocked: return "target locked";
    case If::kNotLocked: return "target not locked";
    }
    fail("a condition without words");
}

std::string needs_words(Needs needs) {
    switch (needs) {
    case Needs::kNothing: return "";
    case Needs::kUnexposed: return "not posted";
    case Needs::kPosted: return "posted";
    }
    fail("a need without words");
}

std::string cell_words(const Cell& cell, Access state) {
    const std::string condition = condition_words(cell.condition);
    if (cell.condition == If::kNever) return condition;
    if (cell.next == state) return condition.empty() ? "ok" : condition;
    return (condition.empty() ? "" : condition + " ") + "→ " + coop::rma::name(cell.next);
}

}  // namespace

void print_rma_epochs() {
    std::vector<std::vector<std::string>> rows = {{"Call"}};
    for (std::size_t i = 0; i < coop::rma::kAccesses; ++i) rows[0].push_back(name(static_cast<Access>(i)));
    rows[0].push_back("Exposure");
    for (const coop::rma::EpochRule& rule : coop::rma::rules::kEpochRules) {
        rows.push_back({call_words(rule.call)});
        for (std::size_t i = 0; i < coop::rma::kAccesses; ++i)
            rows.back().push_back(cell_words(rule.in[i], static_cast<Access>(i)));
        rows.back().push_back(needs_words(rule.needs));
    }
    print_table("20 12 13 12 15 12 15 12", rows);
}
