// SPDX-License-Identifier: BSD-3-Clause
//
// Whether short messages for which nobody waits should go to a peer on another node by RDMA or in fragments. A fragment is
// copied into a buffer and out of another one, but the first one comes with the RTS, so the link is busy while the
// handshake goes on. On a link that is slower than these copies, fragments cost nothing; on a faster one, they hold up
// the messages.
//
// What the ports say of their speed decides at first: the link may be slower (traffic of others, limits elsewhere) or the
// processes may be. So the pace of messages is measured while some are under way, in blocks. If it contradicts the way in
// use, the other way is tried for a block, and kept if it is faster by an eighth:
//
//     kRdma ──four blocks below slow_pace()─────► try fragments ──faster by 1/8──► kFragments
//     kFragments ──four blocks not below it───► try RDMA ───────faster by 1/8──► kRdma
//     If it is not faster by an eighth, the way stays, and twice as many blocks must pass before the next trial.
//
// An application that waits for other things than the link is slow both ways, and nothing changes.
//
// Not from the papers. Units: bytes, nanoseconds of any monotonic clock, bytes per second. Threading: any thread may ask
// for way() and is_started(); the rest takes the caller's lock. Errors: none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace coop::rndv {

class Pace {
public:
    enum class Way : std::uint8_t { kRdma, kFragments };

    // From this length on, RDMA serves any link.
    static constexpr std::uint64_t kMostBytes = 64 * 1024;
    static constexpr std::uint32_t kInBlock = 64;                        // messages
    static constexpr std::uint32_t kFirstWait = 4, kLongestWait = 1024;  // blocks before the next trial

    // `link`: the sum of what the ports say, 0: unknown. `copies`: how fast this process copies in memory, 0: unknown.
    void start(std::uint64_t link_bytes_per_s, std::uint64_t copy_bytes_per_s) noexcept {
        copy_ = copy_bytes_per_s;
        way_ = link_bytes_per_s != 0 && link_bytes_per_s >= fast_link() ? Way::kRdma : Way::kFragments;
        choose();
        started_.store(true, std::memory_order_relaxed);
    }
    bool is_started() const noexcept { return started_.load(std::memory_order_relaxed); }

    // A fragment is copied twice, posted, completed and received: fragments reach between a thirty-second and a sixteenth
    // of the speed of a copy. A link of that speed is fast; a pace that is no more than that may be due to a slow one.
    std::uint64_t fast_link() const noexcept { return copy_ / 16; }
    std::uint64_t slow_pace() const noexcept { return copy_ / 32; }

    // The way of the next message.
    Way way() const noexcept { return next_.load(std::memory_order_relaxed); }
    bool is_trying() const noexcept { return trial_; }

    // A message below kMostBytes for which nobody waits begins.
    void on_begun(std::uint64_t now_ns) noexcept {
        if (under_way_++ == 0) since_ns_ = now_ns;
    }
    // It has ended, having gone the way that way() returned when it began.
    void on_ended(Way way, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
        --under_way_;
        // Those of the time before the last change would spoil the comparison.
        if (way == this->way()) {
            bytes_ += bytes;
            ++messages_;
        } else {
            close_block();
        }
        busy_ns_ += now_ns > since_ns_ ? now_ns - since_ns_ : 0;
        since_ns_ = std::max(since_ns_, now_ns);
        if (messages_ < kInBlock || busy_ns_ == 0) return;
        const double pace = static_cast<double>(bytes_) * 1e9 / static_cast<double>(busy_ns_);
        close_block();
        judge(pace);
    }

private:
    static constexpr Way other(Way way) noexcept { return way == Way::kRdma ? Way::kFragments : Way::kRdma; }

    void close_block() noexcept { bytes_ = busy_ns_ = messages_ = 0; }
    void choose() noexcept { next_.store(trial_ ? other(way_) : way_, std::memory_order_relaxed); }

    bool is_doubtful(double pace) const noexcept {
        return (pace < static_cast<double>(slow_pace())) == (way_ == Way::kRdma);
    }

    void judge(double pace) noexcept {
        if (trial_) return end_trial(pace);
        if (!is_doubtful(pace)) {
            waited_ = 0;
            return;
        }
        if (++waited_ < wait_) return;
        before_ = pace;
        trial_ = true;
        choose();
    }

    void end_trial(double pace) noexcept {
        const bool better = pace > before_ * 9 / 8;
        if (better) way_ = other(way_);
        wait_ = better ? kFirstWait : std::min(2 * wait_, kLongestWait);
        trial_ = false;
        waited_ = 0;
        choose();
    }

    std::atomic<Way> next_{Way::kFragments};
    std::atomic<bool> started_{false};
    Way way_ = Way::kFragments;  // the better one, as far as is known
    bool trial_ = false;         // the other one is being tried
    std::uint32_t under_way_ = 0;
    std::uint32_t wait_ = kFirstWait, waited_ = 0;  // blocks
    std::uint64_t copy_ = 0;
    std::uint64_t since_ns_ = 0;  // valid while some are under way: until then busy_ns_ counts
    // Of the block: messages that have gone the way in use, and the time in which some were under way.
    std::uint64_t bytes_ = 0, busy_ns_ = 0, messages_ = 0;
    double before_ = 0;  // the pace before the trial, bytes per second; valid during one
};

}  // namespace coop::rndv
