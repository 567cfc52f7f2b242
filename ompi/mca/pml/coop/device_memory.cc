// SPDX-License-Identifier: BSD-3-Clause
#include "device_memory.h"

#include <dlfcn.h>

#include "diagnose.h"

namespace coop::pml {

// The function is in a library that only an Open MPI with CUDA support has. A transport may have loaded it already.
void find_devices() noexcept {
    if (!device_memory_is_possible()) return;
    constexpr const char* kFirstStage = "mca_common_cuda_stage_one_init";
    void* found = dlsym(RTLD_DEFAULT, kFirstStage);
    if (!found) {
        void* library = dlopen("libmca_common_cuda.so.40", RTLD_NOW | RTLD_GLOBAL);  // never closed
        found = library ? dlsym(library, kFirstStage) : nullptr;
    }
    if (!found) return no_devices();
    reinterpret_cast<int (*)()>(found)();  // without a driver it switches opal_cuda_support off
}

}  // namespace coop::pml
