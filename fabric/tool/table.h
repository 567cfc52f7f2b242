// SPDX-License-Identifier: BSD-3-Clause
//
// Rows of named values, shown as a table for people or as JSON for programs.
// Numbers are right-aligned and are JSON numbers; texts are left-aligned.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

namespace coop::fabric {

class TextTable {
public:
    // Column names are as in JSON (a_b); the table shows them with spaces (a b).
    TextTable(std::string name, std::vector<std::string> columns)
        : name_(std::move(name)), columns_(std::move(columns)) {}

    class Row {
    public:
        Row& add(std::string text) { return cells_.push_back({std::move(text), false}), *this; }
        Row& add(const char* text) { return add(std::string(text)); }
        Row& add(std::integral auto number) { return cells_.push_back({std::to_string(number), true}), *this; }
        Row& add(double number);  // with three decimals

    private:
        friend class TextTable;
        struct Cell {
            std::string text;
            bool is_number;
        };
        std::vector<Cell> cells_;
    };
    Row& row() { return rows_.emplace_back(); }

    bool empty() const { return rows_.empty(); }
    std::string text() const;
    std::string json() const;  // "name": [{…}, …]

private:
    std::string name_;
    std::vector<std::string> columns_;
    std::vector<Row> rows_;
};

std::string json_text(const std::string& text);  // in quotes

}  // namespace coop::fabric
