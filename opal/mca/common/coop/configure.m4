# SPDX-License-Identifier: BSD-3-Clause
# common/coop needs a C++20 compiler and nothing else: always built.
COOP_COMPONENT_ROW([common/coop], [yes], [the core that the components share])
