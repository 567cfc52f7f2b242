// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/neighbour.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace coop::node {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

void* map(int fd, std::size_t bytes) noexcept {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? nullptr : at;
}

// What create() made, and nobody else.
bool is_ours(int fd, std::size_t bytes) noexcept {
    struct stat status{};
    const int seals = fcntl(fd, F_GET_SEALS);  // -1: nothing that can be sealed
    return seals >= 0 && (seals & kSeals) == kSeals && fstat(fd, &status) == 0 && status.st_uid == geteuid() && S_ISREG(status.st_mode) &&
           status.st_size == static_cast<off_t>(bytes);
}

}  // namespace

SharedMemory SharedMemory::create(std::size_t bytes) noexcept {
    const int fd = memfd_create("ompi-coop-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return {};
    if (fchmod(fd, 0600) == 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 && fcntl(fd, F_ADD_SEALS, kSeals) == 0)
        if (void* at = map(fd, bytes)) return {at, bytes, fd};
    close(fd);
    return {};
}

SharedMemory SharedMemory::attach(std::int32_t pid, std::int32_t fd, std::size_t bytes) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(pid), static_cast<int>(fd));
    // O_NONBLOCK: what lies there may be anything, a pipe for instance.
    const int mine = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (mine < 0) return {};
    void* at = is_ours(mine, bytes) ? map(mine, bytes) : nullptr;
    close(mine);
    return at ? SharedMemory(at, bytes, -1) : SharedMemory();
}

SharedMemory::~SharedMemory() {
    if (address_) munmap(address_, bytes_);
    if (fd_ >= 0) close(fd_);
}

SharedMemory::SharedMemory(SharedMemory&& from) noexcept
    : address_(std::exchange(from.address_, nullptr)), bytes_(from.bytes_), fd_(std::exchange(from.fd_, -1)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& from) noexcept {
    std::swap(address_, from.address_);
    std::swap(bytes_, from.bytes_);
    std::swap(fd_, from.fd_);
    return *this;
}

int try_copy(std::int32_t pid, std::uint64_t address, std::uint64_t expected) noexcept {
    std::uint64_t word = 0;
    const iovec here{&word, sizeof word};
    const iovec there{reinterpret_cast<void*>(address), sizeof word};
    const ssize_t copied = process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (copied < 0) return errno;
    return copied == sizeof word && word == expected ? 0 : ESRCH;
}

bool is_alive(std::int32_t pid) noexcept { return kill(pid, 0) == 0 || errno != ESRCH; }

std::uint64_t random_word() noexcept {
    std::uint64_t word = 0;
    while (word == 0 && getrandom(&word, sizeof word, 0) == sizeof word) {
    }
    return word ? word : static_cast<std::uint64_t>(getpid()) << 32 | 1;
}

}  // namespace coop::node
