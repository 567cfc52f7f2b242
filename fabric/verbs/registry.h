// SPDX-License-Identifier: BSD-3-Clause
//
// The objects of an open device by their index in shared memory, which is how
// events refer to them.
//
// An event names its object to the program by address, so the object must outlive
// it: destroying waits until the program has acknowledged all events that it got
// (manual page of ibv_ack_async_event).
//
// Threading: any.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace coop::fabric {

template <class T>
class Registry {
public:
    void add(T& object) {
        std::lock_guard guard(lock_);
        objects_[object.index] = &object;
    }
    void remove(const T& object) {
        std::lock_guard guard(lock_);
        objects_.erase(object.index);
    }
    // Finds the object of an event and counts the event in `counter`. Null: the object has been destroyed meanwhile.
    T* hand_out(std::uint32_t index, std::uint64_t used, std::uint32_t T::*counter) {
        std::lock_guard guard(lock_);
        const auto found = objects_.find(index);
        if (found == objects_.end() || found->second->used != used) return nullptr;
        ++(found->second->*counter);
        return found->second;
    }

private:
    std::mutex lock_;
    std::unordered_map<std::uint32_t, T*> objects_;
};

// `object` is a QP, CQ or SRQ of libibverbs; `completed` is its number of acknowledged events.
template <class T>
void acknowledge(T& object, std::uint32_t& completed, unsigned events) {
    pthread_mutex_lock(&object.mutex);
    completed += events;
    pthread_cond_broadcast(&object.cond);
    pthread_mutex_unlock(&object.mutex);
}
template <class T>
void await_acknowledgements(T& object, const std::uint32_t& completed, std::uint32_t handed_out) {
    pthread_mutex_lock(&object.mutex);
    while (completed != handed_out) pthread_cond_wait(&object.cond, &object.mutex);
    pthread_mutex_unlock(&object.mutex);
}

}  // namespace coop::fabric
