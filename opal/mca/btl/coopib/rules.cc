// SPDX-License-Identifier: BSD-3-Clause
#include "rules.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "compat.h"

namespace coop::ib {
namespace {

constexpr std::size_t kAllHold = kRuleNames.size();
static_assert(kAllHold == static_cast<std::size_t>(Rule::kLeft) + 1);

std::size_t find_broken() noexcept {
    const char* const name = std::getenv("COOP_TEST_FAILOVER_WITHOUT");
    if (name == nullptr || *name == 0) return kAllHold;
    const auto found = std::find(kRuleNames.begin(), kRuleNames.end(), std::string_view(name));
    if (found == kRuleNames.end()) {
        opal_output(0, "btl/coopib: COOP_TEST_FAILOVER_WITHOUT: there is no rule '%s'", name);
        std::abort();
    }
    opal_output(0, "btl/coopib: a test has switched off the rule '%s' of failover: results may be wrong", name);
    return static_cast<std::size_t>(found - kRuleNames.begin());
}

}  // namespace

bool holds(Rule rule) noexcept {
    static const std::size_t broken = find_broken();
    return static_cast<std::size_t>(rule) != broken;
}

}  // namespace coop::ib
