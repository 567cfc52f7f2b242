// SPDX-License-Identifier: BSD-3-Clause
//
// A queue of posted receives or of unexpected messages, in order, that finds the first element for a tag. A search walks
// the queue. The first search that passes kFar other elements links all elements into buckets by tag as well; the order
// of the queue stays. From then on a search for a tag looks into one bucket and at the first receive for any tag. Its
// cost then does not depend on the length of the queue, but on how many elements with other tags share the bucket. The
// buckets go when an element is added to an empty queue that has more than 64 of them, and after as many pushes as there
// are buckets if the queue is short then. Without memory for buckets, searches walk.
//
// An element has a `tag`, a node for the queue and a node for its bucket; leave() of the element unlinks both. Receives
// for any tag have a list of their own, and earlier() tells which of two elements comes first.
//
// Threading: none; the caller holds the communicator's matching lock. Ownership: elements belong to the caller, the
// buckets to the queue. Memory: two nodes in each element. Buckets have 16 bytes each; there are up to twice as
// many as there were elements when these were counted last, at least 64 and at most 2^20.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

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

    TagQueue() = default;
    TagQueue(const TagQueue&) = delete;
    TagQueue& operator=(const TagQueue&) = delete;
    ~TagQueue() { delete buckets_; }

    bool empty() const noexcept { return queue_.empty(); }
    T* front() noexcept { return queue_.front(); }
    T* next(T* element) noexcept { return queue_.next(element); }

    void push_back(T* element) noexcept {
        queue_.push_back(element);
        if (buckets_) [[unlikely]]
            push_into_bucket(element);
    }

    // Returns the first element that matches a message with this tag, or null. Mostly that is the first of the queue.
    T* first(std::int32_t tag) noexcept {
        T* const element = queue_.front();
        return !element || tag_matches(element->tag, tag) ? element : first_behind(element, tag);
    }

    // Returns the first element with a user's tag, or null.
    T* first_of_user() noexcept {
        T* element = queue_.front();
        while (element && element->tag < 0) element = queue_.next(element);
        return element;
    }

    std::size_t buckets() const noexcept { return buckets_ ? buckets_->size() : 0; }  // 0: searches walk

private:
    using Bucket = List<T, TagNode>;

    struct Buckets {
        Bucket any_tag;
        std::unique_ptr<Bucket[]> with_tag;
        unsigned bits = 0;
        std::size_t pushes = 0;  // since the queue was counted

        std::size_t size() const noexcept { return std::size_t{1} << bits; }
        Bucket& of(std::int32_t tag) noexcept {
            if (tag == kAnyTag) return any_tag;
            // Each bit of the tag changes each bit of the result, whatever the tags of an application have in common. The
            // factors are those of the final step of MurmurHash3.
            auto mixed = static_cast<std::uint32_t>(tag);
            mixed = (mixed ^ mixed >> 16) * 0x85ebca6b;
            mixed = (mixed ^ mixed >> 13) * 0xc2b2ae35;
            return with_tag[(mixed ^ mixed >> 16) & (size() - 1)];
        }
    };

    static constexpr unsigned kFewestBits = 6;
    static unsigned bits_for(std::size_t length) noexcept {
        return std::clamp(static_cast<unsigned>(std::bit_width(length)), kFewestBits, 20u);
    }

    std::size_t length() noexcept {
        std::size_t count = 0;
        for (T* element = queue_.front(); element; element = queue_.next(element)) ++count;
        return count;
    }

    // Links all elements into buckets for a queue of this length. Returns false, and changes nothing, without memory.
    bool sort(std::size_t length) noexcept {
        std::unique_ptr<Buckets> sorted(new (std::nothrow) Buckets);
        if (!sorted) return false;
        sorted->bits = bits_for(length);
        sorted->with_tag.reset(new (std::nothrow) Bucket[sorted->size()]);
        if (!sorted->with_tag) return false;
        unlink_from_buckets();
        for (T* element = queue_.front(); element; element = queue_.next(element))
            sorted->of(element->tag).push_back(element);
        delete std::exchange(buckets_, sorted.release());
        return true;
    }

    void unlink_from_buckets() noexcept {
        if (!buckets_) return;
        for (T* element = queue_.front(); element; element = queue_.next(element)) (element->*TagNode).unlink();
    }

    [[gnu::noinline]] void push_into_bucket(T* element) noexcept {
        if (queue_.front() == element && buckets_->bits > kFewestBits) return drop();  // empty again: the burst is over
        buckets_->of(element->tag).push_back(element);
        if (++buckets_->pushes == buckets_->size()) adapt();
    }

    void drop() noexcept { delete std::exchange(buckets_, nullptr); }

    // After as many pushes as there are buckets: makes their number fit the length of the queue again.
    void adapt() noexcept {
        const std::size_t now = length();
        buckets_->pushes = 0;
        if (now <= kFar) {
            unlink_from_buckets();
            drop();
        } else if (bits_for(now) != buckets_->bits) {
            sort(now);
        }
    }

    [[gnu::noinline]] T* first_behind(T* element, std::int32_t tag) noexcept {
        if (buckets_) return first_in_bucket(tag);
        for (int passed = 1; (element = queue_.next(element)) && !tag_matches(element->tag, tag);)
            if (++passed == kFar && queue_.next(element) && sort(length())) return first_in_bucket(tag);
        return element;
    }

    T* first_in_bucket(std::int32_t tag) noexcept {
        Bucket& bucket = buckets_->of(tag);
        T* element = bucket.front();
        while (element && element->tag != tag) element = bucket.next(element);
        T* any = tag >= 0 ? buckets_->any_tag.front() : nullptr;
        return element && any ? earlier(element, any) : element ? element : any;
    }

    List<T, Node> queue_;
    Buckets* buckets_ = nullptr;  // owned; a plain pointer keeps the layout of the owner's record standard
};

}  // namespace coop::match
