# SPDX-License-Identifier: BSD-3-Clause
# COOP_GTEST: GoogleTest for the unit tests. Without it everything else is built, and 'make check' reports the skipped tests.
AC_DEFUN([COOP_GTEST], [
  PKG_CHECK_MODULES([GTEST], [gtest_main], [coop_gtest=yes],
    [coop_gtest=no
     AC_MSG_WARN([GoogleTest not found: no unit tests (install libgtest-dev)])])
  AM_CONDITIONAL([COOP_HAVE_GTEST], [test "$coop_gtest" = yes])
])
