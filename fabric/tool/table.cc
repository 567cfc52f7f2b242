// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/table.h"

#include <algorithm>
#include <cstdio>

namespace coop::fabric {
namespace {

std::string padded(const std::string& text, std::size_t width, bool right) {
    const std::string blanks(width > text.size() ? width - text.size() : 0, ' ');
    return right ? blanks + text : text + blanks;
}

std::string without_blanks_at_end(std::string line) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line + "\n";
}

}  // namespace

TextTable::Row& TextTable::Row::add(double number) {
    char text[64];
    std::snprintf(text, sizeof text, "%.3f", number);
    cells_.push_back({text, true});
    return *this;
}

std::string TextTable::text() const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        widths.push_back(columns_[i].size());
        for (const Row& row : rows_) widths[i] = std::max(widths[i], row.cells_[i].text.size());
    }
    std::string all, line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        std::string title = columns_[i];
        std::ranges::replace(title, '_', ' ');
        line += padded(title, widths[i], !rows_.empty() && rows_[0].cells_[i].is_number) + "  ";
    }
    all += without_blanks_at_end(line);
    for (const Row& row : rows_) {
        line.clear();
        for (std::size_t i = 0; i < columns_.size(); ++i)
            line += padded(row.cells_[i].text, widths[i], row.cells_[i].is_number) + "  ";
        all += without_blanks_at_end(line);
    }
    return all;
}

std::string TextTable::json() const {
    std::string all = json_text(name_) + ": [";
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        all += r == 0 ? "\n    {" : ",\n    {";
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const Row::Cell& cell = rows_[r].cells_[i];
            all += (i == 0 ? "" : ", ") + json_text(columns_[i]) + ": " +
                   (cell.is_number ? cell.text : json_text(cell.text));
        }
        all += "}";
    }
    return all + (rows_.empty() ? "]" : "\n  ]");
}

std::string json_text(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        char code[8];
        if (static_cast<unsigned char>(c) < 0x20) {
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
            quoted += code;
        } else {
            if (c == '"' || c == '\\') quoted += '\\';
            quoted += c;
        }
    }
    return quoted + "\"";
}

}  // namespace coop::fabric
