// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/environment.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

namespace coop::fabric {
namespace {

constexpr const char* kLibrary = "libcoopfabric.so";

// LD_PRELOAD has no quoting.
bool can_be_preloaded(const std::string& path) { return path.find_first_of(" :\t\n") == std::string::npos; }

}  // namespace

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

Error find_library(std::string& path) {
    const std::string own = own_path();
    const std::string folder = own.substr(0, own.rfind('/'));
    std::string candidates[] = {folder + "/../lib/ompi-coop/" + kLibrary,
                                std::string(COOP_FABRIC_PKGLIBDIR) + "/" + kLibrary, folder + "/.libs/" + kLibrary};
    if (const char* given = std::getenv("COOP_FABRIC_LIBRARY"); given != nullptr && *given != '\0') {
        if (access(given, R_OK) != 0) return {std::string("COOP_FABRIC_LIBRARY: there is no file '") + given + "'"};
        candidates[0] = given;
    }
    for (const std::string& candidate : candidates) {
        char resolved[PATH_MAX];
        if (access(candidate.c_str(), R_OK) != 0 || realpath(candidate.c_str(), resolved) == nullptr) continue;
        path = resolved;
        if (can_be_preloaded(path)) return {};
        return {"'" + path +
                "' has a blank or a colon in its name, which LD_PRELOAD does not allow: install it elsewhere"};
    }
    return {std::string("cannot find ") + kLibrary + " (looked for " + candidates[0] + ", " + candidates[1] +
            "): set COOP_FABRIC_LIBRARY"};
}

Error set_environment(const std::string& subnet, const std::string& host) {
    std::string preload;
    if (Error error = find_library(preload)) return error;
    const char* before = std::getenv("LD_PRELOAD");
    if (before != nullptr && *before != '\0') {
        const std::string all = std::string(":") + before + ":";
        preload = all.find(":" + preload + ":") == std::string::npos ? preload + ":" + before : before;
    }
    setenv("LD_PRELOAD", preload.c_str(), 1);
    setenv("COOP_FABRIC", subnet.c_str(), 1);
    if (!host.empty()) setenv("COOP_FABRIC_HOST", host.c_str(), 1);
    return {};
}

}  // namespace coop::fabric
