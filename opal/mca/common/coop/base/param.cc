// SPDX-License-Identifier: BSD-3-Clause
#include "coop/base/param.h"

#include <charconv>

namespace coop {

namespace {

constexpr bool has_range(const ParamRow& row) noexcept {
    return row.type == ParamType::kInt || row.type == ParamType::kSize;
}

// The range of a number, without its unit.
std::string bare_range(const ParamRow& row) {
    if (row.max == INT64_MAX) return "at least " + std::to_string(row.min);
    return std::to_string(row.min) + ".." + std::to_string(row.max);
}

std::string joined(std::span<const char* const> words) {
    std::string text;
    for (const char* word : words) {
        if (!text.empty()) text += ", ";
        text += word;
    }
    return text;
}

ParamError error(const ParamRow& row, std::string_view value) {
    return {row.name, std::string(value), range_words(row)};
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view kSpace = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// The power of 1024 of a suffix, as a shift; -1 if the suffix is unknown.
int shift_of(std::string_view suffix) {
    const std::string s = lower(suffix);
    if (s == "" || s == "b") return 0;
    constexpr std::string_view kLetters = "kmgt";
    const std::size_t letter = kLetters.find(s[0]);
    if (letter == std::string_view::npos) return -1;
    const std::string_view rest = std::string_view(s).substr(1);
    if (rest != "" && rest != "b" && rest != "ib") return -1;
    return 10 * static_cast<int>(letter + 1);
}

std::optional<std::int64_t> number_of(std::string_view text, bool with_suffix) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
        if (text.starts_with('-')) return std::nullopt;
    }
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, status] = std::from_chars(text.data(), end, value);
    if (status != std::errc{}) return std::nullopt;
    if (rest == end) return value;
    if (!with_suffix) return std::nullopt;
    const int shift = shift_of({rest, static_cast<std::size_t>(end - rest)});
    if (shift < 0) return std::nullopt;
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(value, std::int64_t{1} << shift, &scaled)) return std::nullopt;
    return scaled;
}

std::optional<std::int64_t> bool_of(std::string_view text) {
    const std::string word = lower(text);
    for (const char* yes : {"1", "true", "t", "yes", "y", "on", "enabled"})
        if (word == yes) return 1;
    for (const char* no : {"0", "false", "f", "no", "n", "off", "disabled"})
        if (word == no) return 0;
    return std::nullopt;
}

// The value of `text` for this row: a number, or the index of a choice.
std::optional<std::int64_t> value_of(const ParamRow& row, std::string_view text) {
    switch (row.type) {
    case ParamType::kInt: return number_of(trimmed(text), false);
    case ParamType::kSize: return number_of(trimmed(text), true);
    case ParamType::kBool: return bool_of(trimmed(text));
    case ParamType::kString: return 0;
    case ParamType::kChoice:
        if (const auto index = choice_index(row, trimmed(text))) return static_cast<std::int64_t>(*index);
        return std::nullopt;
    }
    return std::nullopt;
}

// Escapes the characters that reStructuredText would read as markup.
std::string rst_escaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char next = i + 1 < text.size() ? text[i + 1] : ' ';
        const bool word_goes_on = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
                                  (next >= '0' && next <= '9') || next == '_';
        const char c = text[i];
        if (c == '\\' || c == '*' || c == '`' || c == '|' || (c == '_' && !word_goes_on)) out += '\\';
        out += c;
    }
    return out;
}

void append_field(std::string& out, const char* field, std::string_view value) {
    out.append("   :").append(field).append(": ").append(rst_escaped(value)).append("\n");
}

void append_row(std::string& out, std::string_view prefix, const ParamRow& row) {
    out.append("``").append(prefix).append(row.name).append("``\n");
    out.append("   ").append(rst_escaped(row.help)).append("\n\n");
    append_field(out, "type", type_name(row.type));
    if (row.unit[0] != '\0') append_field(out, "unit", row.unit);
    append_field(out, "default", default_words(row));
    append_field(out, row.type == ParamType::kChoice ? "choices" : "range",
                 has_range(row) ? bare_range(row) : range_words(row));
    append_field(out, "level", std::to_string(row.level) + " (" + level_name(row.level) + ")");
    append_field(out, "can be set", row.settable_at_run_time ? "at start and while the job runs" : "at start");
    out += '\n';
}

}  // namespace

std::string ParamError::message(std::string_view prefix) const {
    return std::string(prefix) + name + ": the value \"" + value + "\" is not allowed (allowed: " + range + ")";
}

const char* type_name(ParamType type) noexcept {
    switch (type) {
    case ParamType::kInt: return "integer";
    case ParamType::kSize: return "size";
    case ParamType::kBool: return "boolean";
    case ParamType::kChoice: return "choice";
    case ParamType::kString: return "text";
    }
    return "?";
}

const char* level_name(int level) noexcept {
    switch (level) {
    case 1: return "user/basic";
    case 2: return "user/detail";
    case 3: return "user/all";
    case 4: return "tuner/basic";
    case 5: return "tuner/detail";
    case 6: return "tuner/all";
    case 7: return "dev/basic";
    case 8: return "dev/detail";
    case 9: return "dev/all";
    default: return "?";
    }
}

std::string default_words(const ParamRow& row) {
    switch (row.type) {
    case ParamType::kInt:
    case ParamType::kSize: return std::to_string(row.default_value);
    case ParamType::kBool: return row.default_value ? "true" : "false";
    case ParamType::kChoice: return row.choices[static_cast<std::size_t>(row.default_value)];
    case ParamType::kString: return row.default_text[0] != '\0' ? row.default_text : "empty";
    }
    return "?";
}

std::string range_words(const ParamRow& row) {
    switch (row.type) {
    case ParamType::kInt:
    case ParamType::kSize: return row.unit[0] == '\0' ? bare_range(row) : bare_range(row) + " " + row.unit;
    case ParamType::kBool: return "true, false";
    case ParamType::kChoice: return joined(row.choices);
    case ParamType::kString: return "any text";
    }
    return "?";
}

std::string help_text(const ParamRow& row) {
    std::string text = row.help;
    text += " [";
    if (row.unit[0] != '\0') text.append("unit: ").append(row.unit).append("; ");
    text.append("default: ").append(default_words(row)).append("; ");
    text.append(row.type == ParamType::kChoice ? "choices: " : "range: ");
    text.append(has_range(row) ? bare_range(row) : range_words(row));
    return text + "]";
}

std::string to_rst(std::string_view title, std::string_view prefix, std::span<const ParamRow> rows) {
    std::string out;
    out.append(title).append("\n").append(title.size(), '=').append("\n\n");
    for (const ParamRow& row : rows) append_row(out, prefix, row);
    return out;
}

std::variant<std::int64_t, ParamError> parse(const ParamRow& row, std::string_view text) {
    const auto value = value_of(row, text);
    if (!value) return error(row, text);
    if (check(row, *value)) return error(row, text);  // quotes the text that the user gave
    return *value;
}

std::optional<ParamError> check(const ParamRow& row, std::int64_t value) {
    std::int64_t min = row.min;
    std::int64_t max = row.max;
    if (row.type == ParamType::kString) return std::nullopt;
    if (!has_range(row)) {
        min = 0;
        max = row.type == ParamType::kBool ? 1 : static_cast<std::int64_t>(row.choices.size()) - 1;
    }
    if (value >= min && value <= max) return std::nullopt;
    return error(row, std::to_string(value));
}

std::optional<ParamError> check(const ParamRow& row, std::string_view text) {
    auto result = parse(row, text);
    if (auto* bad = std::get_if<ParamError>(&result)) return std::move(*bad);
    return std::nullopt;
}

std::optional<std::size_t> choice_index(const ParamRow& row, std::string_view word) noexcept {
    for (std::size_t i = 0; i < row.choices.size(); ++i)
        if (word == row.choices[i]) return i;
    return std::nullopt;
}

}  // namespace coop
