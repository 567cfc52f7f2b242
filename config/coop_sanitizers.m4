# SPDX-License-Identifier: BSD-3-Clause
# COOP_SANITIZERS: --enable-asan, --enable-ubsan, --enable-tsan; the flags end up in COOP_SAN_FLAGS, for compiling and linking.
AC_DEFUN([COOP_SANITIZERS], [
  AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer])], [], [enable_asan=no])
  AC_ARG_ENABLE([ubsan], [AS_HELP_STRING([--enable-ubsan], [build with UndefinedBehaviorSanitizer])], [], [enable_ubsan=no])
  AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])], [], [enable_tsan=no])
  AS_IF([test "$enable_asan$enable_tsan" = yesyes],
    [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other: a program can run under one of the two only])])

  coop_sanitizers= COOP_SAN_FLAGS=
  AS_IF([test "$enable_asan" = yes], [coop_sanitizers="$coop_sanitizers address"])
  AS_IF([test "$enable_tsan" = yes], [coop_sanitizers="$coop_sanitizers thread"])
  AS_IF([test "$enable_ubsan" = yes], [coop_sanitizers="$coop_sanitizers undefined"])
  AS_IF([test -n "$coop_sanitizers"], [
    for coop_san in $coop_sanitizers; do
      COOP_SAN_FLAGS="$COOP_SAN_FLAGS -fsanitize=$coop_san"
    done
    # An error must stop the program. Otherwise a test could report one and still pass.
    AS_IF([test "$enable_ubsan" = yes], [COOP_SAN_FLAGS="$COOP_SAN_FLAGS -fno-sanitize-recover=undefined"])
    # gcc checks the value of a volatile bool by reading it once, outside of the loop that polls it: Open MPI's
    # WAIT_SYNC_RELEASE, inlined into a component, then never ends.
    AS_IF([test "$enable_ubsan" = yes], [COOP_SAN_FLAGS="$COOP_SAN_FLAGS -fno-sanitize=bool"])
    # With these checks clang needs a runtime that only C++ programs have, so that no C program could load our components.
    AS_CASE([$enable_ubsan/$CXX], [yes/*clang*], [COOP_SAN_FLAGS="$COOP_SAN_FLAGS -fno-sanitize=function,vptr"])
    COOP_SAN_FLAGS="$COOP_SAN_FLAGS -fno-omit-frame-pointer"
    AC_LANG_PUSH([C++])
    AC_MSG_CHECKING([whether $CXX links with$COOP_SAN_FLAGS])
    coop_save_CXXFLAGS="$CXXFLAGS"
    CXXFLAGS="$CXXFLAGS $COOP_SAN_FLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([$CXX cannot link with$COOP_SAN_FLAGS: install the sanitizer libraries of this compiler (with gcc: libasan, libubsan, libtsan; with clang: libclang-rt-dev)])])
    CXXFLAGS="$coop_save_CXXFLAGS"
    AC_LANG_POP([C++])
  ])
  AC_SUBST([COOP_SAN_FLAGS])
])
