# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# btl/coopib under random faults of every kind, one after the other and several at once, and without a rail for short times. The program
# checks the number and every byte of each message, and that all rails work again at the end. The log has the seeds and actions.
# shellcheck disable=SC2154,SC2016 # variables of run and lib/launch.sh; expanded by the shell on the subnet

# shellcheck source=test/fabric/parts/failover.sh
. "$here/parts/failover.sh"

# Random faults, ten at a time, and after each ten a moment with all ports of one host down. The job ends when the file exists.
faults_until='for n in $(seq $((faults / 10))); do
        kill -0 $job 2>/dev/null || break
        f storm --seed $((seed + n)) --faults 10 --every $every --outage $outage --settle $settle --kinds "$kinds"
        for h in $ports; do f port $h down; done; sleep 0.2; for h in $ports; do f port $h up; done; sleep 0.3
    done; touch "$file"'

# weathers KIND [SUBNET OPTION…] -- [MPIRUN ARGUMENT…] -- BYTES…: the job survives $soak_faults faults, and a tenth of them take a rail down.
weathers() {
    local kind=$1 options=() extra=() hcas=4 file=$log.over settings
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    while [ "$1" != -- ]; do extra+=("$1"); shift; done
    shift
    local kinds=port,link,one-way,loss,drop,lose-ack,rnr,cut,late,mute-qp,kill-qp,new-gid
    case " ${options[*]} " in *' roce '*) ;; *) kinds+=,lid,new-lid ;; esac
    # In windows, a put that its HCA has acknowledged is not repeated, and a channel of a process to itself does not survive.
    [ "$kind" != both ] || kinds+=,hca,ack-and-die
    rm -f "$file"
    settings="faults=$soak_faults seed=$((seed * 1000)) every=100ms outage=100ms settle=100ms kinds=$kinds file='$file'"
    settings+=" ports='$(for ((i = 0; i < hcas; i++)); do echo "h1/coop$i/1"; done | tr '\n' ' ')'"
    limit=$((60 + soak_faults)) survives "$settings; $faults_until" --hosts 2 --hcas $hcas "${options[@]}" -- --mca btl_coopib_timeout 11 "${extra[@]}" \
        -- "$kind" "$file" "$@" || return 1
    [ "$(grep -c '^btl/coopib: .* is lost: ' "$log.job")" -ge $((soak_faults / 10)) ]
}

part_soak() {
    # shellcheck disable=SC2034 # by_turns and log_prefix are for lib/report.sh
    local by_turns=yes seed=1 soak_faults=30 pml kind log_prefix=soak. sizes=(16 200 4096 12000 65536 262144)
    [ "$long" = yes ] && soak_faults=${COOP_TEST_SOAK:-1000}
    log=$results/log/soak.build.log
    prepare_failover >"$log" 2>&1 || { report_fail soak.build; return; }
    for pml in ob1 coop; do
        check "rails.$pml" weathers both -- --mca pml $pml -- "${sizes[@]}"
        seed=2 check "no_srq.$pml" weathers both --profile nosrq -- --mca pml $pml -- "${sizes[@]}"
        seed=3 check "roce.$pml" weathers both --link-layer roce -- --mca pml $pml -- "${sizes[@]}"
        for kind in epoch fence; do
            seed=4 check "windows.$kind.$pml" weathers $kind --virtual-hosts -- --map-by node --mca pml $pml --mca osc multirail -- 16 200 4096 65536
        done
    done
}
