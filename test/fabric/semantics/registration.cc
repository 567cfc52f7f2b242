// SPDX-License-Identifier: BSD-3-Clause
// The configured cost of registering memory (--register-cost): processor time of the calling thread, a constant and a part
// per page. The ground 'register_cost' sets 20us,10us.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>

#include "end.h"

using namespace verbstest;

namespace {

constexpr std::size_t kPage = 4096;
constexpr double kBaseUs = 20, kPageUs = 10;
constexpr int kRounds = 5;

double thread_cpu_us() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

double cpu_us_of(const std::function<void()>& work) {
    const double start_us = thread_cpu_us();
    work();
    return thread_cpu_us() - start_us;
}

struct Registrations {
    const Context context;
    const Pd pd{context};
    const std::size_t bytes = 256 * kPage;
    unsigned char* at = static_cast<unsigned char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));

    Registrations() { CHECK(at != MAP_FAILED); }
    Registrations(const Registrations&) = delete;
    Registrations& operator=(const Registrations&) = delete;
    ~Registrations() { munmap(at, bytes); }

    // The least processor time of a few registrations of this range.
    double cpu_us(std::size_t offset, std::size_t length) const {
        double least_us = 1e9;
        for (int round = 0; round < kRounds; ++round) {
            ibv_mr* mr = nullptr;
            least_us = std::min(least_us, cpu_us_of([&] { mr = ibv_reg_mr(pd, at + offset, length, kAllAccess); }));
            CHECK(mr != nullptr);
            CHECK_OK(ibv_dereg_mr(mr));
        }
        return least_us;
    }
};

}  // namespace

CASE(registration_takes_at_least_the_time_of_its_pages) {
    const Registrations on;
    CHECK(on.cpu_us(0, kPage) >= kBaseUs + kPageUs);
    CHECK(on.cpu_us(0, 100 * kPage) >= kBaseUs + 100 * kPageUs);
}

// 2020 us for 200 pages, 30 us for one.
CASE(registration_of_many_pages_takes_several_times_as_long) {
    const Registrations on;
    CHECK(on.cpu_us(0, 200 * kPage) >= 10 * on.cpu_us(0, kPage));
}

CASE(every_page_that_the_range_touches_counts) {
    const Registrations on;
    CHECK(on.cpu_us(kPage - 1, 2) >= kBaseUs + 2 * kPageUs);
    CHECK(on.cpu_us(100, 50 * kPage) >= kBaseUs + 51 * kPageUs);
}

CASE(reregistration_takes_the_time_of_the_new_range) {
    const Registrations on;
    ibv_mr* mr = ibv_reg_mr(on.pd, on.at, kPage, kAllAccess);
    CHECK(mr != nullptr);
    const double us = cpu_us_of(
        [&] { CHECK_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, on.at, 100 * kPage, kAllAccess)); });
    CHECK(us >= kBaseUs + 100 * kPageUs);
    CHECK_OK(ibv_dereg_mr(mr));
}

CASE(deregistration_and_refused_registration_are_free) {
    const Registrations on;
    const double registration_us = on.cpu_us(0, 200 * kPage);
    double deregistration_us = 1e9, refusal_us = 1e9;
    for (int round = 0; round < kRounds; ++round) {
        ibv_mr* mr = ibv_reg_mr(on.pd, on.at, 200 * kPage, kAllAccess);
        CHECK(mr != nullptr);
        deregistration_us = std::min(deregistration_us, cpu_us_of([&] { CHECK_OK(ibv_dereg_mr(mr)); }));
        refusal_us = std::min(refusal_us, cpu_us_of([&] {
                                  CHECK_NULL(ibv_reg_mr(on.pd, on.at, 200 * kPage, unsigned{IBV_ACCESS_REMOTE_WRITE}),
                                             EINVAL);
                              }));
    }
    CHECK(10 * deregistration_us < registration_us);
    CHECK(10 * refusal_us < registration_us);
}
