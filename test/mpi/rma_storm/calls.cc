// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of MPI for each kind of operation.
#include "issuer.h"

namespace rma_storm {

void Issuer::start(Issued& issued) {
    const Operation& o = issued.operation;
    if (!run_.saboteur_.strikes(run_.round_, phase_, o)) return call(issued, o.at);
    switch (run_.saboteur_.kind()) {
    case Sabotage::kLose: break;
    case Sabotage::kMisplace: call(issued, Saboteur::another_place(run_.round_, o)); break;
    case Sabotage::kDouble:
        call(issued, o.at);
        wait(issued);
        call(issued, o.at);
        break;
    case Sabotage::kNone: call(issued, o.at);
    }
}

void Issuer::call(Issued& issued, std::size_t at) {
    switch (issued.operation.call) {
    case Call::kPut:
    case Call::kGet:
    case Call::kAccumulate:
    case Call::kGetAccumulate: return call_mpi(issued, at);
    case Call::kFetchAndOp:
    case Call::kCompareAndSwap: return call_single(issued, at);
    case Call::kUpdate: return update(issued, at);
    case Call::kStore:
    case Call::kLoad: return load_or_store(issued, at);
    }
}

void Issuer::call_mpi(Issued& issued, std::size_t at) {
    const Operation& o = issued.operation;
    const Shape shape(o.at_target);
    const int rank = o.target;
    const bool bottom = run_.options_.has(Feature::kBottom) && run_.options_.has(Feature::kDerived) && o.bytes() != 0;
    Buffer::Arguments from{nullptr, {type_of(o.at_target.element), 0, false}}, to = from;
    if (o.has_operand()) from = issued.origin.arguments(bottom && random_.one_in(12));
    if (o.has_result()) to = issued.result.arguments(bottom && random_.one_in(12));
    const MPI_Aint where = run_.window_.displacement(rank, at + shape.origin());
    Type there = shape.make_type(run_.window_.shift(rank, at + shape.origin()));
    const MPI_Op op = op_of(o.combine);
    const MPI_Win win = run_.win();
    MPI_Request* request = &issued.request;
    const Type &f = from.type, &t = to.type;
    switch (o.call) {
    case Call::kPut:
        if (o.request)
            must(MPI_Rput(from.address, f.count, f.type, rank, where, there.count, there.type, win, request),
                 "MPI_Rput");
        else must(MPI_Put(from.address, f.count, f.type, rank, where, there.count, there.type, win), "MPI_Put");
        break;
    case Call::kGet:
        if (o.request)
            must(MPI_Rget(to.address, t.count, t.type, rank, where, there.count, there.type, win, request), "MPI_Rget");
        else must(MPI_Get(to.address, t.count, t.type, rank, where, there.count, there.type, win), "MPI_Get");
        break;
    case Call::kAccumulate:
        if (o.request)
            must(MPI_Raccumulate(from.address, f.count, f.type, rank, where, there.count, there.type, op, win, request),
                 "MPI_Raccumulate");
        else
            must(MPI_Accumulate(from.address, f.count, f.type, rank, where, there.count, there.type, op, win),
                 "MPI_Accumulate");
        break;
    default:
        if (o.request)
            must(MPI_Rget_accumulate(from.address, f.count, f.type, to.address, t.count, t.type, rank, where,
                                     there.count, there.type, op, win, request),
                 "MPI_Rget_accumulate");
        else
            must(MPI_Get_accumulate(from.address, f.count, f.type, to.address, t.count, t.type, rank, where,
                                    there.count, there.type, op, win),
                 "MPI_Get_accumulate");
    }
    // Allowed while the operation goes on.
    from.type.free();
    to.type.free();
    there.free();
}

void Issuer::call_single(Issued& issued, std::size_t at) {
    const Operation& o = issued.operation;
    const MPI_Aint where = run_.window_.displacement(o.target, at);
    const MPI_Datatype type = type_of(o.at_target.element);
    const void* from = o.has_operand() ? issued.origin.memory() : nullptr;
    void* to = issued.result.memory();
    if (o.call == Call::kFetchAndOp) {
        must(MPI_Fetch_and_op(from, to, type, o.target, where, op_of(o.combine), run_.win()), "MPI_Fetch_and_op");
        return;
    }
    // The comparand stays where it is until the phase ends.
    const Bytes& comparand = run_.model_.expected(issued.index).comparand;
    must(MPI_Compare_and_swap(from, comparand.data(), to, type, o.target, where, run_.win()), "MPI_Compare_and_swap");
}

// Get, change and put, under an exclusive lock. The origin buffer gets what was there plus the bits of the operation.
void Issuer::update(Issued& issued, std::size_t at) {
    const Operation& o = issued.operation;
    const MPI_Aint where = run_.window_.displacement(o.target, at);
    const auto shift = run_.window_.shift(o.target, at);
    Type there = Shape(o.at_target).make_type(shift);
    const int count = static_cast<int>(o.at_target.elements);
    must(MPI_Get(issued.result.memory(), count, MPI_UINT64_T, o.target, where, there.count, there.type, run_.win()),
         "MPI_Get");
    must(run_.options_.has(Feature::kFlushLocal) && random_.one_in(2) ? MPI_Win_flush_local(o.target, run_.win())
                                                                      : MPI_Win_flush(o.target, run_.win()),
         "MPI_Win_flush");
    combine(o.at_target.element, Combine::kSum, issued.result.memory(), issued.origin.memory(), o.at_target.elements);
    must(MPI_Put(issued.origin.memory(), count, MPI_UINT64_T, o.target, where, there.count, there.type, run_.win()),
         "MPI_Put");
    there.free();
}

void Issuer::load_or_store(Issued& issued, std::size_t at) {
    const Operation& o = issued.operation;
    const Shape shape(o.at_target);
    unsigned char* there = run_.window_.memory(o.target, at);
    if (o.call == Call::kStore) return shape.scatter(issued.stream.data(), there);
    Bytes content(o.bytes());
    shape.gather(there, content.data());
    issued.result.shape().scatter(content.data(), issued.result.memory());
}

}  // namespace rma_storm
