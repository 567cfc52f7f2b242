// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of a module. Each calls the window, in a turn of the application (ompi/mca/shim/inside.h): not while
// the asynchronous handler runs. Only shared_query needs no turn.
#include <new>

#include "diagnose.h"
#include "module.h"
#include "quick.h"

namespace coop::osc {
namespace {

// The general way of a call. It gets copies, so that the quick ways keep the arguments in registers.
template <class F>
[[gnu::noinline]] int look_closer(F f) noexcept {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        // The call may have left something undone that this process or others would wait for.
        out_of_memory("a one-sided operation");
    }
}

// Runs f in a turn of the application.
template <class F>
int enter(F f) noexcept {
    const Inside inside;
    return look_closer(f);
}

Origin origin_of(const void* address, int count, ompi_datatype_t* type) noexcept {
    return {const_cast<void*>(address), count, type};
}
Target target_of(int rank, std::ptrdiff_t displacement, int count, ompi_datatype_t* type) noexcept {
    return {static_cast<std::uint32_t>(rank), displacement, count, type};
}

// The operation is complete.
int done(ompi_request_t** request) noexcept {
    if (request) *request = &ompi_request_empty;
    return OMPI_SUCCESS;
}

// Each with a request, or null.
[[gnu::always_inline]] inline int put_with(const Origin& origin, const Target& target, ompi_win_t* win,
                                           ompi_request_t** request) noexcept {
    const Inside inside;
    Window& window = window_of(win);
    if (window.put_quickly(origin, target)) return done(request);
    return look_closer([=, &window] { return window.put(origin, target, request); });
}
[[gnu::always_inline]] inline int get_with(const Origin& origin, const Target& target, ompi_win_t* win,
                                           ompi_request_t** request) noexcept {
    const Inside inside;
    Window& window = window_of(win);
    if (window.get_quickly(origin, target)) return done(request);
    return look_closer([=, &window] { return window.get(origin, target, request); });
}
[[gnu::always_inline]] inline int accumulate_with(const Origin& origin, const Target& target, ompi_op_t& op,
                                                  ompi_win_t* win, ompi_request_t** request) noexcept {
    const Inside inside;
    Window& window = window_of(win);
    if (window.accumulate_quickly(origin, nullptr, target, op)) return done(request);
    return look_closer([=, &window, &op] { return window.accumulate(origin, target, op, request); });
}
[[gnu::always_inline]] inline int get_accumulate_with(const Origin& origin, const Origin& result, const Target& target,
                                                      ompi_op_t& op, ompi_win_t* win,
                                                      ompi_request_t** request) noexcept {
    const Inside inside;
    Window& window = window_of(win);
    if (window.accumulate_quickly(origin, &result, target, op)) return done(request);
    return look_closer([=, &window, &op] { return window.get_accumulate(origin, result, target, op, request); });
}

int put(const void* address, int count, ompi_datatype_t* type, int rank, std::ptrdiff_t displacement, int target_count,
        ompi_datatype_t* target_type, ompi_win_t* win) {
    return put_with(origin_of(address, count, type), target_of(rank, displacement, target_count, target_type), win,
                    nullptr);
}
int rput(const void* address, int count, ompi_datatype_t* type, int rank, std::ptrdiff_t displacement, int target_count,
         ompi_datatype_t* target_type, ompi_win_t* win, ompi_request_t** request) {
    return put_with(origin_of(address, count, type), target_of(rank, displacement, target_count, target_type), win,
                    request);
}
int get(void* address, int count, ompi_datatype_t* type, int rank, std::ptrdiff_t displacement, int target_count,
        ompi_datatype_t* target_type, ompi_win_t* win) {
    return get_with(origin_of(address, count, type), target_of(rank, displacement, target_count, target_type), win,
                    nullptr);
}
int rget(void* address, int count, ompi_datatype_t* type, int rank, std::ptrdiff_t displacement, int target_count,
         ompi_datatype_t* target_type, ompi_win_t* win, ompi_request_t** request) {
    return get_with(origin_of(address, count, type), target_of(rank, displacement, target_count, target_type), win,
                    request);
}
int accumulate(const void* address, int count, ompi_datatype_t* type, int rank, std::ptrdiff_t displacement,
               int target_count, ompi_datatype_t* target_type, ompi_op_t* op, ompi_win_t* win) {
    return accumulate_with(origin_of(address, count, type), target_of(rank, displacement, target_count, target_type),
                           *op, win, nullptr);
}
int raccumulate(const void* address, int count, ompi_datatype_t* type, int rank, std::ptrdiff_t displacement,
                int target_count, ompi_datatype_t* target_type, ompi_op_t* op, ompi_win_t* win,
                ompi_request_t** request) {
    return accumulate_with(origin_of(address, count, type), target_of(rank, displacement, target_count, target_type),
                           *op, win, request);
}
int get_accumulate(const void* address, int count, ompi_datatype_t* type, void* result, int result_count,
                   ompi_datatype_t* result_type, int rank, std::ptrdiff_t displacement, int target_count,
                   ompi_datatype_t* target_type, ompi_op_t* op, ompi_win_t* win) {
    return get_accumulate_with(origin_of(address, count, type), origin_of(result, result_count, result_type),
                               target_of(rank, displacement, target_count, target_type), *op, win, nullptr);
}
int rget_accumulate(const void* address, int count, ompi_datatype_t* type, void* result, int result_count,
                    ompi_datatype_t* result_type, int rank, std::ptrdiff_t displacement, int target_count,
                    ompi_datatype_t* target_type, ompi_op_t* op, ompi_win_t* win, ompi_request_t** request) {
    return get_accumulate_with(origin_of(address, count, type), origin_of(result, result_count, result_type),
                               target_of(rank, displacement, target_count, target_type), *op, win, request);
}
int fetch_and_op(const void* address, void* result, ompi_datatype_t* type, int rank, std::ptrdiff_t displacement,
                 ompi_op_t* op, ompi_win_t* win) {
    return get_accumulate(address, 1, type, result, 1, type, rank, displacement, 1, type, op, win);
}
int compare_and_swap(const void* value, const void* comparand, void* result, ompi_datatype_t* type, int rank,
                     std::ptrdiff_t displacement, ompi_win_t* win) {
    return enter([&] {
        return window_of(win).compare_and_swap(value, comparand, result, *type, static_cast<std::uint32_t>(rank),
                                               displacement);
    });
}

int fence(int assertion, ompi_win_t* win) {
    return enter([&] { return window_of(win).fence(assertion); });
}
int start(ompi_group_t* group, int assertion, ompi_win_t* win) {
    return enter([&] { return window_of(win).start(*group, assertion); });
}
int complete(ompi_win_t* win) {
    return enter([&] { return window_of(win).complete(); });
}
int post(ompi_group_t* group, int assertion, ompi_win_t* win) {
    return enter([&] { return window_of(win).post(*group, assertion); });
}
int wait(ompi_win_t* win) {
    return enter([&] { return window_of(win).wait(); });
}
int test(ompi_win_t* win, int* flag) {
    return enter([&] { return window_of(win).test(flag); });
}

int lock(int type, int rank, int assertion, ompi_win_t* win) {
    return enter([&] { return window_of(win).lock(type, static_cast<std::uint32_t>(rank), assertion); });
}
int unlock(int rank, ompi_win_t* win) {
    return enter([&] { return window_of(win).unlock(static_cast<std::uint32_t>(rank)); });
}
int lock_all(int assertion, ompi_win_t* win) {
    return enter([&] { return window_of(win).lock_all(assertion); });
}
int unlock_all(ompi_win_t* win) {
    return enter([&] { return window_of(win).unlock_all(); });
}
// Open MPI does not check the rank of a flush.
int flush_of(int rank, ompi_win_t* win, bool local) {
    if (rank == MPI_PROC_NULL) return OMPI_SUCCESS;
    const Inside inside;
    Window& window = window_of(win);
    const auto target = static_cast<std::uint32_t>(rank);
    if (window.flush_quickly(target)) return OMPI_SUCCESS;
    return look_closer([=, &window] { return window.flush(target, local); });
}
int flush(int rank, ompi_win_t* win) { return flush_of(rank, win, false); }
int flush_local(int rank, ompi_win_t* win) { return flush_of(rank, win, true); }
int flush_all(ompi_win_t* win) {
    return enter([&] { return window_of(win).flush_all(false); });
}
int flush_local_all(ompi_win_t* win) {
    return enter([&] { return window_of(win).flush_all(true); });
}
int sync(ompi_win_t* win) {
    return enter([&] { return window_of(win).sync(); });
}

int attach(ompi_win_t* win, void* base, std::size_t bytes) {
    return enter([&] { return window_of(win).attach(base, bytes); });
}
int detach(ompi_win_t* win, const void* base) {
    return enter([&] { return window_of(win).detach(base); });
}
int shared_query(ompi_win_t* win, int rank, std::size_t* size, int* unit, void* base) {
    return window_of(win).shared_query(rank, size, unit, base);
}

int free_window(ompi_win_t* win) {
    const int rc = enter([&] { return window_of(win).free(); });
    if (rc != OMPI_SUCCESS) return rc;
    auto* const module = reinterpret_cast<mca_osc_multirail_module_t*>(win->w_osc_module);
    module->window->counts().end();
    delete module->window;
    delete module;
    return OMPI_SUCCESS;
}

}  // namespace

const ompi_osc_base_module_t kFunctions = {
    .osc_win_shared_query = shared_query,
    .osc_win_attach = attach,
    .osc_win_detach = detach,
    .osc_free = free_window,
    .osc_put = put,
    .osc_get = get,
    .osc_accumulate = accumulate,
    .osc_compare_and_swap = compare_and_swap,
    .osc_fetch_and_op = fetch_and_op,
    .osc_get_accumulate = get_accumulate,
    .osc_rput = rput,
    .osc_rget = rget,
    .osc_raccumulate = raccumulate,
    .osc_rget_accumulate = rget_accumulate,
    .osc_fence = fence,
    .osc_start = start,
    .osc_complete = complete,
    .osc_post = post,
    .osc_wait = wait,
    .osc_test = test,
    .osc_lock = lock,
    .osc_unlock = unlock,
    .osc_lock_all = lock_all,
    .osc_unlock_all = unlock_all,
    .osc_sync = sync,
    .osc_flush = flush,
    .osc_flush_all = flush_all,
    .osc_flush_local = flush_local,
    .osc_flush_local_all = flush_local_all,
};

}  // namespace coop::osc
