# SPDX-License-Identifier: BSD-3-Clause
# pml/coop is built whenever Open MPI is there. A header that Open MPI lacks is an error here, before anything is compiled.
AS_IF([test "$coop_ompi" = yes], [
  COOP_OMPI_HEADERS([pml/coop], [dnl
    opal/class/opal_free_list.h dnl
    opal/datatype/opal_convertor.h dnl
    opal/mca/base/mca_base_pvar.h dnl
    opal/mca/base/mca_base_var.h dnl
    opal/mca/btl/base/base.h dnl
    opal/mca/btl/btl.h dnl
    opal/mca/pmix/pmix.h dnl
    opal/runtime/opal_progress.h dnl
    opal/util/info_subscriber.h dnl
    opal/util/show_help.h dnl
    ompi/attribute/attribute.h dnl
    ompi/communicator/communicator.h dnl
    ompi/mca/bml/base/base.h dnl
    ompi/mca/bml/bml.h dnl
    ompi/mca/pml/base/base.h dnl
    ompi/mca/pml/base/pml_base_bsend.h dnl
    ompi/mca/pml/base/pml_base_recvreq.h dnl
    ompi/mca/pml/base/pml_base_sendreq.h dnl
    ompi/mca/pml/pml.h dnl
    ompi/mca/rte/rte.h dnl
    ompi/message/message.h dnl
    ompi/proc/proc.h dnl
    ompi/request/request.h dnl
    ompi/runtime/mpiruntime.h])
  COOP_COMPONENT_ROW([pml/coop], [yes], [point-to-point over any BTL])
], [
  COOP_COMPONENT_ROW([pml/coop], [no], [--without-ompi])
])
