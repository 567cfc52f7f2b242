// SPDX-License-Identifier: BSD-3-Clause
//
// Includes Open MPI's headers, and is the only place for differences between its versions. Supported: 4.1.x (BTL 3.1,
// one-sided modules 3.0).
//
// coop_ompi_prologue.h makes the headers compile as C++.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop_ompi_prologue.h"

extern "C" {
#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/datatype/ompi_datatype_internal.h"
#include "ompi/group/group.h"
#include "ompi/info/info.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/arch.h"
#include "opal/util/info_subscriber.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/show_help.h"

// An inline function of op.h relies on C's conversion from void*: the same call, with the type that it needs.
#define ompi_datatype_copy_content_same_ddt(type, count, to, from) \
    ompi_datatype_copy_content_same_ddt(type, count, (char*)(to), (char*)(from))
#include "ompi/mca/osc/base/osc_base_obj_convert.h"
#include "ompi/op/op.h"
#undef ompi_datatype_copy_content_same_ddt
}
