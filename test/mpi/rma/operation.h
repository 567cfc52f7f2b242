// SPDX-License-Identifier: BSD-3-Clause
//
// One communication call of a window: what it sends, what it must return, and what it makes of the target's memory.
// Accumulates combine bytes by exclusive or, which needs no alignment and shows a second execution; the single-element
// calls work on some words at the beginning.
//
// Ownership: the buffers live in the Operation, which must stay in its place until the epoch ends.
#pragma once

#include <algorithm>

#include "window.h"

namespace {

enum class Call {
    kPut,
    kGet,
    kAccumulate,
    kGetAccumulate,
    kFetchAndOp,
    kCompareAndSwap,
    kRput,
    kRget,
    kRaccumulate,
    kRgetAccumulate
};
constexpr const char* kCallNames[] = {
    "put",  "get",  "accumulate",  "get_accumulate", "fetch_and_op", "compare_and_swap",
    "rput", "rget", "raccumulate", "rget_accumulate"};
constexpr int kCalls = 10, kCallsWithoutRequest = 6;

inline bool only_reads(Call call) { return call == Call::kGet || call == Call::kRget; }
inline bool returns_data(Call call) {
    return call != Call::kPut && call != Call::kAccumulate && call != Call::kRput && call != Call::kRaccumulate;
}

// Elements of the calls that work on one element: words, or bytes where there is no room for a word.
struct Elements {
    explicit Elements(std::size_t bytes) : size(bytes < 8 ? 1 : 8), number(std::min<std::size_t>(bytes / size, 8)) {}
    MPI_Datatype type() const { return size == 1 ? MPI_UINT8_T : MPI_UINT64_T; }
    std::size_t size, number;
};

class Operation {
public:
    Operation(Call call, std::uint64_t key, std::size_t bytes)
        : call_(call), bytes_(bytes), sent_(message(key, bytes)), result_(bytes, kGuard) {}

    // `contents` is what the target's memory holds at `byte` before the call; compare_and_swap needs it.
    void start(const Window& window, int target, std::size_t byte, const Bytes& contents) {
        const int n = as_int(bytes_);
        const MPI_Aint at = window.at(target, byte);
        const MPI_Datatype type = MPI_UINT8_T;
        const MPI_Win win = window.win;
        unsigned char *from = sent_.data(), *to = result_.data();
        switch (call_) {
        case Call::kPut: CHECK_MPI(MPI_Put(from, n, type, target, at, n, type, win)); break;
        case Call::kGet: CHECK_MPI(MPI_Get(to, n, type, target, at, n, type, win)); break;
        case Call::kAccumulate: CHECK_MPI(MPI_Accumulate(from, n, type, target, at, n, type, MPI_BXOR, win)); break;
        case Call::kGetAccumulate:
            CHECK_MPI(MPI_Get_accumulate(from, n, type, to, n, type, target, at, n, type, MPI_BXOR, win));
            break;
        case Call::kFetchAndOp:
        case Call::kCompareAndSwap: start_elements(window, target, byte, contents); break;
        case Call::kRput: CHECK_MPI(MPI_Rput(from, n, type, target, at, n, type, win, &request_)); break;
        case Call::kRget: CHECK_MPI(MPI_Rget(to, n, type, target, at, n, type, win, &request_)); break;
        case Call::kRaccumulate:
            CHECK_MPI(MPI_Raccumulate(from, n, type, target, at, n, type, MPI_BXOR, win, &request_));
            break;
        case Call::kRgetAccumulate:
            CHECK_MPI(MPI_Rget_accumulate(from, n, type, to, n, type, target, at, n, type, MPI_BXOR, win, &request_));
            break;
        }
    }

    // Ends the request, if there is one: then the buffers may be used.
    void wait() {
        if (request_ == MPI_REQUEST_NULL) return;
        CHECK_MPI(MPI_Wait(&request_, MPI_STATUS_IGNORE));
        spoil();
    }

    // After local completion the caller may change what was sent.
    void spoil() { std::fill(sent_.begin(), sent_.end(), static_cast<unsigned char>(0xee)); }

    // The data returned must be the former contents of the memory.
    void check_result(const Bytes& contents, const std::string& what) const {
        Bytes expected(bytes_, kGuard);
        std::size_t n = returns_data(call_) ? bytes_ : 0;
        if (is_of_elements()) n = Elements(bytes_).size * Elements(bytes_).number;
        std::copy_n(contents.begin(), n, expected.begin());
        check_bytes(result_.data(), expected, what + ", result");
    }

    // What the call of another process makes of the memory.
    static void apply(Call call, std::uint64_t key, std::size_t bytes, unsigned char* memory) {
        const Bytes sent = message(key, bytes);
        const Elements elements(bytes);
        switch (call) {
        case Call::kGet:
        case Call::kRget: break;
        case Call::kPut:
        case Call::kRput: std::copy(sent.begin(), sent.end(), memory); break;
        case Call::kAccumulate:
        case Call::kGetAccumulate:
        case Call::kRaccumulate:
        case Call::kRgetAccumulate:
            for (std::size_t i = 0; i < bytes; ++i) memory[i] ^= sent[i];
            break;
        case Call::kFetchAndOp:
            for (std::size_t i = 0; i < elements.number; ++i)
                add(elements.size, &memory[i * elements.size], &sent[i * elements.size]);
            break;
        case Call::kCompareAndSwap:
            for (std::size_t i = 0; i < elements.number; i += 2)
                std::memcpy(memory + i * elements.size, &sent[i * elements.size], elements.size);
            break;
        }
    }

private:
    bool is_of_elements() const { return call_ == Call::kFetchAndOp || call_ == Call::kCompareAndSwap; }

    static void add(std::size_t size, unsigned char* to, const unsigned char* what) {
        std::uint64_t a = 0, b = 0;
        std::memcpy(&a, to, size);
        std::memcpy(&b, what, size);
        a += b;
        std::memcpy(to, &a, size);
    }

    // Every second compare_and_swap compares with another value, and must change nothing.
    void start_elements(const Window& window, int target, std::size_t byte, const Bytes& contents) {
        const Elements elements(bytes_);
        compared_ = contents;
        for (std::size_t i = 0; i < elements.number; ++i) {
            const std::size_t at = i * elements.size;
            const MPI_Aint place = window.at(target, byte + at);
            if (i % 2 == 1) compared_[at] ^= 1;
            if (call_ == Call::kFetchAndOp)
                CHECK_MPI(
                    MPI_Fetch_and_op(&sent_[at], &result_[at], elements.type(), target, place, MPI_SUM, window.win));
            else
                CHECK_MPI(MPI_Compare_and_swap(&sent_[at], &compared_[at], &result_[at], elements.type(), target, place,
                                               window.win));
        }
    }

    Call call_;
    std::size_t bytes_;
    Bytes sent_, result_, compared_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace
