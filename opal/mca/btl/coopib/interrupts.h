// SPDX-License-Identifier: BSD-3-Clause
//
// The source of interrupts for the asynchronous handler: a completion channel on each
// HCA. ibv_req_notify_cq requests an event for the next solicited message or for the
// next completion of any kind.
//
// Threading: see async/handler.h. Errors: a channel that cannot be opened
// leaves its HCA without interrupts; one that fails later is reported once.
#pragma once

#include <vector>

#include "coop/async/handler.h"
#include "coop/rail/verbs/objects.h"

namespace coop::ib {

struct Module;

class Interrupts final : public async::Source {
public:
    explicit Interrupts(Module& m) : m_(m) {}

    // Opens a channel for the completion queue of the next HCA. Returns null if that fails.
    ibv_comp_channel* open_channel(ibv_context* device);

    std::span<const int> descriptors() const noexcept override { return descriptors_; }
    void request(async::Notice notice) noexcept override;
    bool acknowledge(int descriptor) noexcept override;
    void lost(int descriptor) noexcept override;
    int drain() noexcept override;

private:
    const rail::CompChannel* channel_of(int descriptor) const noexcept;

    Module& m_;
    std::vector<rail::CompChannel> channels_;
    std::vector<int> descriptors_;
};

}  // namespace coop::ib
