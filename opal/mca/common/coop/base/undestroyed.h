// SPDX-License-Identifier: BSD-3-Clause
//
// A static object whose destructor never runs. exit() without MPI_Finalize destroys static objects while
// threads of this library may still use them, and a child of fork() would destroy objects that its parent uses.
// Owners release resources when their component closes, not in destructors.
#pragma once

namespace coop {

template <class T>
struct Undestroyed {
    Undestroyed() noexcept : value() {}
    ~Undestroyed() {}
    Undestroyed(const Undestroyed&) = delete;
    Undestroyed& operator=(const Undestroyed&) = delete;

    union {
        T value;
    };
};

}  // namespace coop
