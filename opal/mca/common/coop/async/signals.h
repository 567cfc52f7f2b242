// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks all signals while we start a thread: a thread inherits the signal mask of its creator, and the
// application's signal handlers must not run on our threads.
//
// Threading: affects the calling thread. Errors: none.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace coop::async {

class SignalsBlocked {
public:
    SignalsBlocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace coop::async
