// SPDX-License-Identifier: BSD-3-Clause
//
// Parameters are declared once, as rows of a constexpr table. The row feeds
// the registration with Open MPI, the check at start, the help text that
// ompi_info shows and the parameter reference of the documentation.
//
//     constexpr const char* kProtocols[] = {"auto", "rget", "rput"};
//     constexpr ParamRow kParams[] = {
//         {.name = "eager_limit", .type = ParamType::kSize, .unit = "bytes",
//          .default_value = 4096, .min = 64, .max = 1 << 30,
//          .help = "Largest message that travels in one fragment.", .level = 4},
//         {.name = "protocol", .type = ParamType::kChoice, .choices = kProtocols,
//          .help = "Rendezvous protocol to use.", .level = 3},
//     };
//     static_assert(params_are_valid(kParams));
//
// Threading: rows are constants and every function here is pure.
// Errors: a value that a row does not allow is returned as a ParamError, which
// names the parameter, the value and the allowed range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "coop/base/export.h"

namespace coop {

enum class ParamType : std::uint8_t {
    kInt,     // a whole number
    kSize,    // a whole number, optionally followed by k, m, g or t (powers of 1024), with or without b or ib
    kBool,    // 0 or 1
    kChoice,  // one word of a list; its value is the index in that list
    kString,  // free text
};

struct ParamRow {
    const char* name = "";  // without the prefix of the component
    ParamType type = ParamType::kInt;
    const char* unit = "";                      // "" for a pure number; a kSize has one
    std::int64_t default_value = 0;             // all but kString; of a kChoice the index
    const char* default_text = "";              // kString only
    std::int64_t min = 0;                       // kInt and kSize
    std::int64_t max = INT64_MAX;               // kInt and kSize
    std::span<const char* const> choices = {};  // kChoice only
    const char* help = "";                      // whole sentences
    int level = 9;                              // of MPI_T: 1..3 user, 4..6 tuner, 7..9 developer
    bool settable_at_run_time = false;
};

struct ParamError {
    std::string name;   // of the row
    std::string value;  // as the user gave it
    std::string range;  // in words, e.g. "64..4096 bytes"

    // "pml_coop_eager_limit: the value "-5" is not allowed (allowed: …)".
    COOP_EXPORT std::string message(std::string_view prefix = "") const;
};

// --- describing a row -----------------------------------------------------

COOP_EXPORT const char* type_name(ParamType type) noexcept;
COOP_EXPORT const char* level_name(int level) noexcept;  // "user/basic", …

COOP_EXPORT std::string default_words(const ParamRow& row);
COOP_EXPORT std::string range_words(const ParamRow& row);

// One paragraph: "Largest … fragment. [unit: bytes; default: 4096; range: 64..1073741824]".
COOP_EXPORT std::string help_text(const ParamRow& row);

// The reference of a table in reStructuredText: a title, then one entry per
// row under its full name (prefix + name).
COOP_EXPORT std::string to_rst(std::string_view title, std::string_view prefix, std::span<const ParamRow> rows);

// --- checking a value -----------------------------------------------------

// The value of `text`, or an error. A kString has the value 0.
COOP_EXPORT std::variant<std::int64_t, ParamError> parse(const ParamRow& row, std::string_view text);

COOP_EXPORT std::optional<ParamError> check(const ParamRow& row, std::int64_t value);
COOP_EXPORT std::optional<ParamError> check(const ParamRow& row, std::string_view text);

// The index of `word` among the choices of the row.
COOP_EXPORT std::optional<std::size_t> choice_index(const ParamRow& row, std::string_view word) noexcept;

// --- checking a declaration, at compile time ------------------------------

namespace detail {

constexpr bool is_lower_case_name(std::string_view name) {
    if (name.empty() || name[0] < 'a' || name[0] > 'z') return false;
    for (char c : name)
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') return false;
    return name.back() != '_';
}

constexpr bool has_repeated_or_empty_words(std::span<const char* const> words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == nullptr || std::string_view(words[i]).empty()) return true;
        for (std::size_t j = 0; j < i; ++j)
            if (std::string_view(words[i]) == words[j]) return true;
    }
    return false;
}

}  // namespace detail

// The defect of a declaration, or null.
constexpr const char* declaration_defect(const ParamRow& row) {
    if (!row.name || !detail::is_lower_case_name(row.name)) return "name is not lower case";
    if (!row.unit || !row.help || !row.default_text) return "a text is null";
    if (std::string_view(row.help).empty()) return "help is empty";
    if (row.level < 1 || row.level > 9) return "level is not in 1..9";
    switch (row.type) {
    case ParamType::kSize:
        if (std::string_view(row.unit).empty()) return "a size has no unit";
        if (row.min < 0) return "a size may be negative";
        [[fallthrough]];
    case ParamType::kInt:
        if (row.min > row.max) return "range is empty";
        if (row.default_value < row.min || row.default_value > row.max) return "default is outside the range";
        break;
    case ParamType::kBool:
        if (row.default_value != 0 && row.default_value != 1) return "default is outside the range";
        break;
    case ParamType::kChoice:
        if (row.choices.empty()) return "there are no choices";
        if (detail::has_repeated_or_empty_words(row.choices)) return "a choice is empty or repeated";
        if (row.default_value < 0 || static_cast<std::size_t>(row.default_value) >= row.choices.size())
            return "default is outside the range";
        break;
    case ParamType::kString: break;
    }
    if (row.type != ParamType::kChoice && !row.choices.empty()) return "choices belong to a kChoice";
    if (row.type != ParamType::kString && row.default_text[0] != '\0') return "default_text belongs to a kString";
    return nullptr;
}

struct ParamDefect {
    std::size_t row = 0;        // index in the table
    const char* why = nullptr;  // null: there is no defect
};

constexpr ParamDefect find_defect(std::span<const ParamRow> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (const char* why = declaration_defect(rows[i])) return {i, why};
        for (std::size_t j = 0; j < i; ++j)
            if (std::string_view(rows[i].name) == rows[j].name) return {i, "name is taken by an earlier row"};
    }
    return {};
}

constexpr bool params_are_valid(std::span<const ParamRow> rows) { return find_defect(rows).why == nullptr; }

}  // namespace coop
