# SPDX-License-Identifier: BSD-3-Clause
# COOP_PCH: --enable-pch precompiles the headers of the standard library and GoogleTest in config/coop_pch.h, with clang. A build
# takes half the time, but a missing #include goes unnoticed, so use it only for sources that are also compiled without it.
# With gcc, loading the precompiled headers is so slow that little time is saved.
AC_DEFUN([COOP_PCH], [
  AC_ARG_ENABLE([pch], [AS_HELP_STRING([--enable-pch], [precompile the standard headers, with clang (hides missing ones)])],
    [], [enable_pch=no])
  COOP_PCH_FLAGS= COOP_PCH_FILE= COOP_UNIT_CXXFLAGS=-O0
  # The precompiled header and all sources must have the same flags: core and components, libraries, programs and tests.
  AS_CASE([$enable_pch/$CXX],
    [no/*], [],
    [yes/*clang*], [
      COOP_PCH_FILE=coop_pch.h.pch COOP_UNIT_CXXFLAGS=
      COOP_PCH_FLAGS='-fPIC $(GTEST_CFLAGS) $(OMPI_CXXFLAGS) -include-pch $(abs_top_builddir)/coop_pch.h.pch'
    ],
    [AC_MSG_ERROR([--enable-pch is for clang (CXX=clang++), not for '$CXX'])])
  AC_SUBST([COOP_PCH_FLAGS])
  AC_SUBST([COOP_PCH_FILE])
  AC_SUBST([COOP_UNIT_CXXFLAGS])
])
