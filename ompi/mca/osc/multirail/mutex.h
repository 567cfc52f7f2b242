// SPDX-License-Identifier: BSD-3-Clause
//
// The mutex of a window. It does nothing if no threads meet in MPI (ompi/mca/shim/threads.h), which saves time: the program and
// the asynchronous handler take turns then (ompi/mca/shim/inside.h).
#pragma once

#include <mutex>

#include "process.h"

namespace coop::osc {

class Mutex {
public:
    void lock() {
        if (process.threads) mutex_.lock();
    }
    void unlock() {
        if (process.threads) mutex_.unlock();
    }

private:
    std::mutex mutex_;
};

}  // namespace coop::osc
