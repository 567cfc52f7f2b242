# SPDX-License-Identifier: BSD-3-Clause
# Checks that this Open MPI has the headers for building components, by compiling them the way the components do: as C++20,
# inside extern "C", after coop_ompi_prologue.h.

# COOP_COMPILE_OMPI_HEADERS(HEADERS, IF-OK, IF-NOT): one compile with all of them. The log is in conftest.err.
AC_DEFUN([COOP_COMPILE_OMPI_HEADERS], [
  {
    echo '#include "coop_ompi_prologue.h"'
    echo 'extern "C" {'
    for coop_h in $1; do echo "#include \"$coop_h\""; done
    echo '}'
  } > conftest.cc
  AS_IF([$CXX $CPPFLAGS $coop_probe_CPPFLAGS $CXXFLAGS -fsyntax-only conftest.cc > conftest.err 2>&1], [$2],
    [cat conftest.cc conftest.err >&AS_MESSAGE_LOG_FD
     $3])
  rm -f conftest.cc
])

# COOP_WHY_NOT: coop_why := the compiler's complaint in short: the missing file, or the first error.
AC_DEFUN([COOP_WHY_NOT], [
  coop_why=`sed -n "s/.*fatal error: '*\([[^':]]*\)'*:* .*o.* found.*/\1 is missing/p
                    s/.*fatal error: \([[^:]]*\): No such file.*/\1 is missing/p" conftest.err | head -n 1`
  test -n "$coop_why" || coop_why=`grep -m 1 'error:' conftest.err | sed 's/.*error: //'`
])

# COOP_OMPI_DEVEL: checks for the development headers at all.
AC_DEFUN([COOP_OMPI_DEVEL], [
  AC_MSG_CHECKING([for the development headers of Open MPI])
  COOP_COMPILE_OMPI_HEADERS([opal/mca/mca.h], [AC_MSG_RESULT([yes])], [
    AC_MSG_RESULT([no])
    COOP_WHY_NOT
    AC_MSG_ERROR([Open MPI $OMPI_VERSION of $OMPI_MPICC comes without the development headers its components are built with ($coop_why): install libopenmpi-dev (Debian), or use an Open MPI configured --with-devel-headers])])
])

# COOP_OMPI_ONE_ARCHITECTURE: refuses an Open MPI for heterogeneous jobs, whose convertors change the bytes during a transfer.
AC_DEFUN([COOP_OMPI_ONE_ARCHITECTURE], [
  AC_MSG_CHECKING([whether all processes of a job have one architecture])
  {
    echo '#include "coop_ompi_prologue.h"'
    echo '#if OPAL_ENABLE_HETEROGENEOUS_SUPPORT'
    echo '#error several'
    echo '#endif'
  } > conftest.cc
  AS_IF([$CXX $CPPFLAGS $coop_probe_CPPFLAGS $CXXFLAGS -fsyntax-only conftest.cc > conftest.err 2>&1], [AC_MSG_RESULT([yes])], [
    AC_MSG_RESULT([no])
    AC_MSG_ERROR([Open MPI $OMPI_VERSION of $OMPI_MPICC was configured --enable-heterogeneous, for jobs of several architectures; these components send bytes as they lie in memory. Use an Open MPI configured without it.])])
  rm -f conftest.cc
])

# COOP_OMPI_HEADERS(COMPONENT, HEADERS): stops unless all of HEADERS compile, with the reason for each that does not.
AC_DEFUN([COOP_OMPI_HEADERS], [
  AC_MSG_CHECKING([for the Open MPI headers that $1 needs])
  COOP_COMPILE_OMPI_HEADERS([$2], [AC_MSG_RESULT([yes])], [
    AC_MSG_RESULT([no])
    coop_missing=
    for coop_header in $2; do
      COOP_COMPILE_OMPI_HEADERS([$coop_header], [], [
        COOP_WHY_NOT
        coop_missing="$coop_missing
    $coop_header: $coop_why"])
    done
    AC_MSG_ERROR([Open MPI $OMPI_VERSION of $OMPI_MPICC lacks headers that $1 needs:${coop_missing:- none alone, but they do not compile together: see config.log}
    Give an unpacked source tree of Open MPI $OMPI_VERSION with --with-ompi-source=DIR, or use an Open MPI configured --with-devel-headers.])])
])

# COOP_OMPI_CXXFLAGS: OMPI_CXXFLAGS := flags for the inline functions of the headers. On x86-64 Open MPI's free lists exchange
# 16 bytes at once. Without -mcx16 this compiles to a call of a missing function, which would only fail at the first
# multi-threaded job. So the check links a program.
AC_DEFUN([COOP_OMPI_CXXFLAGS], [
  AC_LANG_PUSH([C++])
  AC_MSG_CHECKING([for the flags that Open MPI's atomics need])
  coop_save_CPPFLAGS="$CPPFLAGS" coop_save_CXXFLAGS="$CXXFLAGS" coop_save_LIBS="$LIBS"
  CPPFLAGS="$CPPFLAGS $coop_probe_CPPFLAGS"
  LIBS="$OMPI_LIBS $LIBS"
  coop_found=no
  for OMPI_CXXFLAGS in "" -mcx16; do
    CXXFLAGS="$coop_save_CXXFLAGS $OMPI_CXXFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[
        #include "coop_ompi_prologue.h"
        extern "C" {
        #include "opal/class/opal_lifo.h"
        }
      ]], [[
        static opal_lifo_t lifo;
        return opal_lifo_pop_atomic(&lifo) == nullptr;
      ]])], [coop_found=yes; break])
  done
  CPPFLAGS="$coop_save_CPPFLAGS" CXXFLAGS="$coop_save_CXXFLAGS" LIBS="$coop_save_LIBS"
  AC_LANG_POP([C++])
  AS_IF([test $coop_found = no], [
    AC_MSG_RESULT([unknown])
    AC_MSG_ERROR([a program that uses Open MPI's opal_lifo does not link, not even with -mcx16: see config.log])])
  AC_MSG_RESULT([${OMPI_CXXFLAGS:-none}])
])
