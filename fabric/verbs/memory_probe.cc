// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/memory_probe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <memory>

namespace coop::fabric {
namespace {

constexpr std::uint64_t kReadable = 1, kWritable = 2;

// The kernel's struct procmap_query, which older headers lack.
struct MappingQuery {
    std::uint64_t bytes, flags, address;
    std::uint64_t begin, end, mapping_flags, page_bytes, offset, inode;
    std::uint32_t device_major, device_minor, name_bytes, build_id_bytes;
    std::uint64_t name, build_id;
};
constexpr unsigned long kQueryMapping = _IOWR('f', 17, MappingQuery);

class Maps {
public:
    Maps() : fd_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
    ~Maps() {
        if (fd_ >= 0) close(fd_);
    }
    Maps(const Maps&) = delete;
    Maps& operator=(const Maps&) = delete;

    // Finds the mapping that contains `address`. Returns 0 or an errno: ENOENT if there is none, others if the kernel
    // cannot tell.
    int find(std::uint64_t address, MappingQuery& query) const {
        query = {};
        query.bytes = sizeof query;
        query.address = address;
        return ioctl(fd_, kQueryMapping, &query) == 0 ? 0 : errno;
    }

private:
    int fd_;
};

bool read_mapping(FILE* maps, std::uint64_t& begin, std::uint64_t& end, std::uint64_t& flags) {
    char line[512], access[8];
    if (std::fgets(line, sizeof line, maps) == nullptr) return false;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, access) != 3) return false;
    flags = (access[0] == 'r' ? kReadable : 0) | (access[1] == 'w' ? kWritable : 0);
    for (std::size_t n = 1; line[n - 1] != '\n' && n < sizeof line; ++n)  // skip the rest of a long line
        if (line[n] == '\0') {
            for (int c = std::fgetc(maps); c != '\n' && c != EOF; c = std::fgetc(maps)) {
            }
            break;
        }
    return true;
}

// Relies on the mappings being listed in address order.
bool is_listed(std::uint64_t at, std::uint64_t until, std::uint64_t needed) {
    const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
    if (maps == nullptr) return true;
    std::uint64_t begin = 0, end = 0, flags = 0;
    while (at < until && read_mapping(maps.get(), begin, end, flags)) {
        if (end <= at) continue;
        if (begin > at || (flags & needed) != needed) return false;
        at = end;
    }
    return at >= until;
}

}  // namespace

bool is_mapped(std::uint64_t address, std::uint64_t bytes, bool writable) {
    const std::uint64_t needed = writable ? kReadable | kWritable : kReadable;
    const std::uint64_t until = address + bytes;
    const Maps maps;
    MappingQuery query;
    while (address < until) {
        const int error = maps.find(address, query);
        if (error == ENOENT) return false;
        if (error != 0) return is_listed(address, until, needed);
        if ((query.mapping_flags & needed) != needed) return false;
        address = query.end;
    }
    return true;
}

}  // namespace coop::fabric
