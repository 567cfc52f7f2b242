// SPDX-License-Identifier: BSD-3-Clause
// Memory regions: the access that a key gives, and to whom (IBTA 10.6 memory management, 11.2.8 memory verbs, 9.9 error
// behaviour).
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "end.h"

using namespace verbstest;

namespace {

constexpr std::size_t kPage = 4096;

// Whole pages, for cases that Memory does not cover.
struct Pages {
    std::size_t bytes;
    unsigned char* at;
    explicit Pages(std::size_t count, int protection = PROT_READ | PROT_WRITE)
        : bytes(count * kPage),
          at(static_cast<unsigned char*>(mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        CHECK(at != MAP_FAILED);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() { munmap(at, bytes); }
};

ibv_mr* try_register(ibv_pd* pd, void* at, std::size_t bytes, int access) {
    return ibv_reg_mr(pd, at, bytes, static_cast<unsigned>(access));
}

// The request must fail with this status, and the requester's queue pair must then be in Error (IBTA 9.9.2.4, 9.9.3.1).
void expect_refused(Pair& pair, const Wr& wr, ibv_wc_status status) {
    pair.a.qp.post(wr);
    pair.a.scq.expect(wr.id, status);
    pair.a.qp.wait_state(IBV_QPS_ERR);
}

void expect_refused_remotely(Pair& pair, const Wr& wr) {
    expect_refused(pair, wr, IBV_WC_REM_ACCESS_ERR);
    pair.b->expect_event(IBV_EVENT_QP_ACCESS_ERR);
    pair.b->wait_state(IBV_QPS_ERR);
}

Pair::Options memory_of_b(int access) {
    Pair::Options options;
    options.b.access = access;
    return options;
}

}  // namespace

// --- registration ---------------------------------------------------------------------------------------------------

CASE(region_says_what_was_registered) {
    const Context context;
    const Pd pd(context);
    Pages pages(2);
    ibv_mr* mr = try_register(pd, pages.at + 100, 5000, kAllAccess);
    CHECK(mr != nullptr);
    CHECK(mr->context == context);
    CHECK(mr->pd == pd);
    CHECK(mr->addr == pages.at + 100);
    CHECK_EQ(mr->length, 5000);
    ibv_mr* again = try_register(pd, pages.at + 100, 5000, IBV_ACCESS_LOCAL_WRITE);
    CHECK(again != nullptr);
    CHECK(again->lkey != mr->lkey);
    CHECK(again->rkey != mr->rkey);
    CHECK_OK(ibv_dereg_mr(again));
    CHECK_OK(ibv_dereg_mr(mr));
}

// IBTA 10.6.3.1: remote write or atomic access requires local write access.
CASE(remote_write_without_local_write_is_refused) {
    const Context context;
    const Pd pd(context);
    Pages pages(1);
    CHECK_NULL(try_register(pd, pages.at, kPage, IBV_ACCESS_REMOTE_WRITE), EINVAL);
    CHECK_NULL(try_register(pd, pages.at, kPage, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
    CHECK_NULL(try_register(pd, pages.at, kPage, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ), EINVAL);
    for (int access : {0, int{IBV_ACCESS_REMOTE_READ}, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE}) {
        ibv_mr* mr = try_register(pd, pages.at, kPage, access);
        CHECK(mr != nullptr);
        CHECK_OK(ibv_dereg_mr(mr));
    }
}

CASE(unmapped_range_is_refused_with_efault) {
    const Context context;
    const Pd pd(context);
    Pages pages(4);
    CHECK_EQ(munmap(pages.at + kPage, kPage), 0);
    CHECK_NULL(try_register(pd, pages.at + kPage, kPage, kAllAccess), EFAULT);
    CHECK_NULL(try_register(pd, pages.at, 4 * kPage, kAllAccess), EFAULT);  // a hole
    CHECK_NULL(try_register(pd, pages.at + 1, kPage, kAllAccess), EFAULT);  // its last byte is in the hole
    CHECK_NULL(try_register(pd, nullptr, kPage, kAllAccess), EFAULT);
    ibv_mr* mr = try_register(pd, pages.at, kPage, kAllAccess);  // mapped memory can still be registered
    CHECK(mr != nullptr);
    CHECK_OK(ibv_dereg_mr(mr));
}

// Linux pins pages for writing if local write is requested: a read-only mapping can be registered only for reading.
CASE(read_only_mapping_allows_reading_only) {
    const Context context;
    const Pd pd(context);
    Pages pages(1, PROT_READ);
    CHECK_NULL(try_register(pd, pages.at, kPage, IBV_ACCESS_LOCAL_WRITE), EFAULT);
    ibv_mr* readable = try_register(pd, pages.at, kPage, IBV_ACCESS_REMOTE_READ);
    CHECK(readable != nullptr);
    CHECK_OK(ibv_dereg_mr(readable));
    Pages none(1, PROT_NONE);
    CHECK_NULL(try_register(pd, none.at, kPage, IBV_ACCESS_REMOTE_READ), EFAULT);
}

CASE(range_that_wraps_around_is_refused) {
    const Context context;
    const Pd pd(context);
    Pages pages(1);
    errno = 0;
    CHECK(try_register(pd, pages.at, ~std::size_t{0} - kPage, kAllAccess) == nullptr);
    CHECK(errno == EINVAL || errno == EFAULT || errno == ENOMEM);
}

// Linux refuses a registration of no pages and accepts length 0 inside a page; providers differ. In any case, such a
// region must not permit reading or writing.
CASE(region_of_length_0_gives_access_to_nothing) {
    Pair pair;
    Pages pages(1);
    ibv_mr* mr = try_register(pair.a.pd, pages.at, 0, kAllAccess);
    if (mr == nullptr) {
        CHECK_EQ(errno, EINVAL);
        return;
    }
    const ibv_sge one_byte{reinterpret_cast<std::uint64_t>(pages.at), 1, mr->lkey};
    expect_refused(pair, write(1, one_byte, pair.at_b.remote()), IBV_WC_LOC_PROT_ERR);
    CHECK_OK(ibv_dereg_mr(mr));
}

CASE(domain_with_regions_cannot_be_deallocated) {
    const Context context;
    ibv_pd* pd = ibv_alloc_pd(context);
    CHECK(pd != nullptr);
    Pages pages(1);
    ibv_mr* mr = try_register(pd, pages.at, kPage, kAllAccess);
    CHECK(mr != nullptr);
    CHECK_ERROR(ibv_dealloc_pd(pd), EBUSY);  // IBTA 11.2.1.8
    CHECK_OK(ibv_dereg_mr(mr));
    CHECK_OK(ibv_dealloc_pd(pd));
}

// --- RLIMIT_MEMLOCK -------------------------------------------------------------------------------------------------

namespace {

void drop_ipc_lock() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    CHECK_EQ(syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    CHECK_EQ(syscall(SYS_capset, &header, data), 0);
}

void limit_locked_memory(std::size_t bytes) {
    const rlimit limit{bytes, bytes};
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

bool had_ipc_lock() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    CHECK_EQ(syscall(SYS_capget, &header, data), 0);
    return (data[0].effective & (1u << CAP_IPC_LOCK)) != 0;
}

ROLE(registers_up_to_the_limit) {
    limit_locked_memory(256 << 10);
    drop_ipc_lock();
    const Context context;
    const Pd pd(context);
    Pages pages(256);  // 1 MiB
    CHECK_NULL(try_register(pd, pages.at, pages.bytes, kAllAccess), ENOMEM);
    for (int round = 0; round < 3; ++round) {  // deregistration releases it
        ibv_mr* some = try_register(pd, pages.at, 160 << 10, kAllAccess);
        CHECK(some != nullptr);
        CHECK_NULL(try_register(pd, pages.at + (512 << 10), 160 << 10, kAllAccess), ENOMEM);
        CHECK_OK(ibv_dereg_mr(some));
    }
    return 0;
}

ROLE(registers_beyond_the_limit) {
    limit_locked_memory(64 << 10);
    const Context context;
    const Pd pd(context);
    Pages pages(256);
    ibv_mr* mr = try_register(pd, pages.at, pages.bytes, kAllAccess);
    CHECK(mr != nullptr);
    CHECK_OK(ibv_dereg_mr(mr));
    return 0;
}

}  // namespace

CASE(locked_memory_is_limited_without_cap_ipc_lock) {
    Process process("registers_up_to_the_limit", "h0");
    CHECK_EQ(process.finish(), 0);
}

CASE(cap_ipc_lock_lifts_the_limit) {
    if (!had_ipc_lock()) skip("no CAP_IPC_LOCK");
    Process process("registers_beyond_the_limit", "h0");
    CHECK_EQ(process.finish(), 0);
}

// --- bounds ---------------------------------------------------------------------------------------------------------

CASE(remote_access_reaches_to_the_last_byte) {
    Pair pair;
    pair.a.memory.fill(1, 0, 100);
    const std::size_t end = pair.at_b.bytes;
    pair.a.qp.post(write(1, pair.a.memory.sge(0, 100), pair.at_b.remote(end - 100)));
    pair.a.scq.expect(1);
    pair.b->check(1, end - 100, 100);
    pair.b->check_untouched(0, end - 100);
    pair.a.qp.post(read(2, pair.a.memory.sge(200, 100), pair.at_b.remote(end - 100)));
    pair.a.scq.expect(2);
    pair.a.memory.check(1, 200, 100);
    pair.a.memory.check_untouched(300);
}

CASE(write_one_byte_beyond_the_region_is_refused) {
    Pair pair;
    pair.a.memory.fill(1);
    expect_refused_remotely(pair, write(1, pair.a.memory.sge(0, 100), pair.at_b.remote(pair.at_b.bytes - 99)));
    pair.b->check_untouched(0, pair.at_b.bytes);  // not even the valid part: R_Key is validated first (IBTA 9.7.4.1.5)
}

CASE(write_one_byte_before_the_region_is_refused) {
    Pair pair;
    pair.a.memory.fill(1);
    expect_refused_remotely(pair,
                            write(1, pair.a.memory.sge(0, 100), {pair.at_b.memory.address - 1, pair.at_b.memory.rkey}));
    pair.b->check_untouched(0, pair.at_b.bytes);
}

CASE(read_one_byte_beyond_the_region_is_refused) {
    Pair pair;
    expect_refused_remotely(pair, read(1, pair.a.memory.sge(0, 100), pair.at_b.remote(pair.at_b.bytes - 99)));
    pair.a.memory.check_untouched();
}

CASE(remote_range_that_wraps_around_is_refused) {
    Pair pair;
    pair.a.memory.fill(1);
    expect_refused_remotely(pair, write(1, pair.a.memory.sge(0, 100), {~std::uint64_t{0} - 49, pair.at_b.memory.rkey}));
}

CASE(source_one_byte_beyond_the_region_is_refused) {
    Pair pair;
    const std::size_t end = pair.a.memory.size();
    ibv_sge list = pair.a.memory.sge(end - 99, 100);
    expect_refused(pair, write(1, list, pair.at_b.remote()), IBV_WC_LOC_PROT_ERR);
    pair.b->check_untouched(0, pair.at_b.bytes);
}

// IBTA 9.7.4.1.5: the R_Key of an RDMA request of length 0 is not validated; neither is an empty local list.
CASE(write_and_read_of_length_0_need_no_valid_key) {
    Pair pair;
    Wr nothing = write(1, {}, {0xdead0000, 0x12345678});
    nothing.list.clear();
    pair.a.qp.post(nothing);
    pair.a.scq.expect(1);
    nothing.opcode = IBV_WR_RDMA_READ;
    nothing.id = 2;
    pair.a.qp.post(nothing);
    pair.a.scq.expect(2);
    pair.b->check_untouched(0, pair.at_b.bytes);
    pair.exchange(3);
}

// --- access ---------------------------------------------------------------------------------------------------------

CASE(write_to_region_without_remote_write_is_refused) {
    Pair pair(memory_of_b(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
    pair.a.memory.fill(1);
    expect_refused_remotely(pair, write(1, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.b->check_untouched(0, pair.at_b.bytes);
}

CASE(read_of_region_without_remote_read_is_refused) {
    Pair pair(memory_of_b(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
    expect_refused_remotely(pair, read(1, pair.a.memory.sge(0, 64), pair.at_b.remote()));
    pair.a.memory.check_untouched();
}

CASE(atomic_on_region_without_remote_atomic_is_refused) {
    Pair pair(memory_of_b(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
    if (!has_atomics(pair.a.context)) skip("no atomics");
    expect_refused_remotely(pair, fetch_add(1, pair.a.memory.sge(0, 8), pair.at_b.remote(), 1));
    pair.b->check_untouched(0, pair.at_b.bytes);
}

CASE(read_into_region_without_local_write_fails_locally) {
    Pair::Options options;
    options.a.access = IBV_ACCESS_REMOTE_READ;
    Pair pair(options);
    pair.b->fill(7, 0, 64);
    expect_refused(pair, read(1, pair.a.memory.sge(0, 64), pair.at_b.remote()), IBV_WC_LOC_PROT_ERR);
    pair.a.memory.check_untouched();
}

// IBTA 11.6.2: the receive fails with Local Protection Error, the send with Remote Operational Error.
CASE(receive_into_region_without_local_write_fails_on_both_sides) {
    Pair pair(memory_of_b(IBV_ACCESS_REMOTE_READ));
    pair.a.memory.fill(1);
    pair.b->receive(9, 0, 64);
    pair.a.qp.post(send(1, pair.a.memory.sge(0, 64)));
    pair.a.scq.expect(1, IBV_WC_REM_OP_ERR);
    pair.b->expect_receive(9, IBV_WC_LOC_PROT_ERR);
    pair.b->check_untouched(0, pair.at_b.bytes);
    pair.b->wait_state(IBV_QPS_ERR);
}

CASE(region_without_any_access_may_be_sent_from) {
    Pair::Options options;
    options.a.access = 0;
    Pair pair(options);
    pair.exchange(5);
}

// --- keys -----------------------------------------------------------------------------------------------------------

CASE(unknown_local_key_is_refused) {
    Pair pair;
    ibv_sge list = pair.a.memory.sge(0, 64);
    list.lkey ^= 0x5a5a5a;
    expect_refused(pair, write(1, list, pair.at_b.remote()), IBV_WC_LOC_PROT_ERR);
}

CASE(unknown_remote_key_is_refused) {
    Pair pair;
    Remote remote = pair.at_b.remote();
    remote.rkey ^= 0x5a5a5a;
    expect_refused_remotely(pair, write(1, pair.a.memory.sge(0, 64), remote));
}

CASE(local_key_of_another_domain_is_refused) {
    Pair pair;
    const Pd other(pair.a.context);
    const Memory foreign(other, 4096);
    expect_refused(pair, write(1, foreign.sge(0, 64), pair.at_b.remote()), IBV_WC_LOC_PROT_ERR);
}

// IBTA 10.2.3: the region must belong to the queue pair's protection domain, on the responder too.
CASE(remote_key_of_another_domain_is_refused) {
    if (far()) skip("needs both sides here");
    Pair pair;
    const Context context(-1);
    const Pd other(context);
    const Memory foreign(other, 4096);
    expect_refused_remotely(pair, write(1, pair.a.memory.sge(0, 64), foreign.remote()));
    foreign.check_untouched();
}

CASE(deregistered_local_key_is_refused) {
    Pair pair;
    Memory gone(pair.a.pd, 4096);
    const ibv_sge list = gone.sge(0, 64);
    pair.a.qp.post(write(1, list, pair.at_b.remote()));
    pair.a.scq.expect(1);
    gone.deregister();
    expect_refused(pair, write(2, list, pair.at_b.remote(4096)), IBV_WC_LOC_PROT_ERR);
    pair.b->check_untouched(4096, 4096);
}

CASE(deregistered_remote_key_is_refused) {
    Two two;
    Node &a = two.a, &b = two.b;
    Memory gone(b.pd, 4096);
    const Remote remote = gone.remote();
    a.qp.post(write(1, a.memory.sge(0, 64), remote));
    a.scq.expect(1);
    gone.wipe();
    gone.deregister();
    a.qp.post(write(2, a.memory.sge(0, 64), remote));
    a.scq.expect(2, IBV_WC_REM_ACCESS_ERR);
    gone.check_untouched();
}

CASE(key_is_not_given_out_again_at_once) {
    const Context context;
    const Pd pd(context);
    Pages pages(1);
    ibv_mr* mr = try_register(pd, pages.at, kPage, kAllAccess);
    CHECK(mr != nullptr);
    const std::uint32_t rkey = mr->rkey;
    CHECK_OK(ibv_dereg_mr(mr));
    mr = try_register(pd, pages.at, kPage, kAllAccess);
    CHECK(mr != nullptr);
    CHECK(mr->rkey != rkey);  // otherwise a late request would find the wrong region (IBTA 10.6.3.3 on R_Key reuse)
    CHECK_OK(ibv_dereg_mr(mr));
}

CASE(regions_over_the_same_bytes_have_rights_of_their_own) {
    Two two;
    Node &a = two.a, &b = two.b;
    ibv_mr* readable = try_register(b.pd, b.memory.data(), 4096, IBV_ACCESS_REMOTE_READ);
    CHECK(readable != nullptr);
    b.memory.fill(3, 0, 64);
    a.qp.post(read(1, a.memory.sge(0, 64), {b.memory.address(), readable->rkey}));
    a.scq.expect(1);
    a.memory.check(3, 0, 64);
    a.qp.post(write(2, a.memory.sge(0, 64), b.memory.remote(64)));
    a.scq.expect(2);
    a.qp.post(write(3, a.memory.sge(0, 64), {b.memory.address(128), readable->rkey}));
    a.scq.expect(3, IBV_WC_REM_ACCESS_ERR);
    b.memory.check_untouched(128);
    CHECK_OK(ibv_dereg_mr(readable));
}

CASE(region_with_another_virtual_address_is_reached_by_it) {
    Two two;
    Node &a = two.a, &b = two.b;
    Pages pages(1);
    constexpr std::uint64_t kIova = 0x10000;
    ibv_mr* mr = ibv_reg_mr_iova(b.pd, pages.at, kPage, kIova, static_cast<unsigned>(kAllAccess));
    CHECK(mr != nullptr);
    a.memory.fill(4, 0, 128);
    a.qp.post(write(1, a.memory.sge(0, 128), {kIova + 256, mr->rkey}));
    a.scq.expect(1);
    CHECK_EQ(std::memcmp(pages.at + 256, a.memory.data(), 128), 0);
    CHECK_EQ(pages.at[255], 0);
    CHECK_EQ(pages.at[256 + 128], 0);
    b.qp.receive(2, ibv_sge{kIova + 1024, 128, mr->lkey});
    a.qp.post(send(2, a.memory.sge(0, 128)));
    b.rcq.expect(2);
    CHECK_EQ(std::memcmp(pages.at + 1024, a.memory.data(), 128), 0);
    a.scq.expect(2);
    a.qp.post(write(3, a.memory.sge(0, 128), {reinterpret_cast<std::uint64_t>(pages.at), mr->rkey}));
    a.scq.expect(3, IBV_WC_REM_ACCESS_ERR);
    CHECK_OK(ibv_dereg_mr(mr));
}

CASE(reregistration_changes_rights_and_range) {
    Two two;
    Node &a = two.a, &b = two.b;
    Pages pages(2);
    ibv_mr* mr = try_register(b.pd, pages.at, kPage, kAllAccess);
    CHECK(mr != nullptr);
    const int result = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                    pages.at + kPage, kPage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    if (result != 0) {  // optional for devices (IBTA 11.2.8.5); then the region is unchanged, or gone
        CHECK_OK(ibv_dereg_mr(mr));
        skip("reregistration is not offered");
    }
    CHECK(mr->addr == pages.at + kPage);
    std::memset(pages.at + kPage, 0x3c, kPage);
    a.qp.post(read(1, a.memory.sge(0, 64), {reinterpret_cast<std::uint64_t>(pages.at) + kPage, mr->rkey}));
    a.scq.expect(1);
    CHECK_EQ(a.memory.data()[63], 0x3c);
    a.qp.post(write(2, a.memory.sge(0, 64), {reinterpret_cast<std::uint64_t>(pages.at) + kPage, mr->rkey}));
    a.scq.expect(2, IBV_WC_REM_ACCESS_ERR);
    CHECK_OK(ibv_dereg_mr(mr));
}

// --- stale registrations --------------------------------------------------------------------------------------------

// Hardware pins pages: after munmap() it continues to use the old ones, and the device never sees new mappings at the
// address. A subnet in user space uses the virtual address instead; in strict mode it must report that the registration
// is stale, and not touch other memory.
namespace {

struct Stale {
    Two two;
    Node &a = two.a, &b = two.b;
    Pages pages{4};
    ibv_mr* mr = nullptr;

    Stale() {
        if (ground() != "strict") skip("only with --strict-mr");
    }
    void register_at_b() { CHECK((mr = try_register(b.pd, pages.at, pages.bytes, kAllAccess)) != nullptr); }
    void register_at_a() { CHECK((mr = try_register(a.pd, pages.at, pages.bytes, kAllAccess)) != nullptr); }
    ~Stale() { CHECK_OK(ibv_dereg_mr(mr)); }

    Remote remote(std::size_t page) const {
        return {reinterpret_cast<std::uint64_t>(pages.at) + page * kPage, mr->rkey};
    }
    ibv_sge sge(std::size_t page) const {
        return {reinterpret_cast<std::uint64_t>(pages.at) + page * kPage, 64, mr->lkey};
    }
    void expect_caught(const Wr& wr) const {
        a.qp.post(wr);
        const ibv_wc wc = a.scq.wait();
        CHECK_EQ(wc.wr_id, wr.id);
        CHECK(wc.status != IBV_WC_SUCCESS);
    }
};

void map_over(unsigned char* at) {
    CHECK(mmap(at, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
}

}  // namespace

CASE(strict_remote_access_to_an_unmapped_region_is_caught) {
    Stale stale;
    stale.register_at_b();
    CHECK_EQ(munmap(stale.pages.at + kPage, kPage), 0);
    stale.expect_caught(write(1, stale.a.memory.sge(0, 64), stale.remote(1)));
}

CASE(strict_remote_access_to_a_remapped_region_is_caught) {
    Stale stale;
    stale.register_at_b();
    map_over(stale.pages.at + kPage);
    stale.expect_caught(write(1, stale.a.memory.sge(0, 64), stale.remote(1)));
    for (std::size_t i = 0; i < 64; ++i) CHECK_EQ(stale.pages.at[kPage + i], 0);
}

CASE(strict_local_access_to_an_unmapped_region_is_caught) {
    Stale stale;
    stale.register_at_a();
    CHECK_EQ(munmap(stale.pages.at + 2 * kPage, kPage), 0);
    stale.expect_caught(write(1, stale.sge(2), stale.b.memory.remote()));
    stale.b.memory.check_untouched();
}

CASE(strict_local_access_to_a_remapped_region_is_caught) {
    Stale stale;
    stale.register_at_a();
    map_over(stale.pages.at);
    stale.expect_caught(write(1, stale.sge(0), stale.b.memory.remote()));
    stale.b.memory.check_untouched();
}

CASE(strict_madvise_dontneed_is_caught) {
    Stale stale;
    stale.register_at_b();
    std::memset(stale.pages.at, 1, stale.pages.bytes);
    CHECK_EQ(madvise(stale.pages.at, kPage, MADV_DONTNEED), 0);
    stale.expect_caught(read(1, stale.a.memory.sge(0, 64), stale.remote(0)));
    stale.a.memory.check_untouched();
}

CASE(strict_fresh_registration_of_a_remapped_range_works) {
    Stale stale;
    stale.register_at_b();
    map_over(stale.pages.at);
    CHECK_OK(ibv_dereg_mr(stale.mr));
    stale.register_at_b();
    stale.a.memory.fill(1, 0, 64);
    stale.a.qp.post(write(1, stale.a.memory.sge(0, 64), stale.remote(0)));
    stale.a.scq.expect(1);
    CHECK_EQ(std::memcmp(stale.pages.at, stale.a.memory.data(), 64), 0);
}
