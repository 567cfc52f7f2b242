// SPDX-License-Identifier: BSD-3-Clause
//
// Under a sanitizer, keeps components loaded when MPI_Finalize closes them. A report
// at exit can then name functions, and ThreadSanitizer keeps its suppressions for calls
// from them (tsan.supp). Call after MPI_Init. Without a sanitizer it does nothing.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

inline void keep_components_loaded() {
    std::vector<std::string> names;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            static_cast<std::vector<std::string>*>(to)->push_back(info->dlpi_name);
            return 0;
        },
        &names);
    for (const std::string& name : names)
        if (name.find("/mca_") != std::string::npos) dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}
#else
inline void keep_components_loaded() {}
#endif
