// SPDX-License-Identifier: BSD-3-Clause
//
// A performance variable of pml/coop, or of another component, through MPI_T. A program
// that includes this starts MPI_T before MPI.
#pragma once

#include <string>

#include "mpi_test.h"

namespace {

const mpitest::Configure start_mpi_t([](mpitest::Settings& settings) {
    settings.before_init = [] {
        int provided = 0;
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    };
});

// One variable, in its own session. With a window: one that must be bound to a window.
class Variable {
public:
    explicit Variable(const std::string& name, const std::string& component = "pml_coop", MPI_Win* window = nullptr) {
        const int index = find(component + "_" + name, window ? MPI_T_BIND_MPI_WIN : MPI_T_BIND_NO_OBJECT);
        int count = 0;
        MPI_T_pvar_session_create(&session_);
        can_be_bound_ = MPI_T_pvar_handle_alloc(session_, index, window, &handle_, &count) == MPI_SUCCESS;
        if (can_be_bound_) CHECK_EQ(count, 1);
        CHECK(can_be_bound_ || window);
    }
    ~Variable() {
        if (can_be_bound_) MPI_T_pvar_handle_free(session_, &handle_);
        MPI_T_pvar_session_free(&session_);
    }
    Variable(const Variable&) = delete;

    bool can_be_bound() const { return can_be_bound_; }
    bool can_be_read() const {
        unsigned long long value = 0;
        return MPI_T_pvar_read(session_, handle_, &value) == MPI_SUCCESS;
    }
    unsigned long long read() const {
        unsigned long long value = 0;
        CHECK_EQ(MPI_T_pvar_read(session_, handle_, &value), MPI_SUCCESS);
        return value;
    }

private:
    static int find(const std::string& wanted, int binding) {
        int count = 0;
        MPI_T_pvar_get_num(&count);
        for (int i = 0; i < count; ++i) {
            char name[256], text[256];
            int name_length = sizeof name, text_length = sizeof text;
            int verbosity, class_, bind, read_only, continuous, atomic;
            MPI_Datatype type;
            MPI_T_enum values;
            MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &class_, &type, &values, text, &text_length, &bind,
                                &read_only, &continuous, &atomic);
            if (wanted != name) continue;
            CHECK(type == MPI_UNSIGNED_LONG_LONG);
            CHECK_EQ(bind, binding);
            CHECK(read_only != 0);
            CHECK(text[0] != '\0');
            return i;
        }
        mpitest::fail(__FILE__, __LINE__, "there is no performance variable " + wanted);
    }

    MPI_T_pvar_session session_ = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle handle_ = MPI_T_PVAR_HANDLE_NULL;
    bool can_be_bound_ = false;
};

}  // namespace
