# SPDX-License-Identifier: BSD-3-Clause
# osc/multirail is built whenever Open MPI is there. A header that Open MPI lacks is an error here, before anything is compiled.
AS_IF([test "$coop_ompi" = yes], [
  COOP_OMPI_HEADERS([osc/multirail], [dnl
    opal/datatype/opal_convertor.h dnl
    opal/mca/base/mca_base_pvar.h dnl
    opal/mca/base/mca_base_var.h dnl
    opal/mca/btl/base/base.h dnl
    opal/mca/btl/btl.h dnl
    opal/mca/pmix/pmix.h dnl
    opal/runtime/opal_progress.h dnl
    opal/util/info_subscriber.h dnl
    opal/util/proc.h dnl
    opal/util/show_help.h dnl
    ompi/communicator/communicator.h dnl
    ompi/group/group.h dnl
    ompi/info/info.h dnl
    ompi/mca/bml/base/base.h dnl
    ompi/mca/bml/bml.h dnl
    ompi/mca/osc/base/base.h dnl
    ompi/mca/osc/osc.h dnl
    ompi/mca/pml/pml.h dnl
    ompi/mca/rte/rte.h dnl
    ompi/proc/proc.h dnl
    ompi/request/request.h dnl
    ompi/win/win.h])
  COOP_COMPONENT_ROW([osc/multirail], [yes], [one-sided communication over any BTL])
], [
  COOP_COMPONENT_ROW([osc/multirail], [no], [--without-ompi])
])
