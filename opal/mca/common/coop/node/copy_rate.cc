// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/copy_rate.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

namespace coop::node {
namespace {

// More than a core's own cache holds, as with the buffers of many messages. The data changes from round to round and is
// read afterwards, so that the compiler keeps the copies.
constexpr std::size_t kBytes = 2 * 1024 * 1024;
constexpr int kRounds = 4;  // the fastest one counts: in the others the process may have been interrupted

}  // namespace

std::uint64_t measure_copy_rate() noexcept {
    using Clock = std::chrono::steady_clock;
    const std::unique_ptr<unsigned char[]> from(new (std::nothrow) unsigned char[kBytes]);
    const std::unique_ptr<unsigned char[]> to(new (std::nothrow) unsigned char[kBytes]);
    if (!from || !to) return 0;
    std::memset(from.get(), 1, kBytes);
    std::memset(to.get(), 0, kBytes);
    auto best = Clock::duration::max();
    volatile unsigned char seen = 0;
    for (int round = 0; round < kRounds; ++round) {
        from[static_cast<std::size_t>(round)] = static_cast<unsigned char>(round);
        const auto start = Clock::now();
        std::memcpy(to.get(), from.get(), kBytes);
        seen = to[static_cast<std::size_t>(round)];
        best = std::min(best, Clock::now() - start);
    }
    static_cast<void>(seen);
    const double seconds = std::chrono::duration<double>(best).count();
    return seconds > 0 ? static_cast<std::uint64_t>(static_cast<double>(kBytes) / seconds) : 0;
}

}  // namespace coop::node
