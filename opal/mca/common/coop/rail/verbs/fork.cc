// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/fork.h"

#include <cerrno>
#include <system_error>

namespace coop::rail {

// ibv_fork_init() does nothing if the kernel copies pinned pages on fork (ibv_is_fork_initialized() returns
// IBV_FORK_UNNEEDED).
Status make_forks_safe() {
    const int number = ibv_fork_init();
    if (number == 0) return Done{};
    // EINVAL: another library of this process has already registered memory.
    return Trouble{number, "cannot protect registered memory from children of fork(): ibv_fork_init: " +
                               std::generic_category().message(number)};
}

}  // namespace coop::rail
