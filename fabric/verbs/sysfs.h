// SPDX-License-Identifier: BSD-3-Clause
//
// The part of /sys and /dev that programs look at to find InfiniBand devices:
//
//     /sys/class/infiniband/coop0/…              name, GUID, firmware, ports with state, LID, GIDs, counters
//     /sys/class/infiniband_verbs/uverbs0/…      the verbs device of it
//     /dev/infiniband/uverbs0                    a device that can be opened
//
// None of it is there; the calls that libc.cc defines find it here.
#pragma once

#include <string>

namespace coop::fabric {

inline constexpr const char* kFirmware = "2.42.5000";
inline constexpr const char* kBoard = "COOP_FABRIC";

enum class PathKind { none, folder, file, device };

// Whether a path could be of this tree at all: a comparison of its first bytes.
bool may_be_faked(const char* path);
// `text` is what is in a file.
PathKind find_faked(const char* path, std::string& text);

}  // namespace coop::fabric
