# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# MPICH's public conformance tests (test/mpi of Debian's source package mpich): tests that pass under stock ob1 must pass
# here, with coll/rdmaag and osc/multirail switched on. The sources are downloaded, built against Open MPI and kept in
# _results/mpi/mpich.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

mpich_folders=(rma)
# The number of tests of a folder that must pass: nearly all that are built, because ob1 does not pass all of them on every machine.
declare -A mpich_least=([pt2pt]=44 [comm]=30 [coll]=86 [rma]=160)
# With osc/multirail: all but rmanull and badrma, which Open MPI itself refuses, and some that may wait for a busy machine.
mpich_least_by_osc=185
mpich_long_folders=(pt2pt comm coll datatype threads/pt2pt threads/comm threads/coll threads/rma threads/util threads/mpi_t attr errhan errors/rma group info init topo)

# A tree that was configured otherwise is made again.
mpich_options=(--disable-fortran --disable-cxx --disable-romio --disable-part --enable-strictmpi --enable-threads=multiple --with-pm=no)

mpich_download() {
    local folder=$results/mpich/source archive
    # shellcheck source=test/mpi/foreign/debian_source.sh
    . "$here/foreign/debian_source.sh"
    ls "$folder"/mpich_*.orig.tar.* >/dev/null 2>&1 || debian_source mpich "$folder" || return 1
    archive=$(ls "$folder"/mpich_*.orig.tar.*) || return 1
    rm -rf "$results/mpich/tree" && mkdir -p "$results/mpich/tree" || return 1
    # Keep the times of the archive, otherwise make would run automake.
    tar -xf "$archive" -C "$results/mpich/tree" --strip-components=3 --wildcards '*/test/mpi'
}

# The functions that MPI 3.0 removed are still in libmpi but not in mpi.h; those with the same arguments are mapped to their
# new names. Tests that need other parts of MPI 4 do not link and are left out: -k.
mpich_build() {
    local tree=$results/mpich/tree folder removed built=("${mpich_folders[@]}")
    [ "$long" = no ] || built+=("${mpich_long_folders[@]}")
    if [ "$(cat "$tree/configured" 2>/dev/null)" != "${mpich_options[*]}" ]; then
        mpich_download && cd "$tree" && ./configure -q "${mpich_options[@]}" CC=mpicc CFLAGS="-O0 -w" || return 1
        echo "${mpich_options[*]}" >configured
    fi
    [ "$(cat "$tree/built.$long" 2>/dev/null)" != "${built[*]}" ] || return 0
    cd "$tree" || return 1
    removed="-DOMPI_OMIT_MPI1_COMPAT_DECLS=1 -DMPI_Type_hvector=MPI_Type_create_hvector"
    removed+=" -DMPI_Type_hindexed=MPI_Type_create_hindexed -DMPI_Type_struct=MPI_Type_create_struct"
    for folder in dtpools util; do make -s -j"$jobs" -C "$folder" CPPFLAGS="$removed" || return 1; done
    for folder in "${built[@]}"; do make -s -k -j"$jobs" -C "$folder" CPPFLAGS="$removed"; done
    echo "${built[*]}" >"built.$long"
}

part_mpich() {
    local folders='' log=$results/log/mpich.build.log
    mkdir -p "$results/mpich"
    if ! (mpich_build) >"$log" 2>&1; then
        report_fail mpich.build
        return
    fi
    local chosen_folders=("${mpich_folders[@]}") folder
    [ "$long" = no ] || chosen_folders+=("${mpich_long_folders[@]}")
    # A folder can be selected on the command line: mpich/pt2pt
    [ "$pattern" = '*' ] || IFS=, read -ra chosen_folders <<<"$pattern"
    [ "$pml" = ob1 ] || mpich_least[rma]=$mpich_least_by_osc
    for folder in "${chosen_folders[@]}"; do folders+=${folders:+,}$folder:${mpich_least[$folder]:-1}; done
    local arguments=()
    [ "$long" = no ] || arguments=(--long)
    [ "$pml" = ob1 ] || arguments+=(--rdmaag 9 --osc "$osc")
    # The arguments of common without the choice of a pml.
    /usr/bin/python3 "$here/foreign/conformance.py" --tree "$results/mpich/tree" --pml "$pml" "${arguments[@]}" \
        --log "$results/mpich/log" --folders "$folders" -- \
        mpirun --oversubscribe "${common[@]:3}" --mca btl vader,tcp,self --mca mpi_yield_when_idle 1 || failed=$((failed + 1))
    reported=$((reported + ${#chosen_folders[@]}))
    clean_jobs
}
