// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/remote_copy.h"

#include <cerrno>
#include <span>

#include <sys/prctl.h>
#include <unistd.h>

#include "coop/node/neighbour.h"

namespace coop::node {
namespace {

// Takes the first `bytes` away from the blocks.
std::span<iovec> behind(std::span<iovec> blocks, std::size_t bytes) noexcept {
    while (!blocks.empty() && bytes >= blocks.front().iov_len) {
        bytes -= blocks.front().iov_len;
        blocks = blocks.subspan(1);
    }
    if (bytes > 0) {
        iovec& first = blocks.front();
        first.iov_base = static_cast<std::byte*>(first.iov_base) + bytes;
        first.iov_len -= bytes;
    }
    return blocks;
}

}  // namespace

// A call may copy less than all: the kernel stops behind nearly 2 GiB, and before memory that it cannot access.
bool RemoteCopy::flush() noexcept {
    std::span<iovec> here(here_.blocks.data(), here_.count), there(there_.blocks.data(), there_.count);
    here_.count = there_.count = 0;
    while (!there.empty()) {
        const ssize_t copied = to_ == To::kThere
                                   ? process_vm_writev(pid_, here.data(), here.size(), there.data(), there.size(), 0)
                                   : process_vm_readv(pid_, here.data(), here.size(), there.data(), there.size(), 0);
        if (copied <= 0) {
            error_ = copied < 0 ? errno : EFAULT;
            return false;
        }
        copied_ += static_cast<std::uint64_t>(copied);
        here = behind(here, static_cast<std::size_t>(copied));
        there = behind(there, static_cast<std::size_t>(copied));
    }
    return true;
}

int try_both(const CopyProbe& process) noexcept {
    if (const int error = try_copy(process.pid, process.address, process.number)) return error;
    std::uint64_t same = process.number;
    RemoteCopy copy(process.pid, RemoteCopy::To::kThere);
    return copy.add(&same, process.address, sizeof same) && copy.flush() ? 0 : copy.error();
}

CopyTrials::CopyTrials() noexcept : number_(random_word()) {}

CopyProbe CopyTrials::own() const noexcept {
    return {getpid(), prctl(PR_GET_DUMPABLE), reinterpret_cast<std::uintptr_t>(&number_), number_};
}

int CopyTrials::attempt(const CopyProbe& process) {
    const Pair pair{process.pid, process.number, process.dumpable, prctl(PR_GET_DUMPABLE)};
    const std::lock_guard lock(mutex_);
    if (passed_.contains(pair)) return 0;
    const int error = try_both(process);
    if (error == 0) passed_.insert(pair);
    return error;
}

int try_read(std::int32_t pid, std::uint64_t address) noexcept {
    std::byte byte{};
    RemoteCopy copy(pid, RemoteCopy::To::kHere);
    return copy.add(&byte, address, 1) && copy.flush() ? 0 : copy.error();
}

}  // namespace coop::node
