# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Source packages from the Debian archive that the machine is installed from. Does not change the machine.

# debian_source PACKAGE FOLDER: downloads PACKAGE's source (its .dsc and archives) into FOLDER. PACKAGE may be name=version.
# Uses the machine's own package sources, with deb-src for deb, for this call only.
debian_source() {
    local package=$1 folder=$2 file apt=$2/.apt
    mkdir -p "$folder" "$apt/parts" "$apt/lists/partial" || return 1
    folder=$(cd "$folder" && pwd) apt=$folder/.apt
    for file in /etc/apt/sources.list.d/*.sources; do
        [ ! -f "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/$(basename "$file")"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -f "$file" ] || sed -n 's/^deb\(-src\)\{0,1\}[[:space:]]/deb-src /p' "$file" >"$apt/parts/$(basename "$file" .list).list"
    done
    local options=(-q -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/parts"
        -o "Dir::State::Lists=$apt/lists" -o APT::Sandbox::User=root -o Acquire::Retries=2)
    if [ -z "$(find "$apt/lists" -name '*Sources*' -mmin -600 -print -quit)" ]; then
        apt-get "${options[@]}" update || return 1
    fi
    (cd "$folder" && apt-get "${options[@]}" source --download-only "$package")
}
