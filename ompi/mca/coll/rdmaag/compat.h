// SPDX-License-Identifier: BSD-3-Clause
//
// Includes Open MPI's headers, and is the only place for differences between its versions. Supported: 4.1.x (BTL 3.1,
// collective modules 2.3).
//
// coop_ompi_prologue.h makes the headers compile as C++.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop_ompi_prologue.h"

// coll_base_util.h, with the base of the requests of non-blocking calls, includes this header, which includes one that is
// not installed. Only pointers to the structure are used there.
#define OMPI_OP_H
struct ompi_op_t;

extern "C" {
#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"
#include "opal/util/arch.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"
}

#include <string_view>

namespace coop::ag {

// Whether the PML has connected the BTLs of all processes. The BML alone does not tell: osc/rdma opens it, too, and then
// a peer may not expect packets.
inline bool pml_uses_btls() noexcept {
    const std::string_view pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    return pml == "coop" || pml == "ob1";
}

}  // namespace coop::ag
