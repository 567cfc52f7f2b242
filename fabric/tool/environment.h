// SPDX-License-Identifier: BSD-3-Clause
//
// The environment that puts a program on a subnet: COOP_FABRIC, the subnet's
// name; LD_PRELOAD, with the library before the entries that the user has set;
// and COOP_FABRIC_HOST, if the program is to be on a particular host.
#pragma once

#include <string>

#include "fabric/shm/segment.h"

namespace coop::fabric {

std::string own_path();  // path of the running program

// Finds libcoopfabric.so: $COOP_FABRIC_LIBRARY, or the one installed or built together with this program.
Error find_library(std::string& path);

// With an empty `host`, COOP_FABRIC_HOST stays as it is; if it is not set, the host follows from the system's host name
// or the process's rank.
Error set_environment(const std::string& subnet, const std::string& host);

}  // namespace coop::fabric
