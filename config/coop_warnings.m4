# SPDX-License-Identifier: BSD-3-Clause
# COOP_WARNINGS: the warnings for our own code (Open MPI's headers are -isystem, which excludes them), as far as the compilers
# know them, in COOP_WARN_CFLAGS and COOP_WARN_CXXFLAGS. --enable-werror makes them errors.

# COOP_TRY_FLAGS(VARIABLE, FLAGS): appends to VARIABLE each flag that the compiler of the current language knows.
AC_DEFUN([COOP_TRY_FLAGS], [
  coop_save_flags="$[]_AC_LANG_PREFIX[]FLAGS"
  for coop_flag in $2; do
    # -Werror, because clang only warns about a warning it does not know.
    _AC_LANG_PREFIX[]FLAGS="$coop_save_flags -Werror $coop_flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [$1="$[]$1 $coop_flag"])
  done
  _AC_LANG_PREFIX[]FLAGS="$coop_save_flags"
])

AC_DEFUN([COOP_WARNINGS], [
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
    [], [enable_werror=no])
  # missing-field-initializers is off: a component table names only the fields that are not zero.
  coop_common_warnings="-Wall -Wextra -Wshadow -Wpointer-arith -Wformat=2 -Wcast-align -Wundef -Wvla dnl
-Wno-missing-field-initializers"
  AC_MSG_CHECKING([for compiler warnings to turn on])
  COOP_WARN_CFLAGS= COOP_WARN_CXXFLAGS=
  AC_LANG_PUSH([C])
  COOP_TRY_FLAGS([COOP_WARN_CFLAGS], [$coop_common_warnings -Wstrict-prototypes])
  AC_LANG_POP([C])
  AC_LANG_PUSH([C++])
  COOP_TRY_FLAGS([COOP_WARN_CXXFLAGS],
    [$coop_common_warnings -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wredundant-move])
  AC_LANG_POP([C++])
  AC_MSG_RESULT([$COOP_WARN_CXXFLAGS])
  AS_IF([test "$enable_werror" = yes],
    [COOP_WARN_CFLAGS="$COOP_WARN_CFLAGS -Werror" COOP_WARN_CXXFLAGS="$COOP_WARN_CXXFLAGS -Werror"])
  AC_SUBST([COOP_WARN_CFLAGS])
  AC_SUBST([COOP_WARN_CXXFLAGS])
])
