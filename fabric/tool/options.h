// SPDX-License-Identifier: BSD-3-Clause
//
// Options among the words of a command: --name VALUE or --name=VALUE.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "fabric/tool/command.h"

namespace coop::fabric {

struct Option {
    const char* name;
    bool has_value;
    std::function<Error(const std::string& value)> set;
};

Option flag(const char* name, bool& value);
Option text(const char* name, std::string& value);
Option number(const char* name, std::uint64_t min, std::uint64_t max, std::uint32_t& value);

// Removes the options up to '--', and '--' itself, from `words` and sets them. With `ends_at_word` they end at the
// first word that is not an option: a command with options of its own begins there. --help prints the command's help
// and ends the program.
Error take_options(const Command& command, Words& words, std::span<const Option> options, bool ends_at_word = false);

// The subnet `name`, or else $COOP_FABRIC, or else the only one that exists.
Error open_subnet(std::string name, Segment& subnet);
Error name_subnet(std::string& name);

}  // namespace coop::fabric
