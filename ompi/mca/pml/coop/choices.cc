// SPDX-License-Identifier: BSD-3-Clause
#include "choices.h"

#include <map>
#include <variant>
#include <vector>

#include "params.h"

namespace coop::pml {
namespace {

constexpr int kNone = -1;

std::map<std::string, std::string>& refused() {
    static auto& all = *new std::map<std::string, std::string>;
    return all;
}

// Accepts also a word that is not in the list. Open MPI would report it and use the default; here check() refuses it,
// and check_parameters() (module.cc) ends the job.
extern "C" int mca_pml_coop_index_of_word(mca_base_var_enum_t* self, const char* word, int* index) {
    *index = kNone;
    for (const ParamRow& row : params()) {
        if (self->enum_name != std::string_view(row.name)) continue;
        const auto value = parse(row, word);
        if (const auto* known = std::get_if<std::int64_t>(&value)) *index = static_cast<int>(*known);
        else refused()[row.name] = word;
    }
    return OPAL_SUCCESS;
}

}  // namespace

mca_base_var_enum_t* make_enumerator(const ParamRow& row) noexcept {
    std::vector<mca_base_var_enum_value_t> values;
    for (const char* word : row.choices) values.push_back({static_cast<int>(values.size()), word});
    values.push_back({0, nullptr});
    mca_base_var_enum_t* enumerator = nullptr;
    if (mca_base_var_enum_create(row.name, values.data(), &enumerator) != OPAL_SUCCESS) return nullptr;
    enumerator->value_from_string = mca_pml_coop_index_of_word;
    return enumerator;
}

std::string refused_word(const std::string& row_name) {
    const auto found = refused().find(row_name);
    return found == refused().end() ? std::string() : found->second;
}

}  // namespace coop::pml
