#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# coop_env_test.sh PREFIX: the output of an installation's coop-env makes Open MPI find the components, in both kinds of
# shell, and can be evaluated twice.
# shellcheck disable=SC2016,SC2317 # single quotes: the text is for another shell
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/build/lib.sh
. "$top/test/build/lib.sh"
coop_env=$1/bin/coop-env
mcadir=$1/lib/openmpi-coop

# Runs a command without any of our variables, except $coop_env, the program, and $mcadir, the folder of the components.
clean() { env -u OMPI_MCA_mca_base_component_path -u OMPI_MCA_pml -u MANPATH coop_env="$coop_env" mcadir="$mcadir" "$@"; }

says "coop_env_makes_ompi_info_see_pml_coop" 'pml: coop' clean sh -c 'eval "$($coop_env)"; ompi_info'
says "coop_env_makes_ompi_info_see_coll_rdmaag" 'coll: rdmaag' clean sh -c 'eval "$($coop_env)"; ompi_info'
says "coop_env_makes_ompi_info_see_osc_multirail" 'osc: multirail' clean sh -c 'eval "$($coop_env)"; ompi_info'
says "coop_env_keeps_the_system_components" 'pml: ob1' clean sh -c 'eval "$($coop_env)"; ompi_info'
says "coop_env_keeps_the_users_components" ':USER_DEFAULT$' \
    clean sh -c 'eval "$($coop_env)"; echo $OMPI_MCA_mca_base_component_path'
says "coop_env_keeps_a_path_that_is_set" "^/site/mca:$mcadir$" \
    clean sh -c 'OMPI_MCA_mca_base_component_path=/site/mca; export OMPI_MCA_mca_base_component_path
                 eval "$($coop_env)"; echo $OMPI_MCA_mca_base_component_path'
says "coop_env_twice_is_once" '^same$' \
    clean sh -c 'eval "$($coop_env)"; env | sort >"$0.1"; eval "$($coop_env)"; env | sort | cmp - "$0.1" && echo same' "$scratch/env"
says "coop_env_keeps_the_system_manual" ':$' clean sh -c 'eval "$($coop_env)"; echo "$MANPATH"'
says "coop_env_puts_the_programs_on_path" '^ompi-coop' clean sh -c 'eval "$($coop_env)"; coop-env --version'
says "coop_env_does_not_choose" '^ob1 or nothing$' \
    clean sh -c 'eval "$($coop_env)"; [ "${OMPI_MCA_pml:-}" != coop ] && echo ob1 or nothing'
says "coop_env_select_chooses" '^coop$' clean sh -c 'eval "$($coop_env --select)"; echo $OMPI_MCA_pml'
says "coop_env_csh_sees_pml_coop" 'pml: coop' clean csh -fc 'eval `$coop_env --csh`; ompi_info'
says "coop_env_csh_select_chooses" '^coop$' clean csh -fc 'eval `$coop_env --csh --select`; echo $OMPI_MCA_pml'
says "coop_env_quotes_for_sh" '^/a '\''b"\$c!:' \
    clean sh -c 'OMPI_MCA_mca_base_component_path="/a '\''b\"\$c!"; export OMPI_MCA_mca_base_component_path
                 eval "$($coop_env)"; echo "$OMPI_MCA_mca_base_component_path"'
says "coop_env_quotes_for_csh" '^/a '\''b"\$c!:' \
    clean env OMPI_MCA_mca_base_component_path="/a 'b\"\$c!" csh -fc 'eval "`$coop_env --csh`"; printenv OMPI_MCA_mca_base_component_path'
says "coop_env_help" '^Usage:' "$coop_env" --help
refuses "coop_env_refuses_the_unknown" "unknown argument '--selct'" "$coop_env" --selct

# The same without coop-env.
sed "s/^#\(mca_base_component_path\)/\1/; s/^#\(pml = \)/\1/" "$1/share/openmpi-coop/openmpi-mca-params.conf" >"$scratch/params.conf"
says "sample_parameter_file_works" 'parameter "pml" \(current value: "coop", data source: file' \
    clean env OMPI_MCA_mca_base_param_files="$scratch/params.conf" ompi_info --param pml all --level 9
says "sample_parameter_file_makes_pml_coop_found" 'pml: coop' \
    clean env OMPI_MCA_mca_base_param_files="$scratch/params.conf" ompi_info
says "modulefile_makes_pml_coop_found" 'pml: coop' clean bash -c '
    . /usr/share/modules/init/bash; module use "$0/share/modulefiles"; module load ompi-coop; ompi_info' "$1"
exit $failed
