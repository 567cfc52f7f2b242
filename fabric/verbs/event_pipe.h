// SPDX-License-Identifier: BSD-3-Clause
//
// The pipes that carry events. The program reads them through verbs and may wait
// for them with poll(); any process of the subnet writes them.
//
// When an object is destroyed its events are removed from the pipe. Otherwise
// poll() could report an event that a read does not find.
#pragma once

#include <cstddef>
#include <functional>

namespace coop::fabric {

// Reads one record. Returns false with errno set on failure (EAGAIN if the pipe is empty and the descriptor
// non-blocking).
bool read_record(int fd, void* record, std::size_t bytes);

// Removes the records for which `is_void` returns true.
void purge_records(int read_end, int write_end, std::size_t bytes, const std::function<bool(const void*)>& is_void);

}  // namespace coop::fabric
