// SPDX-License-Identifier: BSD-3-Clause
//
// Extended polling: takes a completion and reads it field by field. From a
// start_poll that finds a completion until end_poll the calling thread owns the queue.
#include <ctime>

#include "fabric/engine/completion.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/operations.h"

namespace coop::fabric {
namespace {

constexpr std::uint64_t kSupported = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

bool take(VerbsCq& cq) {
    if (cq.shared().ring == 0) return false;  // the process is about to end and has given back its objects
    if (!take_completion(cq.owner.subnet(), cq.index, cq.current)) return false;
    cq.wr_id = cq.current.wr_id;
    cq.status = static_cast<ibv_wc_status>(cq.current.status);
    return true;
}

int start_poll(ibv_cq_ex* polled, ibv_poll_cq_attr* attr) {
    VerbsCq& cq = to_cq(polled);
    if (attr->comp_mask != 0) return EINVAL;
    cq.owner.client.progress();
    cq.taking.lock();
    if (take(cq)) return 0;
    cq.taking.unlock();
    return ENOENT;
}

int next_poll(ibv_cq_ex* cq) { return take(to_cq(cq)) ? 0 : ENOENT; }
void end_poll(ibv_cq_ex* cq) { to_cq(cq).taking.unlock(); }

const Completion& current(ibv_cq_ex* cq) { return to_cq(cq).current; }

std::uint64_t wall_clock_ns(std::int64_t monotonic_ns) {
    timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return static_cast<std::uint64_t>(wall.tv_sec * 1'000'000'000ll + wall.tv_nsec - (now_ns() - monotonic_ns));
}

void set_readers(ibv_cq_ex& cq) {
    cq.start_poll = start_poll;
    cq.next_poll = next_poll;
    cq.end_poll = end_poll;
    cq.read_opcode = [](ibv_cq_ex* of) { return static_cast<ibv_wc_opcode>(current(of).opcode); };
    cq.read_vendor_err = [](ibv_cq_ex* of) { return current(of).vendor_error; };
    cq.read_byte_len = [](ibv_cq_ex* of) { return current(of).bytes; };
    cq.read_imm_data = [](ibv_cq_ex* of) -> __be32 { return current(of).imm; };
    cq.read_qp_num = [](ibv_cq_ex* of) { return current(of).qp_number; };
    cq.read_src_qp = [](ibv_cq_ex* of) { return current(of).source_qp; };
    cq.read_wc_flags = [](ibv_cq_ex* of) -> unsigned { return current(of).flags; };
    cq.read_slid = [](ibv_cq_ex* of) -> std::uint32_t { return current(of).slid; };
    cq.read_sl = [](ibv_cq_ex* of) { return current(of).sl; };
    cq.read_dlid_path_bits = [](ibv_cq_ex* of) { return current(of).dlid_path_bits; };
    cq.read_completion_ts = [](ibv_cq_ex* of) { return static_cast<std::uint64_t>(current(of).time_ns); };
    cq.read_completion_wallclock_ns = [](ibv_cq_ex* of) { return wall_clock_ns(current(of).time_ns); };
}

bool is_supported(const ibv_cq_init_attr_ex& attr) {
    if ((attr.wc_flags & ~kSupported) != 0 || (attr.comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0)
        return false;
    // IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN is not supported: an overflow is always reported.
    const std::uint32_t flags = (attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr.flags : 0;
    return (flags & ~std::uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) == 0;
}

}  // namespace

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
    if (!is_supported(*attr)) return refuse<ibv_cq_ex>(EOPNOTSUPP);
    VerbsCq* cq = make_cq(to_context(context), static_cast<int>(attr->cqe), attr->cq_context, attr->channel,
                          attr->comp_vector);
    if (cq != nullptr) set_readers(*cq);
    return cq;
}

}  // namespace coop::fabric
