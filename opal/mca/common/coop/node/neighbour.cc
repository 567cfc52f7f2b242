// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/neighbour.h"

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

namespace coop::node {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr char kName[] = "ompi-coop-board", kLink[] = "/memfd:ompi-coop-board (deleted)";
#ifndef MFD_NOEXEC_SEAL
constexpr unsigned MFD_NOEXEC_SEAL = 8;  // Linux 6.3
#endif

// A descriptor that is closed at the end of its scope.
class Descriptor {
public:
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int get() const noexcept { return fd_; }
    int release() noexcept { return std::exchange(fd_, -1); }

private:
    int fd_;
};

// With vm.memfd_noexec = 2 the kernel refuses memory that may be executable. Kernels before 6.3 do not know the
// flag.
int make_memfd() noexcept {
    constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const int fd = memfd_create(kName, kFlags | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create(kName, kFlags) : fd;
}

void* map(int fd, std::size_t bytes) noexcept {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return nullptr;
    return at;
}

// Whether `path`, a descriptor in /proc, is a link to a memfd with our name.
bool leads_to_our_name(const char* path) noexcept {
    char target[64];
    const ssize_t bytes = readlink(path, target, sizeof target);
    return bytes > 0 && std::string_view(target, static_cast<std::size_t>(bytes)) == kLink;
}

// Whether a file that was located but not opened can be one made by create(): a regular file of this user in
// tmpfs, with no link in any folder, named like our memfd, and of the expected size.
bool may_be_ours(const Descriptor& found, const char* path, std::size_t bytes) noexcept {
    struct stat status {};
    struct statfs system {};
    return fstat(found.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           status.st_nlink == 0 && status.st_size == static_cast<off_t>(bytes) && fstatfs(found.get(), &system) == 0 &&
           system.f_type == TMPFS_MAGIC && leads_to_our_name(path);
}

bool is_sealed(const Descriptor& opened) noexcept {
    const int seals = fcntl(opened.get(), F_GET_SEALS);  // -1: not a file that can be sealed
    return seals >= 0 && (seals & kSeals) == kSeals;
}

}  // namespace

// A file beyond the limit (ulimit -f) would end the process by a signal.
static bool is_too_long(std::size_t bytes) noexcept {
    rlimit limit{};
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes;
}

SharedMemory SharedMemory::create(std::size_t bytes) noexcept {
    if (is_too_long(bytes)) return SharedMemory(EFBIG);
    Descriptor fd(make_memfd());
    if (!fd || fchmod(fd.get(), 0600) != 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
        fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
        return SharedMemory(errno);
    void* at = map(fd.get(), bytes);
    return at ? SharedMemory(at, bytes, fd.release()) : SharedMemory(errno);
}

SharedMemory SharedMemory::attach(std::int32_t pid, std::int32_t fd, std::size_t bytes,
                                  bool keeps_descriptor) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(pid), static_cast<int>(fd));
    const Descriptor found(open(path, O_PATH | O_CLOEXEC));
    if (!found) return SharedMemory(errno);
    std::snprintf(path, sizeof path, "/proc/self/fd/%d",
                  found.get());  // still names the located file if the other path has changed
    if (!may_be_ours(found, path, bytes)) return SharedMemory(EBADF);
    Descriptor opened(open(path, O_RDWR | O_CLOEXEC));
    if (!opened) return SharedMemory(errno);
    if (!is_sealed(opened)) return SharedMemory(EBADF);
    void* at = map(opened.get(), bytes);
    // Otherwise the dump of each process would contain the memory of all its neighbours.
    if (at) madvise(at, bytes, MADV_DONTDUMP);
    return at ? SharedMemory(at, bytes, keeps_descriptor ? opened.release() : -1) : SharedMemory(errno);
}

SharedMemory::~SharedMemory() {
    if (address_) munmap(address_, bytes_);
    if (fd_ >= 0) close(fd_);
}

void SharedMemory::close_descriptor() noexcept {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
}

SharedMemory::SharedMemory(SharedMemory&& from) noexcept
    : address_(std::exchange(from.address_, nullptr)), bytes_(from.bytes_), fd_(std::exchange(from.fd_, -1)),
      error_(from.error_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& from) noexcept {
    std::swap(address_, from.address_);
    std::swap(bytes_, from.bytes_);
    std::swap(fd_, from.fd_);
    std::swap(error_, from.error_);
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
