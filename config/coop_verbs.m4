# SPDX-License-Identifier: BSD-3-Clause
# COOP_VERBS: the header of libibverbs, for the software subnet (fabric/); without it everything else still builds.
AC_DEFUN([COOP_VERBS], [
  AC_LANG_PUSH([C++])
  AC_CHECK_HEADER([infiniband/verbs.h], [coop_verbs=yes],
    [coop_verbs=no
     AC_MSG_WARN([infiniband/verbs.h not found: no coop-fabric (install libibverbs-dev)])])
  AC_LANG_POP([C++])
  AM_CONDITIONAL([COOP_HAVE_VERBS], [test "$coop_verbs" = yes])
])
