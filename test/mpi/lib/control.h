// SPDX-License-Identifier: BSD-3-Clause
//
// Control variables (parameters), written through MPI_T while the program runs. Start MPI_T first.
#pragma once

#include <cstring>
#include <string>

#include "mpi_test.h"

namespace {

inline int index_of_control(const std::string& name) {
    int index = -1;
    CHECK_EQ(MPI_T_cvar_get_index(name.c_str(), &index), MPI_SUCCESS);
    return index;
}

// Returns the result of MPI_T_cvar_write.
inline int write_control(const std::string& name, const void* value) {
    int count = 0;
    MPI_T_cvar_handle handle;
    CHECK_EQ(MPI_T_cvar_handle_alloc(index_of_control(name), nullptr, &handle, &count), MPI_SUCCESS);
    const int status = MPI_T_cvar_write(handle, value);
    MPI_T_cvar_handle_free(&handle);
    return status;
}

// Writes the value whose word in the variable's enumeration is `word`.
inline int write_word(const std::string& name, const std::string& word) {
    char text[256];
    int length = sizeof text, verbosity = 0, bind = 0, scope = 0, items = 0;
    MPI_Datatype type;
    MPI_T_enum words;
    CHECK_EQ(MPI_T_cvar_get_info(index_of_control(name), text, &length, &verbosity, &type, &words, nullptr, nullptr,
                                 &bind, &scope),
             MPI_SUCCESS);
    CHECK(type == MPI_INT && words != MPI_T_ENUM_NULL);
    length = sizeof text;
    CHECK_EQ(MPI_T_enum_get_info(words, &items, text, &length), MPI_SUCCESS);
    for (int i = 0; i < items; ++i) {
        int value = -1;
        length = sizeof text;
        CHECK_EQ(MPI_T_enum_get_item(words, i, &value, text, &length), MPI_SUCCESS);
        if (word == text) return write_control(name, &value);
    }
    mpitest::fail(__FILE__, __LINE__, name + " does not know " + word);
}

}  // namespace
