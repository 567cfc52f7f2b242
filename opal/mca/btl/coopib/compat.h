// SPDX-License-Identifier: BSD-3-Clause
//
// Includes Open MPI's headers; differences between its versions are handled here.
// Supported: 4.1.x (BTL 3.1).
//
// coop_ompi_prologue.h lets a C++ compiler accept the headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop_ompi_prologue.h"

extern "C" {
#include "opal/class/opal_bitmap.h"
#include "opal/class/opal_free_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/base/btl_base_error.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/runtime/opal.h"
#include "opal/runtime/opal_progress.h"
#include "opal/threads/threads.h"
#include "opal/util/arch.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/show_help.h"
}
