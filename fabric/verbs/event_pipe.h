// SPDX-License-Identifier: BSD-3-Clause
//
// The pipes that events come by: read by the program through verbs, waited for
// with poll() by the program itself, written by any process of the subnet.
//
// What is in a pipe when its object is destroyed is taken out again, so that a
// program that was told to read finds something to read.
#pragma once

#include <cstddef>
#include <functional>

namespace coop::fabric {

// Reads one record. False: errno says why there is none (EAGAIN, if the program made the descriptor non-blocking).
bool read_record(int fd, void* record, std::size_t bytes);

// Takes out the records that `is_void` knows, and leaves the others.
void purge_records(int read_end, int write_end, std::size_t bytes, const std::function<bool(const void*)>& is_void);

}  // namespace coop::fabric
