/* SPDX-License-Identifier: BSD-3-Clause
 *
 * load_components FILE...: loads each component DSO the strict way (RTLD_NOW: every symbol must resolve) into a program
 * that has libmpi, and finds its descriptor, named after the file: mca_pml_coop.so has mca_pml_coop_component. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int load(const char* file) {
    const char* slash = strrchr(file, '/');
    const char* base = slash ? slash + 1 : file;
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%.*s_component", (int)strcspn(base, "."), base);

    void* dso = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!dso) {
        printf("FAIL: %s\n", dlerror());
        return 1;
    }
    const int found = dlsym(dso, symbol) != NULL;
    if (!found) printf("FAIL: %s has no symbol %s\n", file, symbol);
    dlclose(dso);
    return !found;
}

int main(int argc, char** argv) {
    /* A call, so that the linker keeps libmpi. */
    int version = 0, subversion = 0, failed = 0;
    MPI_Get_version(&version, &subversion);
    for (int i = 1; i < argc; i++) failed += load(argv[i]);
    printf("%d of %d components loaded (MPI %d.%d)\n", argc - 1 - failed, argc - 1, version, subversion);
    return failed != 0;
}
