// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/balance.h"

#include <algorithm>
#include <span>

namespace coop::path {
namespace {

// A stretch may be wrong by this part of its length.
constexpr std::uint64_t kPrecision = 8;
// A stretch at whose end requests are under way has completed so many times their bytes: an HCA may execute them at the same
// time, and how far they are does not show.
constexpr std::uint64_t kTimesUnderWay = 4;
// A window so many times as long as it has to be counts for two.
constexpr std::uint64_t kTimesForOne = 4;

}  // namespace

void Balance::on_posted(std::uint32_t bytes, std::uint64_t now) noexcept {
    if (under_way_ == 0) {
        begin_ = now;
        begin_doubt_ = stretch_bytes_ = requests_ = 0;
    }
    under_way_ += bytes;
}

// While requests are under way, the queue pair is busy. So only the ends of a stretch must be known.
bool Balance::on_completed(std::uint32_t bytes, std::uint64_t now, std::uint64_t seen_before) noexcept {
    under_way_ -= bytes;
    stretch_bytes_ += bytes;
    ++requests_;
    const std::uint64_t length = begin_ ? now - *begin_ : 0;
    const std::uint64_t doubt = seen_before < now ? now - seen_before : now;
    const bool precise = (begin_doubt_ + doubt) * kPrecision <= length;
    const bool is_long = length >= kWindowNs && stretch_bytes_ >= kTimesUnderWay * under_way_;
    if (begin_ && under_way_ != 0 && !(is_long && precise)) return false;
    if (precise && stretch_bytes_ >= std::max(kLeastBytes, kLeastMean * requests_)) {
        bytes_ += stretch_bytes_;
        busy_ns_ += length;
    }
    begin_ = under_way_ == 0 ? std::nullopt : std::optional(now);
    begin_doubt_ = doubt;
    stretch_bytes_ = requests_ = 0;
    return busy_ns_ >= kWindowNs && close_window(now);
}

void Balance::on_moved(std::size_t path, std::uint64_t now) noexcept {
    current_ = path;
    begin_.reset();
    bytes_ = busy_ns_ = 0;
    congested_ = 0;
    asked_at_ = 0;
    if (target_ == path) end_search(now);
}

bool Balance::close_window(std::uint64_t now) noexcept {
    const double rate = static_cast<double>(bytes_) / static_cast<double>(busy_ns_);
    const bool long_window = busy_ns_ >= kTimesForOne * kWindowNs;
    bytes_ = busy_ns_ = 0;
    last_rate_[current_] = rate;
    best_rate_ = std::max(best_rate_, rate);
    if (rate < kFree * (link_rate_ != 0 ? link_rate_ : best_rate_)) {
        congested_ += long_window ? 2 : 1;
        return congested_ >= 2 && on_congested(rate, now);
    }
    congested_ = 0;
    if (target_ || search_[best()] != 0) end_search(now);
    else if (now >= hold_until_ + patience_.calm) hold_ = patience_.hold;
    return false;
}

bool Balance::on_congested(double rate, std::uint64_t now) noexcept {
    if (now < hold_until_) return false;
    if (target_) return ask(now);
    search_[current_] = rate;
    const std::span paths(search_.data(), paths_);
    if (std::ranges::find(paths, 0.0) != paths.end()) return ask(now);
    if (const std::size_t path = best(); search_[path] > kBetter * rate) {
        target_ = path;
        return ask(now);
    }
    end_search(now);
    return false;
}

std::size_t Balance::best() const noexcept {
    return static_cast<std::size_t>(std::max_element(search_.begin(), search_.end()) - search_.begin());
}

void Balance::end_search(std::uint64_t now) noexcept {
    target_.reset();
    search_ = {};
    congested_ = 0;
    hold_until_ = now + hold_;
    hold_ = std::min(2 * hold_, patience_.longest_hold);
}

// The queue pair may not be able to move now. So the question is repeated, but not in each window.
bool Balance::ask(std::uint64_t now) noexcept {
    if (asked_at_ != 0 && now < asked_at_ + kAskAgainNs) return false;
    asked_at_ = now;
    return true;
}

}  // namespace coop::path
