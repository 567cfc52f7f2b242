# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# mpi4py's test suite (from Debian's source package for its python3-mpi4py) under stock ob1 and under the tested pml: tests
# that pass under ob1 must pass here. Most tests of windows are skipped under ob1: mpi4py asks for MPI_THREAD_MULTIPLE, which
# osc/pt2pt refuses, and no other stock component makes windows of one process, with which the suite probes whether there are windows.
# So these must pass here whether or not they pass there.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# Sets $mpi4py_tests to the folder of the tests: COOP_MPI4PY_SOURCE, or downloaded from the Debian archive, else the same
# release from the Python package index.
mpi4py_download() {
    local folder=$results/mpi4py/source package version upstream archive
    mpi4py_tests=$results/mpi4py/tree/test
    if [ -n "${COOP_MPI4PY_SOURCE:-}" ]; then
        mpi4py_tests=$COOP_MPI4PY_SOURCE/test
        [ -f "$mpi4py_tests/runtests.py" ]
        return
    fi
    [ ! -f "$mpi4py_tests/runtests.py" ] || return 0
    package=$(dpkg-query -W -f '${source:Package}=${source:Version}' python3-mpi4py)
    version=${package#*=} upstream=${version%-*}
    mkdir -p "$folder"
    # shellcheck source=test/mpi/foreign/debian_source.sh
    . "$here/foreign/debian_source.sh"
    debian_source "$package" "$folder" ||
        /usr/bin/python3 -m pip --disable-pip-version-check download --retries 1 --no-deps --no-build-isolation \
            --no-binary :all: -d "$folder" "mpi4py==$upstream" || return 1
    archive=$(find "$folder" -maxdepth 1 -name 'mpi4py[_-]*.tar.*' ! -name '*.debian.*' ! -name '*.asc' | head -n 1)
    rm -rf "$results/mpi4py/tree" && mkdir -p "$results/mpi4py/tree"
    tar -xf "$archive" -C "$results/mpi4py/tree" --strip-components=1 && [ -f "$mpi4py_tests/runtests.py" ]
}

# run_mpi4py PML FOLDER: writes the verdicts of each rank to FOLDER. The status of the suite is ignored, except for the time limit.
# Excluded: spawn and dynproc, which start jobs by names that they look up at run time; semantics/dynamic covers these.
run_mpi4py() {
    local common=(--mca pml "$1" "${common[@]:3}")
    with_rdmaag "$1"
    [ "$1" = ob1 ] || common+=(--mca osc "$osc")
    rm -rf "$2"
    mkdir -p "$2"
    # The suite's own list of tests that Open MPI fails (skip_mpi) applies to both.
    limit=400 launch both 2 "${rdmaag[@]}" --output-filename "$2" env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 \
        "$mpi4py_tests/runtests.py" --no-builddir -v -e spawn -e dynproc || [ $? != 124 ] || { echo "$1: the time limit ended it"; return 1; }
}

# How many tests of windows must pass: all that mpi4py 3.1.4 has.
mpi4py_windows=126

mpi4py_passes_what_stock_passes() {
    local stock=$results/mpi4py/ob1 ours=$results/mpi4py/$pml
    if [ ! -e "$stock/done" ]; then
        (unset OMPI_MCA_mca_base_component_path && run_mpi4py ob1 "$stock") || return 1
        touch "$stock/done"
    fi
    if [ "$pml" != ob1 ]; then
        run_mpi4py "$pml" "$ours" && rdmaag_was_used -r "$ours" || return 1
    fi
    local windows=(--windows "$mpi4py_windows")
    [ "$pml" != ob1 ] || windows=()
    /usr/bin/python3 "$here/foreign/mpi4py_compare.py" "${windows[@]}" "$stock" "$ours"
}

part_mpi4py() {
    # shellcheck source=test/mpi/lib/rdmaag.sh
    . "$here/lib/rdmaag.sh"
    need_debian python3-mpi4py || return
    if asked mpi4py.passes_what_stock_passes; then
        if mpi4py_download >"$log" 2>&1; then
            check mpi4py.passes_what_stock_passes mpi4py_passes_what_stock_passes
        else
            report_skip mpi4py.passes_what_stock_passes "its sources are neither in the Debian archive nor in the package index as reached from here"
        fi
    fi
    mpi4py_bench
}

# The benchmarks that come with the binary package.
mpi4py_bench() {
    check mpi4py.bench_ringtest launch both 4 /usr/bin/python3 -m mpi4py.bench ringtest -n 200000 -l 20
    check mpi4py.bench_helloworld launch both 4 /usr/bin/python3 -m mpi4py.bench helloworld
}
