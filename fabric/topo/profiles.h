// SPDX-License-Identifier: BSD-3-Clause
//
// The devices that an HCA can be: a table of what they can do. A program that
// runs on all of them does not rely on what only the best one has.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabric/shm/layout.h"

namespace coop::fabric {

std::span<const Profile> profiles();                 // the first one is the default
const Profile* find_profile(std::string_view name);  // null: there is none
std::string profile_names();                         // "default, nosrq, …"

}  // namespace coop::fabric
