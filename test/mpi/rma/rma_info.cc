// SPDX-License-Identifier: BSD-3-Clause
// Info keys of windows: MPI_Win_get_info returns those of the MPI standard, with their defaults or with what the program has
// set; unknown keys and wrong values are ignored.
#include <optional>
#include <string>

#include "window.h"

namespace {

using Text = std::optional<std::string>;

class Info {
public:
    Info() { MPI_Info_create(&info); }
    explicit Info(MPI_Win win) { CHECK_MPI(MPI_Win_get_info(win, &info)); }
    ~Info() { MPI_Info_free(&info); }
    Info(const Info&) = delete;

    Info& set(const char* key, const char* value) {
        MPI_Info_set(info, key, value);
        return *this;
    }
    Text operator[](const char* key) const {
        char value[MPI_MAX_INFO_VAL + 1];
        int is_set = 0;
        MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_set);
        return is_set ? Text(value) : Text();
    }

    MPI_Info info = MPI_INFO_NULL;
};

Text key_of(const Window& window, const char* key) { return Info(window.win)[key]; }

void set(const Window& window, const char* key, const char* value) {
    Info info;
    info.set(key, value);
    CHECK_MPI(MPI_Win_set_info(window.win, info.info));
}

void for_all_flavors(const mpitest::Env& env, MPI_Info info, void (*check)(Window&, Flavor)) {
    for (const Flavor flavor : kFlavors) {
        const Members members(flavor, env.comm);
        Window window(flavor, members.comm, 64, 1, info);
        check(window, flavor);
    }
}

}  // namespace

CASE(defaults_are_those_of_the_standard) {
    for_all_flavors(env, MPI_INFO_NULL, [](Window& window, Flavor flavor) {
        CHECK(key_of(window, "no_locks") == "false");
        CHECK(key_of(window, "accumulate_ordering") == "rar,raw,war,waw");
        CHECK(key_of(window, "accumulate_ops") == "same_op_no_op");
        CHECK(key_of(window, "same_size") == "false");
        CHECK(key_of(window, "same_disp_unit") == "false");
        const bool allocates = flavor == Flavor::kAllocate || flavor == Flavor::kShared;
        CHECK(key_of(window, "alloc_shared_noncontig") == (allocates ? Text("false") : Text()));
    });
}

CASE(keys_of_the_creation_are_returned) {
    Info info;
    info.set("accumulate_ordering", "none").set("same_size", "true").set("alloc_shared_noncontig", "true");
    info.set("unknown_key_of_a_test", "17");
    for_all_flavors(env, info.info, [](Window& window, Flavor flavor) {
        CHECK(key_of(window, "accumulate_ordering") == "none");
        CHECK(key_of(window, "same_size") == "true");
        CHECK(key_of(window, "no_locks") == "false");
        if (flavor == Flavor::kShared) CHECK(key_of(window, "alloc_shared_noncontig") == "true");
    });
}

CASE(keys_change_while_the_window_lives) {
    for_all_flavors(env, MPI_INFO_NULL, [](Window& window, Flavor) {
        for (const char* const value : {"rar", "waw,raw", "none", "rar,raw,war,waw"}) {
            set(window, "accumulate_ordering", value);
            CHECK(key_of(window, "accumulate_ordering") == value);
        }
        for (const char* const value : {"same_op", "same_op_no_op"}) {
            set(window, "accumulate_ops", value);
            CHECK(key_of(window, "accumulate_ops") == value);
        }
        for (const char* const key : {"same_size", "same_disp_unit"}) {
            set(window, key, "true");
            CHECK(key_of(window, key) == "true");
            set(window, key, "false");
            CHECK(key_of(window, key) == "false");
        }
    });
}

CASE(unknown_keys_and_wrong_values_are_ignored) {
    for_all_flavors(env, MPI_INFO_NULL, [](Window& window, Flavor) {
        set(window, "unknown_key_of_a_test", "true");
        CHECK(!key_of(window, "unknown_key_of_a_test"));
        set(window, "accumulate_ops", "any_op");
        CHECK(key_of(window, "accumulate_ops") != "any_op");
        set(window, "accumulate_ordering", "rar,,raw");
        CHECK(key_of(window, "accumulate_ordering") != "rar,,raw");
        set(window, "same_size", "perhaps");
        CHECK(key_of(window, "same_size") != "perhaps");
        // The window can be used as before.
        CHECK_MPI(MPI_Win_lock_all(0, window.win));
        CHECK_MPI(MPI_Win_unlock_all(window.win));
    });
}

CASE(a_window_without_locks_says_so_and_refuses_them) {
    Info info;
    info.set("no_locks", "true");
    for_all_flavors(env, info.info, [](Window& window, Flavor) {
        CHECK(key_of(window, "no_locks") == "true");
        CHECK_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, window.rank, 0, window.win), MPI_ERR_RMA_SYNC);
    });
}
