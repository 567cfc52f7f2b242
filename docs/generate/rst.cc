// SPDX-License-Identifier: BSD-3-Clause
#include "rst.h"

#include <cstdio>
#include <cstdlib>

void fail(const std::string& why) {
    std::fprintf(stderr, "reference: %s\n", why.c_str());
    std::exit(1);
}

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

std::string code(std::string_view text) { return "``" + std::string(text) + "``"; }

void print_table(const char* widths, const std::vector<std::vector<std::string>>& rows) {
    print(std::string(".. list-table::\n   :header-rows: 1\n   :widths: ") + widths + "\n\n");
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) print((i == 0 ? "   * - " : "     - ") + row[i] + "\n");
    print("\n");
}

void print_short(const char* prefix, std::span<const coop::ParamRow> rows) {
    for (const coop::ParamRow& row : rows)
        print("**" + std::string(prefix) + row.name + "** (" + coop::default_words(row) + ")\n    " + row.help +
              " Allowed: " + coop::range_words(row) + ".\n\n");
}
