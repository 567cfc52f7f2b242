// SPDX-License-Identifier: BSD-3-Clause
//
// The options of 'run' and 'create' that describe the subnet.
#pragma once

#include <optional>
#include <vector>

#include "fabric/tool/options.h"
#include "fabric/topo/generate.h"
#include "fabric/topo/install.h"

namespace coop::fabric {

class SubnetOptions {
public:
    SubnetOptions() = default;
    SubnetOptions(const SubnetOptions&) = delete;
    SubnetOptions& operator=(const SubnetOptions&) = delete;

    void add_to(std::vector<Option>& options);
    // The topology that the options describe.
    Error make(Topology& topology) const;

    const SubnetSettings& settings() const { return settings_; }
    const std::string& name() const { return name_; }

private:
    Option sizing(Option option);
    Error set_rates(const std::string& value);
    Error set_fat_tree(const std::string& value);

    Sizes sizes_;
    SubnetSettings settings_;
    std::string name_, topology_file_;
    std::string sized_by_;  // the last option given that cannot be combined with --topology
    bool has_hosts_ = false;
};

extern const char* const kSubnetOptionsHelp;

}  // namespace coop::fabric
