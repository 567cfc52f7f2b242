// SPDX-License-Identifier: BSD-3-Clause
//
// Interposes the calls of the C library with which programs look for InfiniBand
// devices in /sys and /dev: UCX uses stat and access on /dev/infiniband/uverbs0 and
// opens the types of GIDs, Open MPI uses stat on /sys/class/infiniband. Paths that
// are not in the tree of sysfs.h are passed on to the C library.
//
// Errors: those of the interposed call.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <string>

#include "fabric/verbs/exports.h"
#include "fabric/verbs/sysfs.h"

namespace coop::fabric {
namespace {

template <class Function>
Function* next(Function*, const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// An existing path of the same kind, for calls that only ask about a path.
const char* stand_in(PathKind kind) {
    switch (kind) {
    case PathKind::folder: return "/";
    case PathKind::file: return "/proc/self/comm";
    case PathKind::device: return "/dev/null";
    case PathKind::none: break;
    }
    return nullptr;
}

const char* replace(const char* path) {
    if (!may_be_faked(path)) return path;
    std::string text;
    const char* other = stand_in(find_faked(path, text));
    return other != nullptr ? other : path;
}

// Returns a descriptor from which `text` can be read.
int open_text(const std::string& text, int flags) {
    const int fd = memfd_create("coop-fabric", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
    if (fd < 0) return -1;
    if (write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    errno = EIO;
    return -1;
}

template <class Open>
int open_faked(Open* real, const char* path, int flags, mode_t mode) {
    if (!may_be_faked(path)) return real(path, flags, mode);
    std::string text;
    const PathKind kind = find_faked(path, text);
    if (kind == PathKind::file) return open_text(text, flags);
    return real(kind == PathKind::device ? stand_in(kind) : path, flags, mode);
}

mode_t read_mode(int flags, va_list arguments) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB int stat(const char* path, struct stat* info) noexcept {
    static const auto real = next(&stat, "stat");
    return real(replace(path), info);
}

COOP_VERB int stat64(const char* path, struct stat64* info) noexcept {
    static const auto real = next(&stat64, "stat64");
    return real(replace(path), info);
}

COOP_VERB int access(const char* path, int mode) noexcept {
    static const auto real = next(&access, "access");
    return real(replace(path), mode);
}

COOP_VERB int open(const char* path, int flags, ...) {
    static const auto real = next(&open, "open");
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = read_mode(flags, arguments);
    va_end(arguments);
    return open_faked(real, path, flags, mode);
}

COOP_VERB int open64(const char* path, int flags, ...) {
    static const auto real = next(&open64, "open64");
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = read_mode(flags, arguments);
    va_end(arguments);
    return open_faked(real, path, flags, mode);
}

extern "C" const char* ibv_get_sysfs_path();
COOP_VERB const char* ibv_get_sysfs_path() { return "/sys"; }

extern "C" int ibv_read_sysfs_file(const char* folder, const char* name, char* buffer, std::size_t bytes);
COOP_VERB int ibv_read_sysfs_file(const char* folder, const char* name, char* buffer, std::size_t bytes) {
    const int fd = open((std::string(folder) + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    const ssize_t n = read(fd, buffer, bytes);
    close(fd);
    if (n <= 0) return static_cast<int>(n);
    const std::size_t end = buffer[n - 1] == '\n' ? static_cast<std::size_t>(n) - 1 : static_cast<std::size_t>(n);
    if (end == bytes) return -1;  // no room for the terminating null
    buffer[end] = '\0';
    return static_cast<int>(end);
}
