# SPDX-License-Identifier: BSD-3-Clause
# COOP_DOCS: Sphinx (with graphviz, for the diagrams) builds the manual pages and, on demand, the HTML documentation.
AC_DEFUN([COOP_DOCS], [
  AC_ARG_VAR([SPHINX_BUILD], [sphinx-build])
  AC_PATH_PROG([SPHINX_BUILD], [sphinx-build])
  AC_PATH_PROG([DOT], [dot])
  AS_IF([test -n "$SPHINX_BUILD" && test -n "$DOT"], [coop_docs=yes], [coop_docs=no])
  AM_CONDITIONAL([COOP_HAVE_SPHINX], [test "$coop_docs" = yes])
])
