// SPDX-License-Identifier: BSD-3-Clause
//
// Marks the symbols that libmca_common_coop.so exports to the components. Everything is compiled with hidden
// visibility, so a symbol without this mark stays internal.
#pragma once

#define COOP_EXPORT __attribute__((visibility("default")))
