# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
sanitizer_setup() { :; }
