# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Progress while the application computes (pml_coop_async): with MPI_THREAD_SINGLE application and handler take turns, above that level
# they run concurrently. Storms with pauses over btl/coopib; the connecting thread; communicators that are created meanwhile. If no
# part is named, only a run with --san tsan includes this one; test/fabric has more such storms, without a sanitizer.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# shellcheck source=test/mpi/parts/storm.sh
. "$here/parts/storm.sh"

part_async() {
    local threads fin
    if [ "$pml" != coop ] || [ ! -x "$fabric/bin/coop-fabric" ]; then
        report_skip async "it takes pml/coop and a software subnet"
        return
    fi
    if [ "$san" = tsan ] && [ "$fabric" -ef "$prefix" ]; then
        report_skip async "it takes a software subnet that was built without ThreadSanitizer (--fabric P)"
        return
    fi
    # The connecting thread, with one application thread and with three.
    for threads in 1 3; do limit=120 storm "site_01.connecting_beside_threads_$threads" subnet 4 600 -- --seed 19 --threads $threads --max-size 1000000; done
    slowly dup
    check site_32.communicators_are_made_while_messages_interrupt launch subnet 2 --mca pml_coop_async interrupt "${slow[@]}" \
        "$bin/lifetimes" --only communicators_are_made_while_messages_interrupt
    for threads in 1 3; do
        for fin in after fenced; do
            limit=120 storm "async.threads_${threads}_fin_$fin" subnet 2 2400 --mca pml_coop_async interrupt --mca pml_coop_fin $fin -- \
                --seed 17 --threads $threads --compute 300 --max-size 1000000
        done
    done
    limit=120 storm async.funneled subnet 2 2400 --mca pml_coop_async interrupt -- --seed 17 --level funneled --compute 300 --max-size 1000000
}
