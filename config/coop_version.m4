# SPDX-License-Identifier: BSD-3-Clause
# COOP_VERSION_NUMBERS: the parts of VERSION (x.y.z) as numbers, for coop_config.h: the component descriptors carry
# them.
AC_DEFUN([COOP_VERSION_NUMBERS], [
  AC_SUBST([COOP_VERSION_MAJOR], [`echo "$PACKAGE_VERSION" | cut -d. -f1`])
  AC_SUBST([COOP_VERSION_MINOR], [`echo "$PACKAGE_VERSION" | cut -d. -f2`])
  AC_SUBST([COOP_VERSION_RELEASE], [`echo "$PACKAGE_VERSION" | cut -d. -f3`])
])
