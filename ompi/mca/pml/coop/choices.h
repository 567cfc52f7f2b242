// SPDX-License-Identifier: BSD-3-Clause
//
// Parameters whose value is one word of a list and may be changed while the job runs: Open MPI stores the index of the
// word and displays both.
#pragma once

#include <string>

#include "compat.h"
#include "coop/base/param.h"

namespace coop::pml {

// Returns the list of words with which the row is registered. The caller releases it. Null: out of memory.
mca_base_var_enum_t* make_enumerator(const ParamRow& row) noexcept;

// Returns the word that was given for the row at start if it is not in the list, and otherwise an empty string. Open
// MPI stores an index out of range for such a word, so that check() refuses it.
std::string refused_word(const std::string& row_name);

}  // namespace coop::pml
