# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Makes what the guest boots: Debian's unmodified kernel, and an initramfs with busybox, modules and guest/init. The kernel is cached in
# _results/vm/kernel/PACKAGE; the initramfs is made again each time.
#
# run sets: here results. This file sets: kernel (a folder with vmlinux, modules/, and order, the list of modules), initramfs.
# shellcheck disable=SC2154 # variables of run

# The modules to load, in this order; their dependencies are added. rxe loads crc32 through an alias, which would need modprobe.
guest_modules=(virtio_pci 9pnet_virtio 9p overlay crc32_generic rdma_rxe rdma_ucm veth sch_netem)

# The package of the kernel that this release of Debian boots by default. Its name contains the version, which changes.
kernel_package() {
    apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1
}

prepare_kernel() {
    local package
    package=$(kernel_package)
    if [ -z "$package" ] && [ "$(id -u)" = 0 ]; then
        apt-get -q update
        package=$(kernel_package)
    fi
    # Without package lists, use the newest kernel of an earlier run.
    [ -n "$package" ] || package=$(find "$results/kernel" -mindepth 2 -maxdepth 2 -name order -printf '%h\n' 2>/dev/null | sort -V | tail -n 1 | xargs -r basename)
    [ -n "$package" ] || { echo "apt knows of no linux-image-amd64"; return 1; }
    kernel=$results/kernel/$package
    # The list is written last: if it exists, everything does.
    [ -s "$kernel/order" ] || unpack_kernel "$package"
}

download() { # PACKAGE FOLDER
    local _
    for _ in once again; do
        ! (cd "$2" && apt-get -q download "$1") || return 0
        # The package list may be older than the archive: update it once.
        [ "$(id -u)" = 0 ] && apt-get -q update || return 1
    done
    return 1
}

unpack_kernel() { # PACKAGE
    local scratch status=0
    scratch=$(mktemp -d "$results/unpack.XXXXXX") || return 1
    rm -rf "$kernel"
    mkdir -p "$kernel/modules" "$scratch/tree"
    chmod 755 "$scratch"
    download "$1" "$scratch" && dpkg -x "$scratch"/*.deb "$scratch/tree" && extract_vmlinux "$scratch"/tree/boot/vmlinuz-* "$kernel/vmlinux" &&
        take_modules "$scratch/tree" || status=1
    rm -rf "$scratch"
    return $status
}

# Extracts the ELF file from a bzImage. It starts in half the time, because the guest need not decompress it. The setup header says
# where it is (Documentation/x86/boot.rst of the kernel: setup_sects, payload_offset, payload_length).
extract_vmlinux() { # BZIMAGE OUT
    local sectors offset length
    sectors=$(od -An -tu1 -j $((0x1f1)) -N 1 "$1")
    read -r offset length < <(od -An -tu4 -j $((0x248)) -N 8 "$1")
    offset=$(((sectors + 1) * 512 + offset))
    # The compressed bytes are followed by four bytes with the uncompressed size.
    dd if="$1" bs=1M iflag=skip_bytes,count_bytes skip="$offset" count=$((length - 4)) status=none | xz -dc >"$2" 2>"$2.xz" || {
        echo "not compressed with xz, so it is used as it is: $(cat "$2.xz")"
        cp "$1" "$2"
    }
    rm -f "$2.xz"
}

take_modules() { # TREE
    local -A file=() taken=()
    local path name order=()
    while read -r path; do
        name=$(basename "$path" .ko)
        file[${name//-/_}]=$path
    done < <(find "$1/lib/modules" -name '*.ko')
    for name in "${guest_modules[@]}"; do take_module "$name" || return 1; done
    printf '%s\n' "${order[@]}" >"$kernel/order"
}

take_module() { # NAME: adds a module after the modules that it depends on
    local name=${1//-/_} needed each
    [ -z "${taken[$name]:-}" ] || return 0
    [ -n "${file[$name]:-}" ] || { echo "the package has no module $name"; return 1; }
    taken[$name]=yes
    needed=$(tr '\0' '\n' <"${file[$name]}" | sed -n 's/^depends=//p' | head -n 1)
    for each in ${needed//,/ }; do take_module "$each" || return 1; done
    cp "${file[$name]}" "$kernel/modules/$name.ko"
    order+=("$name.ko")
}

prepare_initramfs() {
    local tree=$results/initramfs
    initramfs=$results/initramfs.cpio
    rm -rf "$tree"
    mkdir -p "$tree"/{dev,lower,upper,root} || return 1
    cp "$here/guest/init" "$tree/init" && cp /bin/busybox "$tree/busybox" && cp -r "$kernel/modules" "$kernel/order" "$tree/" || return 1
    (cd "$tree" && find . | /bin/busybox cpio -o -H newc -R 0:0 2>"$results/log/cpio.log") >"$initramfs"
}
