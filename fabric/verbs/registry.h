// SPDX-License-Identifier: BSD-3-Clause
//
// The objects of an open device, by their index in shared memory: that is how
// events name them.
//
// An event that was handed to the program names its object by address, so the
// object must outlive it: destroying waits until the program has acknowledged
// as many events as it got (the manual page of ibv_ack_async_event).
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
    // The object that an event is of, the event being counted in `counter`; null: it was destroyed meanwhile.
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

// `object` is a QP, CQ or SRQ of libibverbs; `completed` its count of acknowledged events.
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
