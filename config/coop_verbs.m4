# SPDX-License-Identifier: BSD-3-Clause
# COOP_VERBS: libibverbs. The software subnet (fabric/) needs its header, rail/verbs also the library. Without it everything
# else is built.
AC_DEFUN([COOP_VERBS], [
  AC_LANG_PUSH([C++])
  coop_verbs=yes COOP_VERBS_LIBS=-libverbs
  AC_CHECK_HEADER([infiniband/verbs.h], [], [coop_verbs=no])
  AS_IF([test "$coop_verbs" = yes], [AC_CHECK_LIB([ibverbs], [ibv_get_device_list], [:], [coop_verbs=no])])
  # dlsym() finds functions that only newer libibverbs have. Before glibc 2.34 it needs a library.
  coop_verbs_save_LIBS=$LIBS
  AC_SEARCH_LIBS([dlsym], [dl], [AS_CASE([$ac_cv_search_dlsym], [-l*], [COOP_VERBS_LIBS="$COOP_VERBS_LIBS $ac_cv_search_dlsym"])])
  LIBS=$coop_verbs_save_LIBS
  AS_IF([test "$coop_verbs" = no], [
    COOP_VERBS_LIBS=
    AC_MSG_WARN([libibverbs or its header infiniband/verbs.h not found: no coop-fabric, no rails (install libibverbs-dev)])])
  AC_LANG_POP([C++])
  AC_SUBST([COOP_VERBS_LIBS])
  AM_CONDITIONAL([COOP_HAVE_VERBS], [test "$coop_verbs" = yes])
])
