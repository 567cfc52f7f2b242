# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Starts the guest, waits for it, and passes on its output. Host and guest share the folder _results/vm/share, which is /run/vm in the guest:
#
#     entry        host: the script that process 1 executes
#     interactive  host: the command has the terminal
#     up           guest: the rails are there, the command begins
#     out          guest: the command's output
#     status       guest: the command's exit status
#
# run sets: here results kernel initramfs accel limit.
# shellcheck disable=SC2154 # variables of run

boot_limit=60 # seconds until the command begins; 5 suffice on an idle machine

# True if QEMU can use the processor's virtualization. KVM modules other than these two (kvm_pvm in some clouds) emulate the guest's
# kernel instruction by instruction, far more slowly than QEMU.
kvm_works() {
    [ -w /dev/kvm ] && { [ -d /sys/module/kvm_intel ] || [ -d /sys/module/kvm_amd ]; } &&
        echo quit | timeout 10 qemu-system-x86_64 -M none -accel kvm -nodefaults -display none -monitor stdio >/dev/null 2>&1
}

choose_accelerator() {
    [ "$accel" = auto ] || return 0
    accel=tcg
    ! kvm_works || accel=kvm
}

# shellcheck disable=SC2054 # commas of options
set_machine() {
    local type=tcg,thread=multi cpu=qemu64
    [ "$accel" = tcg ] || type=kvm cpu=host
    machine=(-M q35 -accel "$type" -cpu "$cpu" -smp 2 -m 1024 -nodefaults -no-user-config -display none -no-reboot
        -kernel "$kernel/vmlinux" -initrd "$initramfs"
        -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable"
        -fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap -device virtio-9p-pci,fsdev=root,mount_tag=root
        -fsdev "local,id=share,path=$share,security_model=none" -device virtio-9p-pci,fsdev=share,mount_tag=share)
}

# Writes the script of process 1: guest/start COMMAND…, in the current folder.
write_entry() {
    share=$results/share
    rm -rf "$share"
    mkdir -p "$share" || return 1
    printf 'cd %q\nexec' "$PWD" >"$share/entry"
    printf ' %q' "$here/guest/start" "$@" >>"$share/entry"
}

# in_guest COMMAND…: prints the command's output and returns its status, or 125 if the guest did not come up or broke down.
in_guest() {
    local attempt console=$results/log/console.log
    for attempt in 1 2; do
        write_entry "$@" && set_machine || return 125
        : >"$share/out"
        timeout -k 5 "$limit" qemu-system-x86_64 "${machine[@]}" -serial "file:$console" </dev/null 2>"$results/log/qemu.log" &
        guest=$!
        if wait_for_boot; then
            tail -n +1 -s 0.2 -f --pid=$guest "$share/out"
            wait "$guest"
            [ -s "$share/status" ] || { echo "the guest ended before its command did (after at most $limit s): $console"; return 125; }
            return "$(cat "$share/status")"
        fi
        kill "$guest" 2>/dev/null
        wait "$guest" 2>/dev/null
        cp "$console" "$console.$attempt" 2>/dev/null
        echo "RETRIED vm.boot: attempt $attempt with $accel failed: $console.$attempt $(tr '\n' ' ' <"$results/log/qemu.log")"
        # TCG works where this machine's KVM does not.
        accel=tcg
    done
    return 125
}

wait_for_boot() {
    local end=$((SECONDS + boot_limit))
    until [ -e "$share/up" ]; do
        [ $SECONDS -lt $end ] && kill -0 "$guest" 2>/dev/null || return 1
        sleep 0.1
    done
}

# Runs a shell (or a command) on this terminal. ^C goes to the guest.
interactive_guest() {
    write_entry "$@" && set_machine || return 125
    : >"$share/interactive"
    qemu-system-x86_64 "${machine[@]}" -chardev stdio,id=terminal,signal=off -serial chardev:terminal
    return "$(cat "$share/status" 2>/dev/null || echo 125)"
}
