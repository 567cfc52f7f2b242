// SPDX-License-Identifier: BSD-3-Clause
//
// What libibverbs makes, with an owner that destroys it; and how a function of
// rail/verbs fails: with a sentence, and the error number of the verb.
//
// An owner converts to the plain pointer that verbs take. It knows nothing of
// what it depends on: declare a protection domain before its queue pairs, a
// completion queue before those that complete to it.
//
// Threading: as the verbs. Errors: no exception leaves this layer; an object that
// cannot be made is a Trouble.
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
    int number = 0;        // errno; 0: not a verb's
    std::string sentence;  // "coop0: cannot create a completion queue of 64 entries: Cannot allocate memory"
};

// A T, or why there is none.
template <class T>
class [[nodiscard]] Wanted {
public:
    Wanted(T value) : content_(std::in_place_index<0>, std::move(value)) {}
    Wanted(Trouble trouble) : content_(std::in_place_index<1>, std::move(trouble)) {}

    explicit operator bool() const noexcept { return content_.index() == 0; }
    T& operator*() noexcept { return *std::get_if<0>(&content_); }  // only if there is one
    const T& operator*() const noexcept { return *std::get_if<0>(&content_); }
    T* operator->() noexcept { return std::get_if<0>(&content_); }
    const Trouble& trouble() const noexcept { return *std::get_if<1>(&content_); }  // only if there is none

private:
    std::variant<T, Trouble> content_;
};

// Done, or why not.
struct Done {};
using Status = Wanted<Done>;

// Owns what a verb made; `destroy` is the verb that undoes it.
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

// "WHAT on DEVICE: strerror".
Trouble trouble(ibv_context* device, int number, const std::string& what);

Wanted<CompChannel> make_comp_channel(ibv_context* device);
// `channel` may be null: no events.
Wanted<Cq> make_cq(ibv_context* device, int entries, ibv_comp_channel* channel = nullptr, void* user = nullptr);
Wanted<Srq> make_srq(ibv_pd* pd, std::uint32_t receives, std::uint32_t sge, void* user = nullptr);
// A memlock limit that is too small is said so, with the bytes that were asked for.
Wanted<Mr> register_memory(ibv_pd* pd, void* address, std::size_t bytes, int access);

}  // namespace coop::rail
