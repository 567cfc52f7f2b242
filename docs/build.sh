#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the documentation with Sphinx: docs/build.sh BUILDER OUT [REFERENCE]
#
# BUILDER    html or man
# OUT        folder for the results (OUT/html, OUT/man); scratch files go there too
# REFERENCE  the program compiled from generate/*.cc; compiled here if not given
#
# From the environment: SPHINX_BUILD (sphinx-build), SPHINX_OPTIONS (-W: a warning is an error), CXX (c++).
set -eu
docs=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$docs")
builder=${1:?html or man}
mkdir -p "${2:?a folder}"
out=$(cd "$2" && pwd)
reference=${3:-}

if [ -z "$reference" ]; then
    reference=$out/reference
    # shellcheck disable=SC2086 # CXX may hold options
    ${CXX:-c++} -std=gnu++20 -O0 -I"$top" -I"$top/opal/mca/common" -o "$reference" "$docs"/generate/*.cc \
        "$top"/ompi/mca/coll/rdmaag/params.cc "$top"/ompi/mca/osc/multirail/params.cc "$top"/ompi/mca/pml/coop/params.cc \
        "$top"/opal/mca/btl/coopib/params.cc \
        "$top"/opal/mca/common/coop/*/*.cc "$top"/opal/mca/common/coop/rndv/rows/*.cc
fi

# Sphinx reads one tree: a copy of docs/ with the generated parts in it.
rm -rf "$out/source"
mkdir -p "$out/source"
cp -R "$docs/." "$out/source"
chmod -R u+w "$out/source"
mkdir -p "$out/source/generated"
for part in parameters parameters-short coopib-parameters coopib-parameters-short coopib-variables \
    rdmaag-parameters rdmaag-parameters-short rdmaag-variables rdmaag-variables-short rdmaag-algorithms rdmaag-trials \
    multirail-parameters multirail-parameters-short multirail-variables multirail-variables-short multirail-words multirail-reasons rma-epochs faults variables \
    packets decisions; do
    "$reference" "$part" >"$out/source/generated/$part.inc"
done
cp "$top/ompi/mca/coll/rdmaag/help-mpi-coll-rdmaag.txt" "$top/ompi/mca/osc/multirail/help-mpi-osc-multirail.txt" \
    "$top/ompi/mca/pml/coop/help-mpi-pml-coop.txt" \
    "$top/opal/mca/btl/coopib/help-mpi-btl-coopib.txt" "$top/VERSION" "$top"/share/fabric/*.* "$out/source/generated/"

# shellcheck disable=SC2086 # a list of options
exec "${SPHINX_BUILD:-sphinx-build}" -q ${SPHINX_OPTIONS--W --keep-going} -b "$builder" -d "$out/doctrees-$builder" \
    "$out/source" "$out/$builder"
