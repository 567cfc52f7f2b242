#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# install_test.sh BUILD: 'make install' installs the files named below, with every template filled in and no run path
# into the build, and 'make uninstall' leaves no file.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/build/lib.sh
. "$top/test/build/lib.sh"
build=$1
root=$scratch/root

succeeds "installs_below_destdir" make -C "$build" install DESTDIR="$root"
prefix=$root$(sed -n 's/^prefix = //p' "$build/Makefile")
for file in bin/coop-env bin/coop-ab bin/coop-figures bin/coop-sim libexec/ompi-coop/coop_sim lib/libmca_common_coop.so lib/openmpi-coop/mca_pml_coop.so lib/openmpi-coop/mca_coll_rdmaag.so lib/openmpi-coop/mca_osc_multirail.so libexec/ompi-coop/coop_latency \
    share/man/man1/coop-env.1 share/man/man7/mca_coll_rdmaag.7 share/man/man7/mca_osc_multirail.7 share/openmpi-coop/help-mpi-pml-coop.txt \
    share/openmpi-coop/help-mpi-coll-rdmaag.txt share/openmpi-coop/help-mpi-osc-multirail.txt share/openmpi-coop/openmpi-mca-params.conf \
    "share/modulefiles/ompi-coop/$(cat "$top/VERSION")"; do
    succeeds "installs_$(basename "$file")" test -s "$prefix/$file"
done
refuses "fills_in_every_template" '^$' sh -c "grep -rlIE '@[A-Za-z_]+@' '$prefix/bin' '$prefix/share' || { echo; false; }"
refuses "no_run_path_leads_into_the_build" '^$' sh -c "
    find '$prefix' -type f \\( -name '*.so*' -o -path '*/libexec/*' \\) -exec readelf -d {} + | grep PATH | grep -F '$build' || { echo; false; }"

succeeds "uninstalls" make -C "$build" uninstall DESTDIR="$root"
refuses "uninstall_leaves_no_file" '^$' sh -c "find '$root' ! -type d | grep . || { echo; false; }"
exit $failed
