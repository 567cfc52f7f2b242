// SPDX-License-Identifier: BSD-3-Clause
//
// The symbol under which Open MPI finds the component.
#pragma once

#include "compat.h"

extern "C" __attribute__((visibility("default"))) mca_btl_base_component_t mca_btl_coopib_component;
