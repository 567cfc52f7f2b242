// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/byte_lock.h"

#include <fcntl.h>

namespace coop::node {
namespace {

struct flock whole_byte(std::uint32_t at) noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(at);
    lock.l_len = 1;
    return lock;
}

}  // namespace

bool lock_byte(std::int32_t fd, std::uint32_t at) noexcept {
    struct flock lock = whole_byte(at);
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

void unlock_byte(std::int32_t fd, std::uint32_t at) noexcept {
    struct flock lock = whole_byte(at);
    lock.l_type = F_UNLCK;
    fcntl(fd, F_OFD_SETLK, &lock);
}

bool is_locked_elsewhere(std::int32_t fd, std::uint32_t at) noexcept {
    struct flock lock = whole_byte(at);
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace coop::node
