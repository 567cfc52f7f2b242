// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/balance.h"

#include <algorithm>

namespace coop::path {
namespace {

// A stretch may be wrong by this part of its length.
constexpr std::uint64_t kPrecision = 8;
// A stretch at whose end requests are under way has completed so many times their bytes: an HCA may execute them at the same
// time, and how far they are does not show.
constexpr std::uint64_t kTimesUnderWay = 4;
// A window so many times as long as it has to be counts for two.
constexpr std::uint64_t kTimesForOne = 4;

double rate_of(std::uint64_t bytes, std::uint64_t ns) noexcept {
    return static_cast<double>(bytes) / static_cast<double>(ns);
}

}  // namespace

Balance::Balance(const std::vector<double>& links, const BalancePatience& patience)
    : patience_(patience), known_(links.size()), hold_(patience.hold) {
    for (std::size_t i = 0; i < links.size(); ++i) known_[i].link = links[i];
}

// --- measuring -------------------------------------------------------------------------------------------------------

void Balance::begin(std::uint64_t now, std::uint64_t doubt, Carried port) noexcept {
    begin_ = now;
    begin_doubt_ = doubt;
    begin_port_ = port;
    stretch_bytes_ = requests_ = 0;
}

void Balance::on_posted(std::uint32_t bytes, std::uint64_t now, Carried port) noexcept {
    if (under_way_ == 0) begin(now, 0, port);
    under_way_ += bytes;
}

// While requests are under way, the queue pair is busy. So only the ends of a stretch must be known. A sweep inside of
// another one may have closed it at a later time.
bool Balance::on_completed(std::uint32_t bytes, std::uint64_t now, std::uint64_t seen_before, Carried port) noexcept {
    under_way_ -= bytes;
    stretch_bytes_ += bytes;
    ++requests_;
    const std::uint64_t length = begin_ && now > *begin_ ? now - *begin_ : 0;
    const bool known = seen_before < now;
    const std::uint64_t doubt = known ? now - seen_before : 0;
    const bool precise = known && (begin_doubt_ + doubt) * kPrecision <= length;
    const bool is_long = length >= kWindowNs && stretch_bytes_ >= kTimesUnderWay * under_way_;
    if (begin_ && under_way_ != 0 && !(is_long && precise)) return false;
    if (precise && stretch_bytes_ >= std::max(kLeastBytes, kLeastMean * requests_)) {
        bytes_ += stretch_bytes_;
        port_bytes_ += port - begin_port_;
        busy_ns_ += length;
    }
    begin(now, doubt, port);
    if (under_way_ == 0 || !known) begin_.reset();
    return busy_ns_ >= kWindowNs && close_window(now);
}

void Balance::forget_measurements() noexcept {
    begin_.reset();
    bytes_ = port_bytes_ = busy_ns_ = 0;
    congested_ = 0;
    asks_ = 0;
}

bool Balance::close_window(std::uint64_t now) noexcept {
    Path& path = known_[current_];
    path.rate = rate_of(bytes_, busy_ns_);
    const double port_rate = rate_of(port_bytes_, busy_ns_);
    const bool is_long = busy_ns_ >= kTimesForOne * kWindowNs;
    bytes_ = port_bytes_ = busy_ns_ = 0;
    best_rate_ = std::max(best_rate_, port_rate);
    if (port_rate < kFree * (path.link != 0 ? path.link : best_rate_)) {
        congested_ += is_long ? 2 : 1;
        return congested_ >= 2 && on_congested(now);
    }
    congested_ = 0;
    if (is_searching()) end_search(now);
    else if (now >= hold_until_ + patience_.calm) hold_ = patience_.hold;
    return false;
}

// --- searching -------------------------------------------------------------------------------------------------------

bool Balance::on_congested(std::uint64_t now) noexcept {
    if (now < hold_until_) return false;
    if (!is_searching()) start_ = current_;
    known_[current_].search = known_[current_].rate;
    if (wanted() != current_ && now >= known_[next()].barred_until && asks_ < kMostAsks) return ask(now);
    end_search(now);
    return false;
}

// The path to which the search leads; nothing: to one that was not measured.
std::optional<std::size_t> Balance::wanted() const noexcept {
    const auto search = [](const Path& path) { return path.search; };
    if (std::ranges::find(known_, 0.0, search) != known_.end()) return std::nullopt;
    const auto best = std::ranges::max_element(known_, {}, search);
    return best->search > kBetter * known_[*start_].search ? static_cast<std::size_t>(best - known_.begin()) : *start_;
}

void Balance::end_search(std::uint64_t now) noexcept {
    start_.reset();
    for (Path& path : known_) path.search = 0;
    congested_ = asks_ = 0;
    hold_until_ = now + hold_;
    hold_ = std::min(2 * hold_, patience_.longest_hold);
}

// The queue pair may not be able to move now. So the question is repeated, but not in each window.
bool Balance::ask(std::uint64_t now) noexcept {
    if (asks_ != 0 && now < asked_at_ + kAskAgainNs) return false;
    ++asks_;
    asked_at_ = now;
    return true;
}

void Balance::on_moved(std::size_t path, std::uint64_t now, bool asked) noexcept {
    if (!asked && path != current_) known_[current_].barred_until = now + patience_.bar;
    current_ = path;
    forget_measurements();
    if (is_searching() && wanted() == path) end_search(now);
}

void Balance::on_replaced(std::size_t path, std::uint64_t now) noexcept {
    if (current_ != 0) known_[current_].barred_until = now + patience_.bar;
    current_ = path;
    under_way_ = 0;
    forget_measurements();
    if (is_searching()) end_search(now);
}

}  // namespace coop::path
