// SPDX-License-Identifier: BSD-3-Clause
//
// Prints reStructuredText.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coop/base/param.h"

// Ends the program: the documentation would not agree with the code.
[[noreturn]] void fail(const std::string& why);

void print(const std::string& text);
std::string code(std::string_view text);

// A list-table: the cells of a row become lines of a bulleted list.
void print_table(const char* widths, const std::vector<std::vector<std::string>>& rows);

// Parameters as a list, for a manual page.
void print_short(const char* prefix, std::span<const coop::ParamRow> rows);
