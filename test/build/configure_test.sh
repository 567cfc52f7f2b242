#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# configure accepts the MPIs that it should, and refuses others with one sentence. Wrappers simulate other and incomplete MPIs.
# shellcheck disable=SC2317 # configure and the answers are called indirectly
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/build/lib.sh
. "$top/test/build/lib.sh"

real=$(command -v mpicc.openmpi || command -v mpicc)
info=$(dirname "$real")/ompi_info
version=$("$info" --parsable | sed -n 's/^ompi:version:full://p')
include=$("$info" --parsable --path incdir | sed -n 's/^path:incdir://p')

# configure ARGS...: in a fresh folder, without writing Makefiles, which takes half of the time. The cache keeps results that do not depend
# on the MPI.
configure() {
    rm -rf "$scratch/build"
    mkdir "$scratch/build"
    (cd "$scratch/build" && "$top/configure" --no-create --cache-file="$scratch/cache" --prefix="$scratch/prefix" "$@")
}

# fake NAME: makes the folder of a simulated Open MPI. Its wrapper prints the output of the function answer_NAME for an option, or the
# real one's if the function returns 1.
fake() {
    local dir=$scratch/$1
    mkdir -p "$dir/bin"
    {
        echo '#!/bin/bash'
        declare -f answer_plain "answer_$1"
        echo "answer_$1 \"\$@\" && exit; exec $real \"\$@\""
    } >"$dir/bin/mpicc"
    chmod +x "$dir/bin/mpicc"
    ln -s "$(dirname "$real")/mpirun" "$dir/bin/"
    # Its ompi_info is the installed one, except that it names the header folder of this simulated Open MPI.
    printf '#!/bin/sh\ncase "$*" in *pkgincludedir*) echo path:pkgincludedir:%s;; *) exec %s "$@";; esac\n' \
        "$dir/include/openmpi" "$info" >"$dir/bin/ompi_info"
    chmod +x "$dir/bin/ompi_info"
    echo "$dir"
}

answer_mpich() {
    case $* in
    *showme*) echo "gcc: error: unrecognized option $1" >&2; exit 1 ;;
    *-dM*) echo '#define MPICH_VERSION "4.0.2"' ;;
    *) return 1 ;;
    esac
}
answer_ompi5() {
    case $1 in --showme:version) echo "mpicc: Open MPI 5.0.7 (Language: C)" ;; *) return 1 ;; esac
}
# The include folder of the wrapper itself, without development headers unless the test puts some there.
answer_several() { answer_plain "$@"; }
answer_plain() {
    local here
    here=$(cd "$(dirname "$0")/.." && pwd)
    case $1 in --showme:incdirs) echo "$here/include" ;; *) return 1 ;; esac
}

refuses "configure_names_the_other_mpi" 'error: .*/mpicc is MPICH 4\.0\.2, but these are components of Open MPI' \
    configure --with-ompi="$(fake mpich)"
mkdir "$scratch/path"
for folder in /usr/local/bin /usr/bin; do ln -sf "$folder"/* "$scratch/path/"; done
rm -f "$scratch"/path/mpi* "$scratch"/path/ompi*
refuses "configure_says_what_to_install_when_there_is_no_mpi" 'no Open MPI found .*install libopenmpi-dev' \
    env PATH="$scratch/path" bash -c "$(declare -f configure); scratch=$scratch top=$top; configure"
ln -s "$scratch/mpich/bin/mpicc" "$scratch/path/mpicc"
refuses "configure_refuses_the_other_mpi_on_path" 'path/mpicc is MPICH 4\.0\.2' \
    env PATH="$scratch/path" bash -c "$(declare -f configure); scratch=$scratch top=$top; configure"
if command -v mpicc.openmpi >/dev/null; then
    says "configure_prefers_open_mpi_behind_another_mpi" "mpicc\.openmpi, Open MPI $version" \
        env PATH="$scratch/mpich/bin:$PATH" bash -c "$(declare -f configure); scratch=$scratch top=$top; configure"
fi
refuses "configure_refuses_other_versions" 'Open MPI 5\.0\.7; .*supports Open MPI 4\.1\.x only' \
    configure --with-ompi="$(fake ompi5)"

plain=$(fake plain)
mkdir -p "$plain/include"
ln -s "$include"/mpi*.h "$plain/include/"
refuses "configure_asks_for_development_headers" '\(.*is missing\): install libopenmpi-dev' configure --with-ompi="$plain"

header=ompi/mca/pml/base/pml_base_bsend.h
cp -rs "$include/openmpi" "$plain/include/openmpi"
rm "$plain/include/openmpi/$header"
refuses "configure_names_a_missing_header" "^    $header: $header is missing" configure --with-ompi="$plain"

several=$(fake several)
mkdir -p "$several/include"
ln -s "$include"/mpi*.h "$several/include/"
cp -rs "$include/openmpi" "$several/include/openmpi"
rm "$several/include/openmpi/opal_config.h"
sed 's/\(define OPAL_ENABLE_HETEROGENEOUS_SUPPORT\) 0/\1 1/' "$include/openmpi/opal_config.h" >"$several/include/openmpi/opal_config.h"
refuses "site_11.configure_refuses_an_open_mpi_for_several_architectures" 'was configured --enable-heterogeneous' configure --with-ompi="$several"

source_tree=$scratch/source
mkdir -p "$source_tree/opal/mca" "$source_tree/$(dirname $header)"
ln -s "$include/openmpi/opal/mca/mca.h" "$source_tree/opal/mca/"
ln -s "$include/openmpi/$header" "$source_tree/$header"
IFS=. read -r major minor release <<<"$version"
printf 'major=%s\nminor=%s\nrelease=%s\ngreek=\n' "$major" "$minor" "$release" >"$source_tree/VERSION"
says "configure_takes_a_missing_header_from_the_source" 'pml/coop +yes' \
    configure --with-ompi="$plain" --with-ompi-source="$source_tree"
printf 'major=4\nminor=0\nrelease=1\n' >"$source_tree/VERSION"
refuses "configure_refuses_a_source_of_another_version" 'source is Open MPI 4\.0\.1, but .* the same version' \
    configure --with-ompi="$plain" --with-ompi-source="$source_tree"
refuses "configure_refuses_a_source_that_is_none" 'not an Open MPI source tree' configure --with-ompi-source="$scratch"

says "configure_without_ompi_builds_the_core" 'pml/coop +no +--without-ompi' configure --without-ompi
refuses "configure_refuses_a_relative_ompi" 'with-ompi=here: give an absolute folder' configure --with-ompi=here
refuses "configure_refuses_a_relative_mca_dir" 'with-mca-dir=here: give an absolute folder' configure --with-mca-dir=here
says "configure_takes_open_mpis_component_folder" "component DSOs +$("$info" --parsable --path pkglibdir | cut -d: -f3)" \
    configure --with-mca-dir=ompi
refuses "configure_refuses_asan_with_tsan" 'enable-asan and --enable-tsan exclude each other' \
    configure --enable-asan --enable-tsan
printf '#!/bin/sh\nexec g++ "$@" -std=gnu++17\n' >"$scratch/oldcxx"
chmod +x "$scratch/oldcxx"
refuses "configure_refuses_a_compiler_without_cxx20" 'does not compile C\+\+20: gcc 11 or clang 14' \
    bash -c "$(declare -f configure); scratch=$scratch top=$top; mkdir -p $scratch/other; scratch=$scratch/other; configure CXX=$scratch/oldcxx"
exit $failed
