# SPDX-License-Identifier: BSD-3-Clause
# COOP_COMPONENT_ROW(NAME, yes|no, WHY): one line of the summary, called by each component's configure.m4.
AC_DEFUN([COOP_COMPONENT_ROW], [
  AS_VAR_APPEND([coop_component_rows], ["`printf '    %-20s %-4s %s' "$1" "$2" "$3"`
"])
])

# COOP_SUMMARY: prints the parts that will be built, and their folders.
AC_DEFUN([COOP_SUMMARY], [
  AS_IF([test "$coop_ompi" = yes], [coop_ompi_line="$OMPI_VERSION ($OMPI_MPICC)"], [coop_ompi_line="none"])
  AS_IF([test "$coop_gtest" = yes], [coop_gtest_line=yes], [coop_gtest_line="no: install libgtest-dev"])
  AS_IF([test "$coop_verbs" = yes], [coop_verbs_line=yes], [coop_verbs_line="no: install libibverbs-dev"])
  AS_IF([test "$coop_docs" = yes], [coop_docs_line=yes], [coop_docs_line="no: install python3-sphinx and graphviz"])
  coop_show_prefix="$prefix"
  test "$coop_show_prefix" != NONE || coop_show_prefix="$ac_default_prefix"
  coop_show_mcadir=`prefix="$coop_show_prefix"; test "$exec_prefix" != NONE || exec_prefix="$prefix"
    coop_dir="$mcadir"
    for coop_level in libdir exec_prefix prefix; do eval "coop_dir=\"$coop_dir\""; done
    echo "$coop_dir"`
  AS_ECHO(["
ompi-coop $PACKAGE_VERSION will be built with

  Open MPI:      $coop_ompi_line
  components:
$coop_component_rows
  installed in:  $coop_show_prefix
  component DSOs $coop_show_mcadir
  coop-fabric:   $coop_verbs_line
  unit tests:    $coop_gtest_line
  manual pages:  $coop_docs_line
  compiler:      $CXX
  sanitizers:   ${coop_sanitizers:- none}
  warnings are   `AS_IF([test "$enable_werror" = yes], [AS_ECHO([errors])], [AS_ECHO([warnings])])`
"])
])
