// SPDX-License-Identifier: BSD-3-Clause
//
// Parameters that are one word of a list and may be written while the job runs: Open MPI keeps the index of the word, and shows both.
#pragma once

#include <string>

#include "compat.h"
#include "coop/base/param.h"

namespace coop::pml {

// The words of a row, for its registration. The caller releases it; null: out of memory.
mca_base_var_enum_t* make_enumerator(const ParamRow& row) noexcept;

// What was given for the row at start, if it is none of its words: the index is then out of range, and check() refuses it.
std::string refused_word(const std::string& row_name);

}  // namespace coop::pml
