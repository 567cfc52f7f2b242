# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For quickstart and check: installs missing Debian packages, quietly.

# The packages to build from a checkout.
# shellcheck disable=SC2034 # used by the scripts that source this file
build_packages=(autoconf automake g++ gcc libibverbs-dev libopenmpi-dev libtool make openmpi-bin pkg-config)

# Further packages of test/vm: a virtual machine, and the programs of its guest.
# shellcheck disable=SC2034
vm_packages=(busybox-static ibverbs-utils iproute2 qemu-system-x86 xz-utils)

# need_packages LOG PACKAGE...
need_packages() {
    local log=$1 package missing=()
    shift
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        echo "Missing packages: run as root, or first: apt-get install ${missing[*]}" >&2
        return 1
    fi
    echo "apt: installing ${missing[*]}"
    mkdir -p "$(dirname "$log")"
    {
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q update && apt-get -q install -y --no-install-recommends "${missing[@]}"
    } >"$log" 2>&1 </dev/null || {
        tail -n 20 "$log" >&2
        echo "apt failed (log: $log)" >&2
        return 1
    }
}
