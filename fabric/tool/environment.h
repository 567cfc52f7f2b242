// SPDX-License-Identifier: BSD-3-Clause
//
// What a program needs in its environment to be on a subnet: COOP_FABRIC, its
// name; LD_PRELOAD, the library, before what the user has there already; and
// COOP_FABRIC_HOST, if it is to be on a certain host.
#pragma once

#include <string>

#include "fabric/shm/segment.h"

namespace coop::fabric {

std::string own_path();  // of the running program

// libcoopfabric.so: $COOP_FABRIC_LIBRARY, or where it is installed together with this program, or built.
Error find_library(std::string& path);

// `host` empty: as the rank says.
Error set_environment(const std::string& subnet, const std::string& host);

}  // namespace coop::fabric
