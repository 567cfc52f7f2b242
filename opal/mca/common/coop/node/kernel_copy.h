// SPDX-License-Identifier: BSD-3-Clause
//
// What a copy between two processes by the kernel (node/remote_copy.h) costs. It is measured with memory of this process:
// the system call pins the same pages. Takes about a tenth of a millisecond, so the caller keeps the answer.
//
// Threading: any. Errors: if the kernel denies the copy, or there is no memory, is_denied() of the answer.
#pragma once

#include "coop/base/export.h"

namespace coop::node {

struct KernelCopy {
    double call_ns = 0;  // of a copy, before the first byte
    double byte_ns = 0;  // of a byte

    constexpr bool is_denied() const noexcept { return call_ns <= 0; }
};

COOP_EXPORT KernelCopy measure_kernel_copy() noexcept;

}  // namespace coop::node
