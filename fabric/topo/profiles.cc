// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/topo/profiles.h"

namespace coop::fabric {
namespace {

// The limits that a ConnectX-3 reports, except that scatter lists have at most kMaxSges entries.
constexpr Profile kDefault = {
    .name = "default",
    .max_rd_atomic = kMaxReadsInFlight,
    .max_inline = 512,
    .max_qp_wr = 16351,
    .max_sge = kMaxSges,
    .max_cqe = 4194303,
    .max_srq_wr = 16383,
    .max_message = 1u << 30,
    .apm = 1,
    .atomics = 1,
    .extended = 1,
    .last_wqe = 1,
    .in_order = 1,
};

constexpr Profile default_as(const char* name) {
    Profile profile = kDefault;
    for (char& c : profile.name) c = '\0';
    for (std::size_t i = 0; name[i] != '\0'; ++i) profile.name[i] = name[i];
    return profile;
}

constexpr Profile without_srq() {
    Profile profile = default_as("nosrq");
    profile.max_srq_wr = 0;
    return profile;
}

constexpr Profile without_apm() {
    Profile profile = default_as("noapm");
    profile.apm = 0;
    return profile;
}

constexpr Profile small() {
    Profile profile = default_as("small");
    profile.max_rd_atomic = 1;
    profile.max_inline = 32;
    profile.max_qp_wr = 1023;
    profile.max_sge = 4;
    profile.max_cqe = 8191;
    profile.max_srq_wr = 1023;
    profile.max_message = 2u << 20;
    return profile;
}

constexpr Profile without_extensions() {
    Profile profile = default_as("old");
    profile.extended = 0;
    return profile;
}

constexpr Profile without_last_wqe() {
    Profile profile = default_as("nolastwqe");
    profile.last_wqe = 0;
    return profile;
}

constexpr Profile without_order() {
    Profile profile = default_as("unordered");
    profile.in_order = 0;
    return profile;
}

constexpr Profile kProfiles[] = {kDefault,        without_srq(),     without_apm(), small(), without_extensions(),
                                 without_order(), without_last_wqe()};

}  // namespace

std::span<const Profile> profiles() { return kProfiles; }

const Profile* find_profile(std::string_view name) {
    for (const Profile& profile : kProfiles)
        if (name == profile.name) return &profile;
    return nullptr;
}

std::string profile_names() {
    std::string names;
    for (const Profile& profile : kProfiles) names += (names.empty() ? "" : ", ") + std::string(profile.name);
    return names;
}

}  // namespace coop::fabric
