// SPDX-License-Identifier: BSD-3-Clause
//
// A send convertor on the stack. Only the fields that opal_convertor_cleanup reads are set up before it is prepared:
// every short message would pay for the rest of the constructor.
#pragma once

#include "comm.h"
#include "ompi/mca/shim/pack.h"

namespace coop::pml {

class StackConvertor {
public:
    StackConvertor(const Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype) noexcept {
        it_.pStack = it_.static_stack;
        it_.stack_size = DT_STATIC_STACK_SIZE;
        it_.partial_length = 0;
        opal_convertor_copy_and_prepare_for_send(peer.proc->super.proc_convertor, &datatype->super, count, buf, 0,
                                                 &it_);
    }
    ~StackConvertor() { opal_convertor_cleanup(&it_); }
    StackConvertor(const StackConvertor&) = delete;
    StackConvertor& operator=(const StackConvertor&) = delete;

    opal_convertor_t& get() noexcept { return it_; }

private:
    opal_convertor_t it_;
};

[[gnu::noinline]] inline void pack(const Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype,
                                   void* to, std::size_t bytes) noexcept {
    StackConvertor convertor(peer, buf, count, datatype);
    pack_next(convertor.get(), static_cast<std::byte*>(to), bytes);
}

}  // namespace coop::pml
