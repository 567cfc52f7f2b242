// SPDX-License-Identifier: BSD-3-Clause
//
// The part of /sys and /dev that programs look at to find InfiniBand devices:
//
//     /sys/class/infiniband/coop0/…              name, GUID, firmware, ports with state, LID, GIDs, counters
//     /sys/class/infiniband_verbs/uverbs0/…      its verbs device
//     /dev/infiniband/uverbs0                    a device that can be opened
//
// These files do not exist; the calls that libc.cc interposes find them here.
#pragma once

#include <string>

namespace coop::fabric {

inline constexpr const char* kFirmware = "2.42.5000";
inline constexpr const char* kBoard = "COOP_FABRIC";

enum class PathKind { none, folder, file, device };

// A quick check of the first bytes: false for paths that cannot be in this tree.
bool may_be_faked(const char* path);
// Finds the kind of a path in this tree; `text` is set to the contents of a file.
PathKind find_faked(const char* path, std::string& text);

}  // namespace coop::fabric
