// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/event_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <vector>

namespace coop::fabric {
namespace {

constexpr std::size_t kMostRecordBytes = 32;
using Record = std::array<std::byte, kMostRecordBytes>;

bool is_empty(int fd) {
    pollfd ask{fd, POLLIN, 0};
    return poll(&ask, 1, 0) <= 0;
}

// Opens the same pipe for reading without blocking, because the flags of the program's descriptor are the program's.
int open_without_blocking(int fd) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

}  // namespace

bool read_record(int fd, void* record, std::size_t bytes) {
    return read(fd, record, bytes) == static_cast<ssize_t>(bytes);
}

void purge_records(int read_end, int write_end, std::size_t bytes, const std::function<bool(const void*)>& is_void) {
    if (is_empty(read_end)) return;
    const int reader = open_without_blocking(read_end);
    if (reader < 0) return;
    std::vector<Record> kept;
    for (Record record; read_record(reader, record.data(), bytes);)
        if (!is_void(record.data())) kept.push_back(record);
    for (const Record& record : kept)
        if (write(write_end, record.data(), bytes) < 0) break;
    close(reader);
}

}  // namespace coop::fabric
