# SPDX-License-Identifier: BSD-3-Clause
# COOP_PCH: --enable-pch, with clang: the standard library's headers (and GoogleTest's) precompiled once, from config/coop_pch.h. A
# build takes half the time, and an #include that is missing goes unnoticed: for sources that are compiled without it, too.
# gcc loads what it precompiled so slowly that little is won.
AC_DEFUN([COOP_PCH], [
  AC_ARG_ENABLE([pch], [AS_HELP_STRING([--enable-pch], [precompile the standard headers, with clang (hides missing ones)])],
    [], [enable_pch=no])
  COOP_PCH_FLAGS= COOP_PCH_FILE= COOP_UNIT_CXXFLAGS=-O0
  # What is precompiled and what includes it must agree in all flags: core and components, libraries, programs and tests.
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
