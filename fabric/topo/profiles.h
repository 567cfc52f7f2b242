// SPDX-License-Identifier: BSD-3-Clause
//
// The kinds of device that an HCA can be, with their abilities and limits. A
// program that runs on all of them relies on no ability of a single device.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabric/shm/layout.h"

namespace coop::fabric {

std::span<const Profile> profiles();                 // the first one is the default
const Profile* find_profile(std::string_view name);  // null: no profile has this name
std::string profile_names();                         // "default, nosrq, …"

}  // namespace coop::fabric
