// SPDX-License-Identifier: BSD-3-Clause
#include "async.h"

#include <cstring>

#include "diagnose.h"

namespace coop::pml {
namespace {

ompi_request_fns_t stock;

// call() holds an Inside while it calls the function of Open MPI.
template <auto Member, class Function>
struct FromInside;
template <auto Member, class... Arguments>
struct FromInside<Member, int (*)(Arguments...)> {
    static int call(Arguments... arguments) {
        const Inside inside;
        return (stock.*Member)(arguments...);
    }
};
template <auto Member>
void interpose() noexcept {
    using Function = std::remove_reference_t<decltype(stock.*Member)>;
    ompi_request_functions.*Member = FromInside<Member, Function>::call;
}

void interpose_all() noexcept {
    stock = ompi_request_functions;
    interpose<&ompi_request_fns_t::req_test>();
    interpose<&ompi_request_fns_t::req_test_any>();
    interpose<&ompi_request_fns_t::req_test_all>();
    interpose<&ompi_request_fns_t::req_test_some>();
    interpose<&ompi_request_fns_t::req_wait>();
    interpose<&ompi_request_fns_t::req_wait_any>();
    interpose<&ompi_request_fns_t::req_wait_all>();
    interpose<&ompi_request_fns_t::req_wait_some>();
}

// On a crowded node an interrupt takes time from another process that may be computing.
bool is_worth_it() noexcept {
    return module.config.async == static_cast<std::int64_t>(Async::kInterrupt) || !module.crowded;
}

// Attaches the handler to all transports and to collective components; null detaches it. Returns true if at least one
// transport can interrupt.
bool attach_everywhere(async::Handler* handler) noexcept {
    async::process_handler().attach(handler);
    bool any = false;
    for (const Extended& each : module.extensions.all())
        if (each.extension->serve && each.extension->serve(each.btl, handler)) any = true;
    return any;
}

}  // namespace

void start_async() noexcept {
    if (module.config.async == static_cast<std::int64_t>(Async::kOff) || !is_worth_it()) return;
    if (!attach_everywhere(&module.handler)) {
        stop_async();
        if (module.config.async == static_cast<std::int64_t>(Async::kInterrupt))
            no_interrupts("no transport of this job supports interrupts; btl/coopib does");
        return;
    }
    opal_progress_register(mca_pml_coop_progress);  // here, because the handler must not do so later
    if (const int error = module.handler.start(!module.threads); error != 0) {
        stop_async();
        return no_interrupts(std::strerror(error));
    }
    interpose_all();
}

void stop_async() noexcept {
    if (module.handler.active()) ompi_request_functions = stock;
    module.handler.stop();
    attach_everywhere(nullptr);
}

}  // namespace coop::pml
