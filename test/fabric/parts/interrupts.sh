# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Progress while the application computes (pml_coop_async): storms with pauses, which check every message, and the number of
# interrupts of a receiver. Test names of the storms: ground.fin.threads.messages.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# shellcheck source=test/fabric/parts/coopib.sh
. "$here/parts/coopib.sh"
# shellcheck source=test/fabric/lib/watch.sh
. "$here/lib/watch.sh"

interrupts_build() {
    prepare_storm || return 1
    interrupts=$results/bin-mpi/interrupts
    turns=$(mpi_program turns) || return 1
    moves=$results/bin-mpi/moves broken_channel=$results/bin-mpi/broken_channel.so
    mpicc -O1 -Wall -Wextra -Werror -o "$moves" "$here/programs/moves.c" || return 1
    ${CC:-gcc} -O1 -Wall -Wextra -Werror -shared -fPIC -o "$broken_channel" "$here/programs/broken_channel.c" -ldl || return 1
    kept_callbacks=$results/bin-mpi/kept_callbacks
    local folder internals=()
    for folder in $(mpicc --showme:incdirs); do internals+=("-I$folder/openmpi"); done
    mpicc -O1 -Wall -Wextra -Werror "${internals[@]}" -o "$kept_callbacks" "$here/programs/kept_callbacks.c" -lopen-pal || return 1
    mpicc -O1 -Wall -Wextra -Werror -o "$interrupts" "$here/programs/interrupts.c" &&
        build_watches "$here/programs" "$results/bin-mpi"
}

# interrupts_storm GROUND FIN THREADS MESSAGES [STORM ARGUMENT…]: pauses of up to 300 µs between the calls; at most $limit seconds.
interrupts_storm() {
    local ground=$1 fin=$2 threads=$3 messages=$4 options np btl=coopib,self
    shift 4
    coopib_ground "$ground"
    [ "$ground" != four_hosts ] || btl=coopib,vader,self
    limit=${limit:-300} check "$ground.$fin.$threads.$messages" on_subnet "${options[@]}" -- mpirun -np "$np" --oversubscribe --mca pml coop \
        --mca btl "$btl" --mca pml_coop_async interrupt --mca pml_coop_fin "$fin" --mca mpi_yield_when_idle 1 \
        "$storm" --seed 17 --threads "$threads" --messages "$messages" --compute 300 "$@"
}

interrupts_of() { # burst | quiet
    limit=120 two_by_two mpirun -np 2 --oversubscribe --mca pml coop --mca btl coopib,self --mca pml_coop_async interrupt "$interrupts" "$1"
}

# watched [OPTION of the subnet…] -- [MPIRUN ARGUMENT…] PROGRAM…: two ranks. The output is also written to $log.job.
watched() {
    local subnet=() status=0
    while [ "$1" != -- ]; do subnet+=("$1"); shift; done
    shift
    limit=120 on_subnet "${subnet[@]}" -- env WATCHES="$results/bin-mpi/watch_reads.so:$results/bin-mpi/watch_interrupts.so" \
        mpirun -np 2 --oversubscribe --mca pml coop --mca btl coopib,self --mca pml_coop_async interrupt "$@" >"$log.job" 2>&1 || status=$?
    cat "$log.job"
    return $status
}

# With at most READS outstanding RDMA reads, queued reads must start when others complete, and completions must still interrupt.
burst_of_few_reads() { # READS
    # shellcheck disable=SC2016 # expanded where a rank starts
    watched --hosts 2 --hcas 2 -- --mca pml_coop_protocol rget --mca pml_coop_fin after --mca btl_coopib_max_reads "$1" --mca btl_coopib_report 1 \
        sh -c 'LD_PRELOAD=$WATCHES:$LD_PRELOAD exec "$@"' sh "$interrupts" burst 48 || return 1
    interrupted "$log.job" 1 && reads_were_limited "$log.job" "$1" && reads_have_waited "$log.job" "$1"
}

# message_moves WHAT [OPTION of the subnet…] -- [MPIRUN ARGUMENT…]: the receiver computes (programs/moves.c describes the cases).
message_moves() {
    local what=$1 subnet=() file status=0
    shift
    while [ "$1" != -- ]; do subnet+=("$1"); shift; done
    shift
    file=$(mktemp) || return 1
    on_subnet "${subnet[@]}" -- mpirun -np 2 --oversubscribe --mca pml coop --mca btl coopib,self --mca pml_coop_async interrupt \
        --mca mpi_yield_when_idle 1 "$@" "$moves" "$what" "$file" || status=$?
    rm -f "$file"
    return $status
}

# The handler handles a message of the PML while puts, gets and messages of other users of the transport complete or arrive. Their
# callbacks must run in the application's thread.
callbacks_run_in_the_application() {
    on_subnet --hosts 2 --hcas 2 --rate 100MB/s --virtual-hosts -- mpirun -np 2 --mca pml coop --mca btl coopib,self --mca osc rdma \
        --mca osc_rdma_btls coopib --mca pml_coop_async interrupt --mca mpi_yield_when_idle 1 "$kept_callbacks"
}

# The completion channel of one of two HCAs fails: each process reports that, the other HCA still interrupts, and no thread spins.
channel_that_fails_does_not_spin() {
    # shellcheck disable=SC2016 # expanded where a rank starts
    watched --hosts 2 --hcas 2 -- sh -c 'BROKEN_CHANNEL=coop1 LD_PRELOAD=$1:$WATCHES:$LD_PRELOAD exec "$2" burst 48' sh "$broken_channel" \
        "$interrupts" || return 1
    has_line "$(<"$log.job")" 2 "  HCA:  coop1" && interrupted "$log.job" 1 || return 1
    awk '/^rank [01]: [0-9]+ interrupts/ && $3 > 2000 { print "too often: " $0; wrong = 1 } END { exit wrong }' "$log.job"
}

# turns_beside_a_copy [MPIRUN ARGUMENT…] -- [ARGUMENT…]: two ranks share a virtual host. One sends a long message to the other and
# receives by rendezvous, over the HCA, from a third rank on another host. The third does not yield: a rank that shares its core would
# keep the core for some milliseconds.
turns_beside_a_copy() {
    local for_mpirun=()
    while [ "$1" != -- ]; do for_mpirun+=("$1"); shift; done
    shift
    # shellcheck disable=SC2016 # expanded where a rank starts
    limit=120 on_subnet --hosts 2 --virtual-hosts --slots 2 -- mpirun -np 3 --mca pml coop --mca btl coopib,vader,self \
        --mca mpi_yield_when_idle 1 "${for_mpirun[@]}" sh -c '[ "$OMPI_COMM_WORLD_RANK" != 2 ] || export OMPI_MCA_mpi_yield_when_idle=0; exec "$@"' \
        sh "$turns" "$@"
}

# A rank on another host is answered between two chunks of a copy inside the node. During a copy in one piece it is answered only
# by the handler, and only above MPI_THREAD_SINGLE: with that level itself the handler leaves the PML to the application.
beside_a_copy() {
    local whole=(--mca pml_coop_protocol rput --mca pml_coop_copy_chunk 64m)
    # A chunk takes longer than a machine with two cores needs to wake a thread.
    local cut=(--mca pml_coop_copy_chunk 2m)
    check beside_a_copy.coop turns_beside_a_copy "${cut[@]}" --mca pml_coop_protocol coop --
    check beside_a_copy.rput turns_beside_a_copy "${cut[@]}" --mca pml_coop_protocol rput --
    check beside_a_copy.in_one_piece.none turns_beside_a_copy "${whole[@]}" -- whole
    check beside_a_copy.in_one_piece.no_turn turns_beside_a_copy "${whole[@]}" --mca pml_coop_async interrupt -- whole
    check beside_a_copy.in_one_piece.by_the_handler turns_beside_a_copy "${whole[@]}" --mca pml_coop_async interrupt -- --multiple
}

# The job must run, and one message of each process must say why nothing interrupts.
without_a_transport() {
    local output
    output=$(time_limit 60 mpirun -np 2 --oversubscribe --mca pml coop --mca btl vader,self --mca pml_coop_async interrupt "$ring" 2>&1) ||
        { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 2 "  Reason:  no transport of this job supports interrupts; btl/coopib does" && has_line "$output" 1 "done"
}

auto_says_nothing() {
    local output
    output=$(time_limit 60 mpirun -np 2 --oversubscribe --mca pml coop --mca btl vader,self --mca pml_coop_async auto "$ring" 2>&1) ||
        { echo "$output"; return 1; }
    echo "$output"
    [ "$output" = "done" ]
}

part_interrupts() {
    local fin ground
    log=$results/log/interrupts.build.log
    interrupts_build >"$log" 2>&1 || { report_fail interrupts.build; return; }
    check few_interrupts_for_a_burst interrupts_of burst
    check none_for_short_messages_and_waiting_receivers interrupts_of quiet
    check burst_of_few_reads.1 burst_of_few_reads 1
    check burst_of_few_reads.4 burst_of_few_reads 4
    beside_a_copy
    check site_26.callbacks_run_in_the_application callbacks_run_in_the_application
    check site_26.one_sided_beside_interrupts one_sided_says coop --mca pml_coop_async interrupt
    check site_28.backlog_is_handled_when_a_receive_is_posted message_moves backlog --hosts 2 --strict-arm -- --mca btl_coopib_ring_threshold 0
    check site_30.receiver_that_polled_by_get_status message_moves get_status --hosts 2 --rate 250MB/s --
    check site_30.receiver_that_polled_by_flush message_moves flush --hosts 2 --rate 250MB/s -- --mca osc rdma --mca osc_rdma_btls coopib
    check site_32.channel_that_fails_does_not_spin channel_that_fails_does_not_spin
    check no_transport.asked_for without_a_transport
    check no_transport.auto auto_says_nothing
    for fin in auto after fenced; do
        interrupts_storm two_hcas "$fin" 1 2000
        interrupts_storm four_rails "$fin" 3 2000
    done
    for ground in one_rail unequal roce nosrq small four_hosts; do interrupts_storm "$ground" auto 1 1000; done
    interrupts_storm site_28.strict_arm auto 1 1000
    # Enough messages to hit a race of two instructions between application and handler: short pauses, no message above 60 kB.
    [ "$long" = no ] || limit=1800 interrupts_storm two_hcas auto 1 1000000 --compute 20 --max-size 60000
}
