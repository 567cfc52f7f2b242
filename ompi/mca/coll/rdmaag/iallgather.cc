// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Iallgather and MPI_Iallgatherv.
//
// Threading: a request completes in the thread that continues the call. The handler leaves the end of some calls to the
// application, because it would call back into other parts of Open MPI: those with datatypes of the program, which are
// released, and those with a callback.
#include <algorithm>
#include <new>

#include "buffers.h"
#include "coop/base/tsan.h"
#include "diagnose.h"
#include "ompi/mca/shim/complete.h"
#include "ompi/mca/shim/inside.h"
#include "module.h"
#include "outstanding.h"

namespace coop::ag {
struct Nonblocking;
}

// The functions that return a request take it for an ompi_coll_base_nbc_request_t.
struct mca_coll_rdmaag_request_t {
    ompi_coll_base_nbc_request_t super;
    coop::ag::Nonblocking* call;  // owned
};
OBJ_CLASS_DECLARATION(mca_coll_rdmaag_request_t);

namespace coop::ag {

// The lengths and places of blocks of unequal length; empty: they have the same length. MPI forbids the program to change
// its arrays while the call is in progress, but some programs do (mpi4py 3.1 frees them), and no other component minds.
struct Vectors {
    std::unique_ptr<std::uint64_t[]> ends;
    std::unique_ptr<int[]> counts, displs;
};

struct Nonblocking : Job {
    Nonblocking(Group& of, ompi_request_t& its_request, Vectors of_blocks, const coll::Way& by, std::uint32_t rank,
                const void* sbuf, int scount, ompi_datatype_t* sdtype, const Received& received,
                const coll::Blocks& where) noexcept
        : Job(nullptr, where, *by.algorithm, by.short_part), group(of), request(its_request),
          vectors(std::move(of_blocks)), buffers(rank, sbuf, scount, sdtype, received, where),
          has_types(!ompi_datatype_is_predefined(received.type) ||
                    (sbuf != MPI_IN_PLACE && !ompi_datatype_is_predefined(sdtype))) {
        memory = buffers.memory();
        in_packets = by.packets;
    }

    Group& group;
    ompi_request_t& request;
    Vectors vectors;
    Buffers buffers;
    bool has_types;  // datatypes of the program
};

namespace {

// The request and the call may be gone after this.
void complete(Nonblocking& call) noexcept {
    ompi_request_t& request = call.request;
    request.req_status.MPI_ERROR = call.buffers.finish();
    call.group.end_one();
    complete_request(request);
}

bool is_handler_here() noexcept { return has_interrupts() && handler().get()->is_running_here(); }

// Called again by the application if the handler could not end the call.
void on_done(Job& job) noexcept {
    auto& call = static_cast<Nonblocking&>(job);
    if (call.urgent) handler().under_way(-1);
    call.urgent = false;
    if (is_handler_here() && (call.has_types || call.request.req_complete_cb)) finish_when_polling(job);
    else complete(call);
}

int free_request(ompi_request_t** freed) {
    ompi_request_t* const request = *freed;
    if (!REQUEST_COMPLETE(request)) return MPI_ERR_REQUEST;
    tsan_acquire(request);  // the callers, such as MPI_Wait, are not instrumented
    ompi_communicator_t* comm = request->req_mpi_object.comm;
    delete reinterpret_cast<mca_coll_rdmaag_request_t*>(request)->call;
    OMPI_REQUEST_FINI(request);
    auto* object = reinterpret_cast<mca_coll_rdmaag_request_t*>(request);
    OBJ_RELEASE(object);
    OBJ_RELEASE(comm);  // perhaps the last one
    *freed = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

int cannot_cancel(ompi_request_t*, int) { return MPI_ERR_REQUEST; }

mca_coll_rdmaag_request_t& make_request(ompi_communicator_t& comm) noexcept {
    auto* const request = OBJ_NEW(mca_coll_rdmaag_request_t);
    // The other processes may be in the call already, so it cannot be left to another component.
    if (!request) out_of_memory(sizeof *request);
    ompi_request_t& base = request->super.super;
    OMPI_REQUEST_INIT(&base, false);
    base.req_type = OMPI_REQUEST_COLL;
    base.req_state = OMPI_REQUEST_ACTIVE;
    base.req_status = ompi_status_empty;
    base.req_free = free_request;
    base.req_cancel = cannot_cancel;
    base.req_mpi_object.comm = &comm;
    OBJ_RETAIN(&comm);  // until the request is freed
    return *request;
}

// `vectors`: see Nonblocking; the others as in MPI_Iallgather.
int start(State& state, coll::Operation operation, const void* sbuf, int scount, ompi_datatype_t* sdtype,
          const Received& received, const coll::Blocks& blocks, Vectors vectors, ompi_request_t** request) noexcept {
    const Inside inside;
    ompi_communicator_t& comm = *state.comm;
    Group& group = *state.group;
    mca_coll_rdmaag_request_t& made = make_request(comm);
    *request = &made.super.super;
    const coll::Situation situation{.processes = blocks.processes(),
                                    .bytes = blocks.bytes(),
                                    .wish = static_cast<coll::Wish>(process.config.algorithm),
                                    .ring_min = static_cast<std::uint64_t>(process.config.ring_min)};
    const coll::Plan plan = state.tuner->plan_without_trial(operation, blocks.mean_bytes(), situation);
    process.count({*plan.way.algorithm, plan.reason}, blocks.mean_bytes());
    made.call = new (std::nothrow)
        Nonblocking(group, **request, std::move(vectors), plan.way, static_cast<std::uint32_t>(ompi_comm_rank(&comm)),
                    sbuf, scount, sdtype, received, blocks);
    if (!made.call) out_of_memory(sizeof *made.call);
    made.call->on_done = on_done;
    made.call->urgent = has_interrupts();
    if (made.call->urgent) handler().under_way(1);
    group.start(*made.call);
    return OMPI_SUCCESS;
}

}  // namespace
}  // namespace coop::ag

using namespace coop;
using namespace coop::ag;

OBJ_CLASS_INSTANCE(mca_coll_rdmaag_request_t, ompi_coll_base_nbc_request_t, nullptr, nullptr);

namespace coop::ag {

void prepare_requests() noexcept { opal_class_initialize(OBJ_CLASS(mca_coll_rdmaag_request_t)); }

}  // namespace coop::ag

extern "C" int mca_coll_rdmaag_iallgather(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf, int rcount,
                                          ompi_datatype_t* rdtype, ompi_communicator_t* comm, ompi_request_t** request,
                                          mca_coll_base_module_t* module) {
    State& state = state_of(module);
    const Received received{static_cast<std::byte*>(rbuf), rdtype, rcount, nullptr, nullptr};
    const coll::Blocks blocks(static_cast<std::uint32_t>(ompi_comm_size(comm)), received.block(0).bytes());
    if (prepared_group(state, blocks.bytes()))
        return start(state, coll::Operation::kAllgather, sbuf, scount, sdtype, received, blocks, {}, request);
    return state.iallgather(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, request, state.iallgather_module);
}

extern "C" int mca_coll_rdmaag_iallgatherv(const void* sbuf, int scount, ompi_datatype_t* sdtype, void* rbuf,
                                           const int* rcounts, const int* displs, ompi_datatype_t* rdtype,
                                           ompi_communicator_t* comm, ompi_request_t** request,
                                           mca_coll_base_module_t* module) {
    State& state = state_of(module);
    const auto processes = static_cast<std::uint32_t>(ompi_comm_size(comm));
    Vectors vectors{std::unique_ptr<std::uint64_t[]>(new (std::nothrow) std::uint64_t[processes]),
                    std::unique_ptr<int[]>(new (std::nothrow) int[processes]),
                    std::unique_ptr<int[]>(new (std::nothrow) int[processes])};
    if (!vectors.ends || !vectors.counts || !vectors.displs)
        out_of_memory(processes * (sizeof(std::uint64_t) + 2 * sizeof(int)));
    std::copy_n(rcounts, processes, vectors.counts.get());
    std::copy_n(displs, processes, vectors.displs.get());
    const Received received{static_cast<std::byte*>(rbuf), rdtype, 0, vectors.counts.get(), vectors.displs.get()};
    std::uint64_t end = 0;
    for (std::uint32_t rank = 0; rank < processes; ++rank) vectors.ends[rank] = end += received.block(rank).bytes();
    const coll::Blocks blocks{std::span<const std::uint64_t>(vectors.ends.get(), processes)};
    if (prepared_group(state, end))
        return start(state, coll::Operation::kAllgatherv, sbuf, scount, sdtype, received, blocks, std::move(vectors),
                     request);
    return state.iallgatherv(sbuf, scount, sdtype, rbuf, rcounts, displs, rdtype, comm, request,
                             state.iallgatherv_module);
}
