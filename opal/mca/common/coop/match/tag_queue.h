// SPDX-License-Identifier: BSD-3-Clause
//
// A queue of posted receives or of unexpected messages, in order, that finds the first element for a tag. A search walks
// the queue. The first search that passes kFar other elements sorts the queue into buckets by tag; from then on a search
// looks into one bucket, and the cost of a match does not grow with the length of the queue. The buckets go when an
// element comes to an empty queue. Without memory for buckets, searches walk.
//
// An element has a `tag`, a node for the queue and a node for its bucket; leave() of the element unlinks both.
// Receives for any tag have a bucket of their own, and earlier() tells which of two elements comes first.
//
// Threading: none; the caller holds the communicator's matching lock. Ownership: elements belong to the caller, the
// buckets to the queue. Memory: 16 bytes a bucket, one or two buckets an element of a queue that has been searched far.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "coop/base/list.h"

namespace coop::match {

constexpr std::int32_t kAnyTag = -1;

// MPI_ANY_TAG matches user tags only: negative tags are internal to the library.
constexpr bool tag_matches(std::int32_t wanted, std::int32_t tag) noexcept {
    return wanted == tag || (wanted == kAnyTag && tag >= 0);
}

template <class T, ListNode T::*Node, ListNode T::*TagNode>
class TagQueue {
public:
    static constexpr int kFar = 16;

    bool empty() const noexcept { return queue_.empty(); }
    T* front() noexcept { return queue_.front(); }
    T* next(T* element) noexcept { return queue_.next(element); }
    bool is_sorted() const noexcept { return buckets_ != nullptr; }

    void push_back(T* element) noexcept {
        if (buckets_) [[unlikely]] {
            if (queue_.empty()) buckets_.reset();
            else buckets_->of(element->tag).push_back(element);
        }
        queue_.push_back(element);
    }

    // Returns the first element that matches a message with this tag, or null.
    T* first(std::int32_t tag) noexcept {
        if (buckets_) [[unlikely]]
            return first_in_buckets(tag);
        int passed = 0;
        for (T* element = queue_.front(); element; element = queue_.next(element)) {
            if (tag_matches(element->tag, tag)) return element;
            if (++passed == kFar) return sort() ? first_in_buckets(tag) : first_behind(element, tag);
        }
        return nullptr;
    }

    // Returns the first element with a user's tag, or null.
    T* first_of_user() noexcept {
        T* element = queue_.front();
        while (element && element->tag < 0) element = queue_.next(element);
        return element;
    }

private:
    using Bucket = List<T, TagNode>;

    struct Buckets {
        Bucket any_tag;
        std::unique_ptr<Bucket[]> with_tag;
        unsigned bits;

        Bucket& of(std::int32_t tag) noexcept {
            if (tag == kAnyTag) return any_tag;
            constexpr std::uint32_t kGoldenRatio = 0x9e3779b1;  // of 2^32: spreads tags that differ by any step
            return with_tag[(static_cast<std::uint32_t>(tag) * kGoldenRatio) >> (32 - bits)];
        }
    };

    // Sorts the queue into at least as many buckets as it has elements. Returns false, and changes nothing, if there is
    // no memory for them, or if the queue is sorted into as many already.
    bool sort() noexcept {
        std::size_t length = 0;
        for (T* element = queue_.front(); element; element = queue_.next(element)) ++length;
        const auto bits = std::clamp(static_cast<unsigned>(std::bit_width(length)), 6u, 20u);
        if (buckets_ && buckets_->bits >= bits) return false;
        std::unique_ptr<Buckets> sorted(new (std::nothrow) Buckets);
        if (!sorted) return false;
        sorted->with_tag.reset(new (std::nothrow) Bucket[std::size_t{1} << bits]);
        if (!sorted->with_tag) return false;
        sorted->bits = bits;
        for (T* element = queue_.front(); element; element = queue_.next(element)) {
            if (buckets_) (element->*TagNode).unlink();
            sorted->of(element->tag).push_back(element);
        }
        buckets_ = std::move(sorted);
        return true;
    }

    T* first_in_buckets(std::int32_t tag) noexcept {
        Bucket& bucket = buckets_->of(tag);
        int passed = 0;
        T* element = bucket.front();
        while (element && element->tag != tag) {
            if (++passed == kFar && sort()) return first_in_buckets(tag);
            element = bucket.next(element);
        }
        T* any = tag >= 0 ? buckets_->any_tag.front() : nullptr;
        return element && any ? earlier(element, any) : element ? element : any;
    }

    T* first_behind(T* element, std::int32_t tag) noexcept {
        do element = queue_.next(element);
        while (element && !tag_matches(element->tag, tag));
        return element;
    }

    List<T, Node> queue_;
    std::unique_ptr<Buckets> buckets_;
};

}  // namespace coop::match
