# SPDX-License-Identifier: BSD-3-Clause
# COOP_OMPI: finds the installed Open MPI and the flags to build components for it.
#
# Sets  coop_ompi            yes, or no (--without-ompi: only what needs no Open MPI: the core, coop-fabric, the tools, unit tests)
#       OMPI_MPICC, OMPI_MPIRUN, OMPI_VERSION, coop_ompi_pkglibdir (its component folder)
#       OMPI_CPPFLAGS        include paths of all headers, for files that start with coop_ompi_prologue.h
#       OMPI_CXXFLAGS        further flags to compile a component
#       OMPI_LIBS            libraries of a component; OMPI_APP_CFLAGS, OMPI_APP_LIBS for an MPI program in C
# Errors are single sentences that name the package to install or the option to give.

m4_define([COOP_OMPI_SUPPORTED], [4.1])

m4_define([COOP_OMPI_HINT],
  [install libopenmpi-dev and openmpi-bin (Debian), or give --with-ompi=DIR with bin/mpicc of Open MPI ]COOP_OMPI_SUPPORTED[.x below it])

# COOP_MPI_NAME(MPICC, VARIABLE): the name and version of the MPI of a compiler wrapper. Open MPI's wrapper prints them; the
# others are recognised by a macro in their mpi.h.
AC_DEFUN([COOP_MPI_NAME], [
  $2=`"$1" --showme:version 2>/dev/null | sed -n 's/^.*\(Open MPI [[0-9]][[^ ]]*\).*/\1/p' | head -n 1`
  AS_IF([test -z "$[]$2"], [
    printf '#include <mpi.h>\n' > conftest.c
    coop_mpi_macros=`"$1" -E -dM conftest.c 2>/dev/null | sed -n 's/^#define \(MVAPICH2\|I_MPI\|MPICH\)_VERSION "*\(.*\)"*$/\1 \2/p' | tr -d '"'`
    # MVAPICH2 and Intel MPI define MPICH's macro, too, so they come first.
    AS_CASE(["$coop_mpi_macros"],
      [*MVAPICH2*], [$2="MVAPICH2"],
      [*I_MPI*], [$2="Intel MPI"],
      [MPICH*], [$2="$coop_mpi_macros"],
      [$2="an unknown MPI"])
    rm -f conftest.c
  ])
])

# COOP_FIND_MPICC: OMPI_MPICC := the compiler wrapper of the Open MPI to use; OMPI_VERSION := its version.
AC_DEFUN([COOP_FIND_MPICC], [
  AS_CASE(["$with_ompi"],
    [yes], [coop_candidates="mpicc mpicc.openmpi" coop_path="$PATH"],
    [/*],  [coop_candidates="mpicc mpicc.openmpi" coop_path="$with_ompi/bin"],
    [AC_MSG_ERROR([--with-ompi=$with_ompi: give an absolute folder, the one that has bin/mpicc])])
  OMPI_MPICC= coop_refused=
  AC_MSG_CHECKING([for the compiler wrapper of Open MPI])
  for coop_name in $coop_candidates; do
    coop_wrapper=`PATH="$coop_path"; command -v $coop_name`
    test -n "$coop_wrapper" || continue
    COOP_MPI_NAME([$coop_wrapper], [coop_mpi_name])
    AS_CASE(["$coop_mpi_name"],
      ["Open MPI "*], [OMPI_MPICC="$coop_wrapper" OMPI_VERSION=`echo "$coop_mpi_name" | cut -d' ' -f3`; break],
      [coop_refused="${coop_refused:+$coop_refused; }$coop_wrapper is $coop_mpi_name"])
  done
  AS_IF([test -z "$OMPI_MPICC"], [
    AC_MSG_RESULT([none])
    AS_IF([test -n "$coop_refused"],
      [AC_MSG_ERROR([$coop_refused, but these are components of Open MPI: COOP_OMPI_HINT])],
      [AC_MSG_ERROR([no Open MPI found (no mpicc in $coop_path): COOP_OMPI_HINT])])])
  AC_MSG_RESULT([$OMPI_MPICC, Open MPI $OMPI_VERSION${coop_refused:+ ($coop_refused)}])
  AS_CASE(["$OMPI_VERSION"], [COOP_OMPI_SUPPORTED.*], [],
    [AC_MSG_ERROR([$OMPI_MPICC is of Open MPI $OMPI_VERSION; this version of ompi-coop supports Open MPI COOP_OMPI_SUPPORTED.x only])])
])

# COOP_OMPI_LAYOUT: asks the wrapper and ompi_info for the folders and flags.
AC_DEFUN([COOP_OMPI_LAYOUT], [
  coop_bindir=`AS_DIRNAME(["$OMPI_MPICC"])`
  # Debian's alternatives: mpirun.openmpi belongs to mpicc.openmpi, while mpirun may be another MPI's.
  coop_suffix=`echo "$OMPI_MPICC" | sed 's/.*mpicc//'`
  OMPI_MPIRUN="$coop_bindir/mpirun$coop_suffix"
  coop_ompi_info="$coop_bindir/ompi_info"
  AS_IF([test ! -x "$coop_ompi_info" || test ! -x "$OMPI_MPIRUN"],
    [AC_MSG_ERROR([$OMPI_MPICC has no ompi_info or mpirun$coop_suffix beside it: COOP_OMPI_HINT])])
  AC_MSG_CHECKING([for the component folder of Open MPI])
  coop_ompi_pkglibdir=`"$coop_ompi_info" --parsable --path pkglibdir | sed -n 's/^path:pkglibdir://p'`
  AC_MSG_RESULT([$coop_ompi_pkglibdir])
  coop_ompi_pkgincludedir=`"$coop_ompi_info" --parsable --path pkgincludedir | sed -n 's/^path:pkgincludedir://p'`

  OMPI_APP_CFLAGS=`"$OMPI_MPICC" --showme:compile`
  OMPI_APP_LIBS=`"$OMPI_MPICC" --showme:link`
  # Linked explicitly, so that a component's symbols also resolve if libmpi was loaded privately, as by an interpreter's module.
  OMPI_LIBS=
  for coop_dir in `"$OMPI_MPICC" --showme:libdirs`; do
    OMPI_LIBS="$OMPI_LIBS -L$coop_dir"
  done
  OMPI_LIBS="$OMPI_LIBS -lmpi -lopen-rte -lopen-pal"

  coop_isystem=
  for coop_dir in `"$OMPI_MPICC" --showme:incdirs` "$coop_ompi_pkgincludedir" "$coop_ompi_pkgincludedir/opal/include"; do
    AS_CASE([" $coop_isystem "], [*" $coop_dir "*], [continue])
    test -d "$coop_dir" && coop_isystem="$coop_isystem -isystem $coop_dir"
  done
])

# COOP_OMPI_SOURCE: --with-ompi-source=DIR, searched after the installed headers. It must be of the same version: headers of
# different versions may compile and yet disagree about structures.
AC_DEFUN([COOP_OMPI_SOURCE], [
  AS_CASE(["$with_ompi_source"], [no], [], [
    AS_IF([test ! -f "$with_ompi_source/opal/mca/mca.h" || test ! -f "$with_ompi_source/VERSION"],
      [AC_MSG_ERROR([--with-ompi-source=$with_ompi_source is not an Open MPI source tree (no opal/mca/mca.h or no VERSION in it)])])
    coop_source_version=
    for coop_part in major minor release; do
      coop_number=`sed -n "s/^$coop_part=//p" "$with_ompi_source/VERSION"`
      coop_source_version="$coop_source_version${coop_source_version:+.}$coop_number"
    done
    AS_IF([test "$coop_source_version" != "$OMPI_VERSION"],
      [AC_MSG_ERROR([--with-ompi-source=$with_ompi_source is Open MPI $coop_source_version, but $OMPI_MPICC is $OMPI_VERSION: the two must be the same version])])
    coop_source=`cd "$with_ompi_source" && pwd`
    coop_isystem="$coop_isystem -isystem $coop_source -isystem $coop_source/opal/include -isystem $coop_source/orte/include"
    coop_isystem="$coop_isystem -isystem $coop_source/ompi/include"])
])

AC_DEFUN([COOP_OMPI], [
  AC_ARG_WITH([ompi], [AS_HELP_STRING([--with-ompi=DIR], [Open MPI is installed in DIR (default: the one whose mpicc is on PATH; --without-ompi builds only what needs no Open MPI)])],
    [], [with_ompi=yes])
  AC_ARG_WITH([ompi-source], [AS_HELP_STRING([--with-ompi-source=DIR], [Open MPI source tree, for headers that the installed one leaves out])],
    [], [with_ompi_source=no])
  AS_IF([test "$with_ompi" = no], [coop_ompi=no], [
    coop_ompi=yes
    COOP_FIND_MPICC
    COOP_OMPI_LAYOUT
    COOP_OMPI_SOURCE
    # standin/ comes last, so that it is used only for headers missing elsewhere. -isystem suppresses warnings in foreign headers.
    coop_probe_CPPFLAGS="-I$srcdir/opal/include $coop_isystem -isystem $srcdir/opal/include/standin"
    OMPI_CPPFLAGS='-I$(top_srcdir)/opal/include '"$coop_isystem"' -isystem $(top_srcdir)/opal/include/standin'
    COOP_OMPI_DEVEL
    COOP_OMPI_ONE_ARCHITECTURE
    COOP_OMPI_CXXFLAGS
  ])
  AM_CONDITIONAL([COOP_HAVE_OMPI], [test "$coop_ompi" = yes])
  AC_SUBST([OMPI_MPICC])
  AC_SUBST([OMPI_MPIRUN])
  AC_SUBST([OMPI_VERSION])
  AC_SUBST([OMPI_CPPFLAGS])
  AC_SUBST([OMPI_CXXFLAGS])
  AC_SUBST([OMPI_LIBS])
  AC_SUBST([OMPI_APP_CFLAGS])
  AC_SUBST([OMPI_APP_LIBS])
])
