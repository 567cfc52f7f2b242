// SPDX-License-Identifier: BSD-3-Clause
//
// The generated reference of coll/rdmaag.
#pragma once

void print_rdmaag_parameters();
void print_rdmaag_parameters_short();
void print_rdmaag_variables();
void print_rdmaag_variables_short();

// The choice of an algorithm: conditions in order, and results.
void print_rdmaag_algorithms();

// The ways that are tried, and where.
void print_rdmaag_trials();
