// SPDX-License-Identifier: BSD-3-Clause
//
// Marks what libmca_common_coop.so offers to the components. Everything is
// compiled with hidden visibility; a symbol without this mark stays inside.
#pragma once

#define COOP_EXPORT __attribute__((visibility("default")))
