// SPDX-License-Identifier: BSD-3-Clause
//
// The component, as Open MPI finds it.
#pragma once

#include "compat.h"

extern "C" __attribute__((visibility("default"))) mca_btl_base_component_t mca_btl_coopib_component;
