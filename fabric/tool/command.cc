// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/command.h"

#include <cstdio>

namespace coop::fabric {

int fail(const Command& command, const Error& error) {
    std::fprintf(stderr, "coop-fabric %s: %s\n", command.name, error.text.c_str());
    return 1;
}

int misuse(const Command& command, const Error& error) {
    std::fprintf(stderr, "coop-fabric %s: %s\n(coop-fabric %s --help)\n", command.name, error.text.c_str(),
                 command.name);
    return 2;
}

}  // namespace coop::fabric
