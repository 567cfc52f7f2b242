# SPDX-License-Identifier: BSD-3-Clause
# btl/coopib is built where there are Open MPI and libibverbs.
AS_IF([test "$coop_ompi" = yes && test "$coop_verbs" = yes], [
  COOP_OMPI_HEADERS([btl/coopib], [dnl
    opal/class/opal_bitmap.h dnl
    opal/mca/btl/base/btl_base_error.h dnl
    opal/mca/rcache/base/base.h dnl
    opal/util/proc.h])
  COOP_COMPONENT_ROW([btl/coopib], [yes], [InfiniBand and RoCE over many rails])
], [
  COOP_COMPONENT_ROW([btl/coopib], [no], [needs Open MPI and libibverbs-dev])
])
