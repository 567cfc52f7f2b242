// SPDX-License-Identifier: BSD-3-Clause
//
// The generated reference of osc/multirail.
#pragma once

void print_multirail_parameters();
void print_multirail_parameters_short();
void print_multirail_variables();
void print_multirail_variables_short();

// The words of the report, and what it counts.
void print_multirail_words();
// The reasons for which operations take their ways.
void print_multirail_reasons();
