// SPDX-License-Identifier: BSD-3-Clause
//
// The rows of a component (param.h) with the place of each value in its Config:
// used to register them, to set defaults, and to check values.
//
//     constexpr ParamPlace<Config> kPlaces[] = {
//         {&Config::eager_limit, nullptr},
//         {&Config::protocol, &Config::protocol_name},
//     };
//     constexpr ParamTable<Config> kTable(kParams, kPlaces);
//     static_assert(kTable.is_valid());
//
// A kChoice is given as its word. If it can be written at run time it is given as an index, because a text could be
// freed while it is read.
//
// Threading: constants; a Config belongs to its owner. Errors: as in param.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "coop/base/param.h"

namespace coop {

// Number: std::int64_t, or Setting where values change while others read them.
template <class Config, class Number = std::int64_t>
struct ParamPlace {
    Number Config::*number;        // of all but a kString; of a kChoice the index of the word that was given
    const char* Config::*text;     // if is_given_as_text()
    int Config::*index = nullptr;  // if is_given_as_index()
};

constexpr bool is_given_as_index(const ParamRow& row) noexcept {
    return row.type == ParamType::kChoice && row.settable_at_run_time;
}
constexpr bool is_given_as_text(const ParamRow& row) noexcept {
    return row.type == ParamType::kString || (row.type == ParamType::kChoice && !row.settable_at_run_time);
}

template <class Config, class Number = std::int64_t>
class ParamTable {
public:
    using Place = ParamPlace<Config, Number>;
    constexpr ParamTable(std::span<const ParamRow> rows, std::span<const Place> places) noexcept
        : rows_(rows), places_(places) {}

    constexpr bool is_valid() const noexcept {
        if (!params_are_valid(rows_) || rows_.size() != places_.size()) return false;
        for (std::size_t i = 0; i < rows_.size(); ++i)
            if (!fits(rows_[i], places_[i])) return false;
        return true;
    }

    constexpr std::span<const ParamRow> rows() const noexcept { return rows_; }

    constexpr std::span<const Place> places() const noexcept { return places_; }

    // Sets the default of the row. Returns the address that Open MPI writes: of a const char* if is_given_as_text(), of
    // an int if is_given_as_index(), else of 64 bits.
    void* set_default(Config& config, std::size_t i) const noexcept {
        const ParamRow& row = rows_[i];
        if (is_given_as_index(row)) {
            config.*places_[i].index = static_cast<int>(row.default_value);
            return &(config.*places_[i].index);
        }
        if (!is_given_as_text(row)) {
            config.*places_[i].number = row.default_value;
            return &(config.*places_[i].number);
        }
        const char*& text = config.*places_[i].text;
        text = row.type == ParamType::kChoice ? row.choices[static_cast<std::size_t>(row.default_value)]
                                              : row.default_text;
        return &text;
    }

    // Returns the first value that its row does not allow. Sets the index of each kChoice first.
    std::optional<ParamError> check(Config& config) const {
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const ParamRow& row = rows_[i];
            if (is_given_as_index(row)) config.*places_[i].number = config.*places_[i].index;
            if (!is_given_as_text(row)) {
                if (auto error = coop::check(row, config.*places_[i].number)) return error;
                continue;
            }
            const char* text = config.*places_[i].text;
            auto value = parse(row, text ? text : "");
            if (auto* error = std::get_if<ParamError>(&value)) return std::move(*error);
            if (row.type == ParamType::kChoice) config.*places_[i].number = std::get<std::int64_t>(value);
        }
        return std::nullopt;
    }

private:
    static constexpr bool fits(const ParamRow& row, const Place& place) noexcept {
        return is_given_as_text(row) == (place.text != nullptr) && is_given_as_index(row) == (place.index != nullptr) &&
               (row.type == ParamType::kString) == (place.number == nullptr);
    }

    std::span<const ParamRow> rows_;
    std::span<const Place> places_;
};

}  // namespace coop
