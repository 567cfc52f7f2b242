// SPDX-License-Identifier: BSD-3-Clause
//
// Includes Open MPI's headers, and is the only place for differences between its versions. Supported: 4.1.x (BTL 3.1).
//
// coop_ompi_prologue.h makes the headers compile as C++.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coop_ompi_prologue.h"

extern "C" {
#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/base/pml_base_recvreq.h"
#include "ompi/mca/pml/base/pml_base_sendreq.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/class/opal_free_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/threads/threads.h"
#include "opal/util/arch.h"
#include "opal/util/info_subscriber.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"
}

#include <cstring>

namespace coop::pml {

// True if the transport's put and get copy with the CPU of the caller, from or to memory of this node, so that they are
// complete when they return. That is known of vader only (XPMEM, CMA or KNEM); other transports may need another call
// to complete an operation.
inline bool copies_at_once(const mca_btl_base_module_t& btl) noexcept {
    return std::strcmp(btl.btl_component->btl_version.mca_component_name, "vader") == 0;
}

}  // namespace coop::pml
