# SPDX-License-Identifier: BSD-3-Clause
# Builds the test programs: make -f build.mk SRC=this-folder OUT=build-folder [SAN=asan|tsan]
MPICXX ?= mpicxx
MPICC ?= mpicc
SAN_asan = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-sanitize=bool
SAN_tsan = -fsanitize=thread
# Optimising what a sanitizer adds takes longer than running it unoptimised.
LEVEL = $(if $(SAN),-O0,-O1)
CXXFLAGS = -std=c++17 $(LEVEL) -g1 -Wall -Wextra -Werror -pthread $(SAN_$(SAN)) -I$(SRC)/lib -I$(SRC)/../lib -MMD -MP
# Open MPI's C++ bindings are not tested here.
CPPFLAGS = -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX

topics := $(basename $(notdir $(wildcard $(SRC)/semantics/*.cc $(SRC)/observe/*.cc $(SRC)/coop/*.cc $(SRC)/coll/*.cc $(SRC)/rma/*.cc)))
programs := endless # with its own main()
topics := $(filter-out $(programs),$(topics))
vpath %.cc $(SRC)/semantics $(SRC)/observe $(SRC)/coop $(SRC)/coll $(SRC)/rma
storm := $(patsubst $(SRC)/storm/%.cc,$(OUT)/obj/storm/%.o,$(wildcard $(SRC)/storm/*.cc))
rma_storm := $(patsubst $(SRC)/rma_storm/%.cc,$(OUT)/obj/rma_storm/%.o,$(wildcard $(SRC)/rma_storm/*.cc))

# Programs that intercept functions of Open MPI, or call functions that only a transport calls.
inside := bad_packets device_memory transport_errors
internals := $(foreach folder,$(shell $(MPICC) --showme:incdirs),-I$(folder)/openmpi)

all: $(OUT)/leaver $(inside:%=$(OUT)/%) $(OUT)/other_architecture.so $(topics:%=$(OUT)/%) $(programs:%=$(OUT)/%) $(OUT)/storm $(OUT)/rma_storm $(OUT)/saboteur.so $(OUT)/no_memfd.so $(OUT)/slow.so $(OUT)/deny_copies

$(OUT)/obj/%.o: $(SRC)/%.cc $(SRC)/build.mk
	@mkdir -p $(@D)
	$(MPICXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

$(OUT)/obj/topics/%.o: %.cc $(SRC)/build.mk
	@mkdir -p $(@D)
	$(MPICXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

$(OUT)/saboteur.so: $(SRC)/lib/saboteur.c
	$(MPICC) -shared -fPIC -Wall -Wextra -Werror -o $@ $<

$(OUT)/no_memfd.so: $(SRC)/lib/no_memfd.c
	$(CC) -shared -fPIC -Wall -Wextra -Werror -o $@ $<

# Optimised, because its functions must end in a jump.
$(OUT)/slow.so: $(SRC)/lib/slow.c
	$(MPICC) -O2 -shared -fPIC -Wall -Wextra -Werror -o $@ $<

$(OUT)/deny_copies: $(SRC)/coop/deny_copies.c $(SRC)/../lib/deny.h
	$(CC) -O1 -Wall -Wextra -Werror -o $@ $<

$(inside:%=$(OUT)/%): $(OUT)/%: $(SRC)/coop/%.c
	$(MPICC) -O1 -Wall -Wextra -Werror -rdynamic $(internals) -o $@ $< -lopen-pal -ldl

$(OUT)/leaver: $(SRC)/coop/leaver.c
	$(MPICC) -O1 -Wall -Wextra -Werror $(SAN_$(SAN)) -o $@ $<

$(OUT)/other_architecture.so: $(SRC)/coop/other_architecture.c
	$(CC) -shared -fPIC -Wall -Wextra -Werror -o $@ $<

$(OUT)/storm: $(storm)
	$(MPICXX) $(CXXFLAGS) -o $@ $^

$(OUT)/rma_storm: $(rma_storm)
	$(MPICXX) $(CXXFLAGS) -o $@ $^

$(programs:%=$(OUT)/%): $(OUT)/%: $(OUT)/obj/topics/%.o
	$(MPICXX) $(CXXFLAGS) -o $@ $^

$(topics:%=$(OUT)/%): $(OUT)/%: $(OUT)/obj/topics/%.o $(OUT)/obj/lib/mpi_test.o
	$(MPICXX) $(CXXFLAGS) -o $@ $^

.PHONY: all
.SECONDARY:
-include $(wildcard $(OUT)/obj/*/*.d)
