// SPDX-License-Identifier: BSD-3-Clause
//
// The generated reference of one-sided communication.
#pragma once

// The calls that each state of a window permits, and the states after them.
void print_rma_epochs();
