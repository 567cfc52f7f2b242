// SPDX-License-Identifier: BSD-3-Clause
//
// The rows of a component (param.h) with the place of each value in its Config:
// what it registers, fills with defaults and checks.
//
//     constexpr ParamPlace<Config> kPlaces[] = {{&Config::eager_limit, nullptr}, {&Config::protocol, &Config::protocol_name}};
//     constexpr ParamTable<Config> kTable(kParams, kPlaces);
//     static_assert(kTable.is_valid());
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

// A kChoice has both: the word as it was given, and the index that it stands for.
template <class Config>
struct ParamPlace {
    std::int64_t Config::*number;  // of all but a kString
    const char* Config::*text;     // kChoice and kString only
};

constexpr bool is_given_as_text(const ParamRow& row) noexcept { return row.type == ParamType::kChoice || row.type == ParamType::kString; }

template <class Config>
class ParamTable {
public:
    using Place = ParamPlace<Config>;
    constexpr ParamTable(std::span<const ParamRow> rows, std::span<const Place> places) noexcept : rows_(rows), places_(places) {}

    constexpr bool is_valid() const noexcept {
        if (!params_are_valid(rows_) || rows_.size() != places_.size()) return false;
        for (std::size_t i = 0; i < rows_.size(); ++i)
            if (is_given_as_text(rows_[i]) != (places_[i].text != nullptr) || (rows_[i].type == ParamType::kString) != (places_[i].number == nullptr)) return false;
        return true;
    }

    constexpr std::span<const ParamRow> rows() const noexcept { return rows_; }

    // Gives the row its default. Returns where its value is given: an int64, or a const char* if is_given_as_text().
    void* set_default(Config& config, std::size_t i) const noexcept {
        const ParamRow& row = rows_[i];
        if (!is_given_as_text(row)) {
            config.*places_[i].number = row.default_value;
            return &(config.*places_[i].number);
        }
        const char*& text = config.*places_[i].text;
        text = row.type == ParamType::kChoice ? row.choices[static_cast<std::size_t>(row.default_value)] : row.default_text;
        return &text;
    }

    // The first value that its row does not allow; sets the index of each kChoice before.
    std::optional<ParamError> check(Config& config) const {
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            const ParamRow& row = rows_[i];
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
    std::span<const ParamRow> rows_;
    std::span<const Place> places_;
};

}  // namespace coop
