// SPDX-License-Identifier: BSD-3-Clause
//
// Intrusive doubly linked list: a node lives inside the object that it links,
// so that queueing never allocates.
//
// Threading: none; the owner of the list locks. Ownership: the list never owns
// its elements. An element is on at most one list per node.
#pragma once

#include <cstddef>

namespace coop {

struct ListNode {
    ListNode* prev = nullptr;
    ListNode* next = nullptr;  // null while the node is on no list

    bool linked() const noexcept { return next != nullptr; }

    void unlink() noexcept {
        prev->next = next;
        next->prev = prev;
        prev = next = nullptr;
    }
};

// List of T through the node `T::*Node`.
template <class T, ListNode T::*Node>
class List {
public:
    List() noexcept { head_.prev = head_.next = &head_; }
    List(const List&) = delete;
    List& operator=(const List&) = delete;

    bool empty() const noexcept { return head_.next == &head_; }
    T* front() noexcept { return empty() ? nullptr : owner(head_.next); }
    T* back() noexcept { return empty() ? nullptr : owner(head_.prev); }

    T* next(T* element) noexcept {
        ListNode* n = (element->*Node).next;
        return n == &head_ ? nullptr : owner(n);
    }

    T* prev(T* element) noexcept {
        ListNode* n = (element->*Node).prev;
        return n == &head_ ? nullptr : owner(n);
    }

    void push_back(T* element) noexcept { link(&(element->*Node), head_.prev); }
    void push_front(T* element) noexcept { link(&(element->*Node), &head_); }
    void insert_after(T* where, T* element) noexcept { link(&(element->*Node), &(where->*Node)); }

    T* pop_front() noexcept {
        if (empty()) return nullptr;
        T* element = owner(head_.next);
        (element->*Node).unlink();
        return element;
    }

    void remove(T* element) noexcept { (element->*Node).unlink(); }

private:
    static void link(ListNode* node, ListNode* after) noexcept {
        node->prev = after;
        node->next = after->next;
        after->next->prev = node;
        after->next = node;
    }

    static T* owner(ListNode* node) noexcept {
        // Computes the member's offset from its member pointer. Elements have no virtual bases, so the offset
        // is the same for all of them.
        alignas(T) static char probe[sizeof(T)];
        const auto offset = reinterpret_cast<char*>(&(reinterpret_cast<T*>(probe)->*Node)) - probe;
        return reinterpret_cast<T*>(reinterpret_cast<char*>(node) - offset);
    }

    ListNode head_;
};

}  // namespace coop
