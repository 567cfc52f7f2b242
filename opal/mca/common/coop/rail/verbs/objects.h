// SPDX-License-Identifier: BSD-3-Clause
//
// RAII owners of libibverbs objects, and the error type of rail/verbs: an error message and the errno of the
// verb.
//
// An owner converts to the plain pointer that verbs take. It does not know its dependencies: declare a
// protection domain before its queue pairs, and a completion queue before the queue pairs that complete to it.
//
// Threading: as the verbs. Errors: no exception leaves this layer; if an object cannot be created, the result
// is a Trouble.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace coop::rail {

struct Trouble {
    int number = 0;        // errno of a verb, or one that describes another error (no HCA, no path, no buffer)
    std::string sentence;  // "coop0: cannot create a completion queue of 64 entries: Cannot allocate memory"
};

// A T, or the reason why there is none.
template <class T>
class [[nodiscard]] Wanted {
public:
    Wanted(T value) : content_(std::in_place_index<0>, std::move(value)) {}
    Wanted(Trouble trouble) : content_(std::in_place_index<1>, std::move(trouble)) {}

    explicit operator bool() const noexcept { return content_.index() == 0; }
    T& operator*() noexcept { return *std::get_if<0>(&content_); }  // only if it holds a value
    const T& operator*() const noexcept { return *std::get_if<0>(&content_); }
    T* operator->() noexcept { return std::get_if<0>(&content_); }
    const Trouble& trouble() const noexcept { return *std::get_if<1>(&content_); }  // only if it holds no value

private:
    std::variant<T, Trouble> content_;
};

// Success, or the reason for a failure.
struct Done {};
using Status = Wanted<Done>;

// Owns an object that a verb created; `destroy` is the verb that destroys it.
template <class T, int (*destroy)(T*)>
class Owned {
public:
    Owned() = default;
    explicit Owned(T* object) noexcept : object_(object) {}
    T* get() const noexcept { return object_.get(); }
    operator T*() const noexcept { return object_.get(); }
    T* operator->() const noexcept { return object_.get(); }
    void reset() noexcept { object_.reset(); }

private:
    struct Destroy {
        void operator()(T* object) const noexcept { (void)destroy(object); }
    };
    std::unique_ptr<T, Destroy> object_;
};

using Context = Owned<ibv_context, ibv_close_device>;
using Pd = Owned<ibv_pd, ibv_dealloc_pd>;
using CompChannel = Owned<ibv_comp_channel, ibv_destroy_comp_channel>;
using Cq = Owned<ibv_cq, ibv_destroy_cq>;
using Srq = Owned<ibv_srq, ibv_destroy_srq>;
using Qp = Owned<ibv_qp, ibv_destroy_qp>;
using Mr = Owned<ibv_mr, ibv_dereg_mr>;
using Ah = Owned<ibv_ah, ibv_destroy_ah>;

// The message is "DEVICE: WHAT: strerror".
Trouble trouble(ibv_context* device, int number, const std::string& what);

Wanted<CompChannel> make_comp_channel(ibv_context* device);
// `channel` may be null: then there are no events.
Wanted<Cq> make_cq(ibv_context* device, int entries, ibv_comp_channel* channel = nullptr, void* user = nullptr);
Wanted<Srq> make_srq(ibv_pd* pd, std::uint32_t receives, std::uint32_t sge, void* user = nullptr);
// If the memlock limit may be the reason for a failure, the message names it.
Wanted<Mr> register_memory(ibv_pd* pd, void* address, std::size_t bytes, int access);

}  // namespace coop::rail
