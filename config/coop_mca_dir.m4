# SPDX-License-Identifier: BSD-3-Clause
# COOP_MCA_DIR: the folder of the component DSOs (mcadir). In Open MPI's own folder every job of the cluster finds them; any
# other folder must be named by coop-env or a parameter file (COOP_OWN_MCA_DIR).
AC_DEFUN([COOP_MCA_DIR], [
  AC_ARG_WITH([mca-dir], [AS_HELP_STRING([--with-mca-dir=DIR], [install the components in DIR; 'ompi' means Open MPI's own component folder (default: LIBDIR/openmpi-coop)])],
    [], [with_mca_dir=yes])
  AS_CASE(["$with_mca_dir"],
    [yes], [mcadir='${libdir}/openmpi-coop'],
    [ompi], [
      AS_IF([test -z "$coop_ompi_pkglibdir"],
        [AC_MSG_ERROR([--with-mca-dir=ompi: the component folder of Open MPI is not known (ompi_info --path pkglibdir)])])
      mcadir="$coop_ompi_pkglibdir"],
    [/*], [mcadir="$with_mca_dir"],
    [AC_MSG_ERROR([--with-mca-dir=$with_mca_dir: give an absolute folder or 'ompi'])])
  AC_SUBST([mcadir])
  AS_IF([test "$mcadir" = "$coop_ompi_pkglibdir"], [coop_own_mcadir=no], [coop_own_mcadir=yes])
  AC_SUBST([COOP_OWN_MCA_DIR], [$coop_own_mcadir])
])
