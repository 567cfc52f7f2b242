// SPDX-License-Identifier: BSD-3-Clause
//
// Puts through the extension of btl/coopib (coop/extension/btl_extension.h). Two ranks write into each other's memory,
// several puts at a time, and check every byte when they are told that a put has arrived:
//
//     coopib_puts riders RAILS     by its riders; in the end some put must have used all RAILS rails
//     coopib_puts messages         by a message that is sent at once; fails where the message overtakes the data
//     coopib_puts tails            by the last word of an undivided put, which the receiver polls
//     coopib_puts striped_tails    the same for a put that may be striped; fails where the last stripe comes first
//     coopib_puts reads            by reads behind several puts at once, which must end after them
//     coopib_puts order yes|no     each rank writes to itself, first without a connection; then writes land in order or not
//
// Exit code 1 if a byte is wrong, or if the transport does not behave as btl_extension.h says.
#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "coop_ompi_prologue.h"  // before mpi.h

extern "C" {
#include <mpi.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "opal/mca/btl/base/base.h"
#include "opal/runtime/opal_progress.h"
}

#include "coop/extension/registry.h"

namespace {

using coop::BtlExtension;
using coop::RdmaOptions;
using coop::Rider;
using coop::sched::Marker;

constexpr int kRounds = 30, kTag = MCA_BTL_TAG_USR + 5;
constexpr double kLimit = 60;  // seconds without the expected event
constexpr std::size_t kSlots = 8, kLargest = 1 << 20, kGuard = 64, kStride = kLargest + kGuard;
constexpr unsigned char kEmpty = 0x5a;
constexpr std::size_t kSizes[] = {1, 8, 100, 511, 4096, 16383, 16384, 65536 + 3, 262144, kLargest};

int rank, peer;

[[noreturn]] void fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::printf("rank %d: ", rank);
    std::vprintf(format, arguments);
    std::printf("\n");
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

template <class Condition>
void progress_until(const char* what, Condition condition) {
    for (const double end = MPI_Wtime() + kLimit; !condition(); opal_progress())
        if (MPI_Wtime() > end) fail("no %s", what);
}

// --- the transport ----------------------------------------------------------------------------------------------------

mca_btl_base_module_t* btl;
const BtlExtension* extension;

void find_transport() {
    mca_btl_base_selected_module_t* each;
    OPAL_LIST_FOREACH(each, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    if (std::strcmp(each->btl_component->btl_version.mca_component_name, "coopib") == 0) btl = each->btl_module;
    extension = btl != nullptr ? coop::find_extension(btl).extension : nullptr;
    if (extension == nullptr) fail("btl/coopib is not in use, or has another extension");
}

mca_btl_base_endpoint_t* endpoint_of(int of) {
    mca_bml_base_endpoint_t* known = mca_bml_base_get_endpoint(ompi_comm_peer_lookup(MPI_COMM_WORLD, of));
    for (std::size_t i = 0; i < mca_bml_base_btl_array_get_size(&known->btl_rdma); ++i) {
        mca_bml_base_btl_t* way = mca_bml_base_btl_array_get_index(&known->btl_rdma, i);
        if (way->btl == btl) return way->btl_endpoint;
    }
    fail("no way to rank %d by btl/coopib", of);
}

using Handle = mca_btl_base_registration_handle_t;

// Slots in registered memory.
struct Memory {
    unsigned char* data = nullptr;
    Handle* handle = nullptr;

    explicit Memory(mca_btl_base_endpoint_t* endpoint) {
        data = static_cast<unsigned char*>(std::aligned_alloc(4096, kSlots * kStride / 4096 * 4096 + 4096));
        std::memset(data, kEmpty, kSlots * kStride);
        handle = btl->btl_register_mem(btl, endpoint, data, kSlots * kStride, MCA_BTL_REG_FLAG_ACCESS_ANY);
        if (handle == nullptr) fail("cannot register memory");
    }
    ~Memory() {
        btl->btl_deregister_mem(btl, handle);
        std::free(data);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    unsigned char* slot(std::size_t i) const { return data + i * kStride; }
};

// Memory of the peer.
struct Remote {
    std::uint64_t address = 0;
    alignas(8) unsigned char handle[256];

    explicit Remote(const Memory& own) {
        const auto address_here = reinterpret_cast<std::uint64_t>(own.data);
        const int bytes = static_cast<int>(btl->btl_registration_handle_size);
        MPI_Sendrecv(&address_here, 8, MPI_BYTE, peer, 0, &address, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(own.handle, bytes, MPI_BYTE, peer, 0, handle, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    Handle* key() { return reinterpret_cast<Handle*>(handle); }
};

// The callback of a put may run in the thread of pml_coop_async.
void on_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, Handle*, void*, void* data, int status) {
    if (status != OPAL_SUCCESS) fail("a put has failed");
    static_cast<std::atomic<bool>*>(data)->store(true);
}

void put(mca_btl_base_endpoint_t* to, unsigned char* from, std::uint64_t address, Handle* local, Handle* remote,
         std::size_t bytes, const RdmaOptions& options, std::atomic<bool>& done) {
    done = false;
    if (extension->put(btl, to, from, address, local, remote, bytes, options, on_done, &done) != OPAL_SUCCESS)
        fail("a put of %zu bytes was refused", bytes);
}

void wait_for(const std::atomic<bool>& done) {
    progress_until("completion of a put", [&] { return done.load(); });
}

// --- data and packets -------------------------------------------------------------------------------------------------

unsigned char byte_of(std::uint64_t number, int from, std::size_t at) {
    const std::uint64_t word = (at / 8 + 1) * 0x9e3779b97f4a7c15u + number * 0xbf58476d1ce4e5b9u +
                               static_cast<unsigned>(from);
    return static_cast<unsigned char>((word ^ word >> 29) >> 8 * (at % 8));
}

void fill(unsigned char* to, std::uint64_t number, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) to[i] = byte_of(number, rank, i);
}

void check(const unsigned char* slot, std::uint64_t number, int from, std::size_t bytes, std::size_t end) {
    for (std::size_t i = 0; i < end; ++i) {
        const unsigned char expected = i < bytes ? byte_of(number, from, i) : kEmpty;
        if (slot[i] != expected)
            fail("put %llu of %zu bytes: byte %zu is %d instead of %d", static_cast<unsigned long long>(number), bytes,
                 i, slot[i], expected);
    }
}

std::size_t size_of(std::uint64_t number) { return kSizes[(number * 0x9e3779b97f4a7c15u >> 40) % std::size(kSizes)]; }
bool is_whole(std::uint64_t number) { return number % 3 == 0; }

struct Packet {
    std::uint64_t number;
    std::uint32_t parts, from;
};
static_assert(sizeof(Packet) <= coop::kMaxRiderBytes);

void set_parts(void* packet, std::uint32_t parts) noexcept { static_cast<Packet*>(packet)->parts = parts; }

Rider rider_of(std::uint64_t number) {
    Rider rider{};
    new (rider.packet) Packet{number, 0, static_cast<std::uint32_t>(rank)};
    rider.bytes = sizeof(Packet);
    rider.tag = kTag;
    rider.set_parts = set_parts;
    return rider;
}

void send_packet(mca_btl_base_endpoint_t* to, std::uint64_t number) {
    mca_btl_base_descriptor_t* descriptor = btl->btl_alloc(btl, to, MCA_BTL_NO_ORDER, sizeof(Packet),
                                                           MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    new (descriptor->des_segments->seg_addr.pval) Packet{number, 1, static_cast<std::uint32_t>(rank)};
    if (btl->btl_send(btl, to, descriptor, kTag) < 0) fail("a message was refused");
}

// --- arrivals ---------------------------------------------------------------------------------------------------------

const Memory* inbox;
std::uint32_t copies[kSlots], most_parts;
std::uint64_t arrived;                  // puts of which all copies of the packet have arrived
std::uint64_t expected_number[kSlots];  // the next put into each slot

void check_parts(const Packet& packet) {
    const std::size_t bytes = size_of(packet.number);
    if (packet.parts == 0 || (packet.parts > 1 && (is_whole(packet.number) || bytes < 16384)))
        fail("put %llu of %zu bytes has %u parts", static_cast<unsigned long long>(packet.number), bytes, packet.parts);
    most_parts = std::max(most_parts, packet.parts);
}

// All of the put must be there when the last copy arrives.
void on_packet(mca_btl_base_module_t*, mca_btl_base_tag_t, mca_btl_base_descriptor_t* descriptor, void*) {
    if (descriptor->des_segments->seg_len != sizeof(Packet)) fail("a packet has another length");
    Packet packet;
    std::memcpy(&packet, descriptor->des_segments->seg_addr.pval, sizeof packet);
    const std::size_t slot = packet.number % kSlots;
    if (packet.number != expected_number[slot]) fail("the packet of another put has arrived");
    check_parts(packet);
    if (++copies[slot] < packet.parts) return;
    const std::size_t bytes = size_of(packet.number);
    check(inbox->slot(slot), packet.number, static_cast<int>(packet.from), bytes, bytes + kGuard);
    std::memset(inbox->slot(slot), kEmpty, bytes);
    copies[slot] = 0;
    expected_number[slot] += kSlots;
    ++arrived;
}

// --- tests ------------------------------------------------------------------------------------------------------------

enum class Notice { kRider, kMessage };

// Puts into all slots at once, in both directions.
void round_of_puts(int round, Notice notice, mca_btl_base_endpoint_t* to, Memory& out, Remote& remote) {
    std::atomic<bool> done[kSlots];
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
        const std::uint64_t number = static_cast<std::uint64_t>(round) * kSlots + slot;
        Rider rider = rider_of(number);
        fill(out.slot(slot), number, size_of(number));
        put(to, out.slot(slot), remote.address + slot * kStride, out.handle, remote.key(), size_of(number),
            {static_cast<Marker>(number % coop::sched::kMarkers), notice == Notice::kRider ? &rider : nullptr,
             is_whole(number)},
            done[slot]);
        if (notice == Notice::kMessage) send_packet(to, number);
        else if (!rider.taken) fail("a rider was not taken, although there is a connection");
    }
    for (const auto& each : done) wait_for(each);
    const auto all = static_cast<std::uint64_t>(round + 1) * kSlots;
    progress_until("packet", [&] { return arrived >= all; });
    MPI_Barrier(MPI_COMM_WORLD);
}

void notices(Notice notice, std::uint32_t rails) {
    mca_btl_base_endpoint_t* const to = endpoint_of(peer);
    Memory in(to), out(to);
    inbox = &in;
    Remote remote(in);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < kRounds; ++round) round_of_puts(round, notice, to, out, remote);
    if (notice == Notice::kRider && most_parts != rails)
        fail("puts had up to %u parts, on %u rails", most_parts, rails);
}

// The receiver polls without calling the library. A number is never 0x5a5a…
void poll_tail(const unsigned char* slot, std::uint64_t number, std::size_t bytes) {
    auto* const tail = reinterpret_cast<const std::uint64_t*>(slot + bytes - 8);
    for (const double end = MPI_Wtime() + kLimit; __atomic_load_n(tail, __ATOMIC_ACQUIRE) != number;)
        if (MPI_Wtime() > end) fail("no tail");
    check(slot, number, peer, bytes - 8, bytes - 8);
}

void tails(bool whole) {
    mca_btl_base_endpoint_t* const to = endpoint_of(peer);
    Memory in(to), out(to);
    Remote remote(in);
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::uint64_t number = 0; number < kRounds * kSlots; ++number) {
        const std::size_t bytes = (size_of(number) + 15) / 8 * 8, slot = number % kSlots;
        if (bytes + 8 > kStride) fail("a put is longer than a slot");
        const bool sends = static_cast<int>(number % 2) == rank;
        std::atomic<bool> done{true};
        if (sends) {
            fill(out.slot(slot), number, bytes - 8);
            std::memcpy(out.slot(slot) + bytes - 8, &number, 8);
            put(to, out.slot(slot), remote.address + slot * kStride, out.handle, remote.key(), bytes,
                {Marker::kCollective, nullptr, whole}, done);
        } else {
            poll_tail(in.slot(slot), number, bytes);
            std::memset(in.slot(slot), kEmpty, bytes);
        }
        wait_for(done);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

struct Behind {
    std::atomic<bool> puts[kSlots];
    std::atomic<bool> read{false};
};

void on_read(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, Handle*, void*, void* data, int status) {
    auto& behind = *static_cast<Behind*>(data);
    if (status != OPAL_SUCCESS) fail("a read has failed");
    for (const auto& put : behind.puts)
        if (!put.load()) fail("a read has ended before a put that was started earlier");
    behind.read = true;
}

// The puts are so many that some wait for the others before they are striped.
void reads() {
    mca_btl_base_endpoint_t* const to = endpoint_of(peer);
    Memory in(to), out(to), read(to);
    Remote remote(in);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < kRounds; ++round) {
        Behind behind;
        std::uint64_t since = 0;
        for (std::size_t slot = 0; slot < kSlots; ++slot)
            put(to, out.slot(slot), remote.address + slot * kStride, out.handle, remote.key(), kLargest, {},
                behind.puts[slot]);
        if (!extension->needs_read_behind(btl, to, since) ||
            !extension->read_behind(btl, to, read.data, remote.address, read.handle, remote.key(), since, on_read,
                                    &behind))
            fail("no read was started");
        wait_for(behind.read);
    }
    MPI_Barrier(MPI_COMM_WORLD);  // the peer still writes
}

// Rank and peer are the same here, so that the address is known without a message, and there is no connection yet.
void order(bool expected) {
    mca_btl_base_endpoint_t* const self = endpoint_of(rank);
    Memory in(self), out(self);
    inbox = &in;
    if (extension->lands_in_order(btl, self)) fail("an answer about writes without a connection");
    for (std::uint64_t number = 0; number < 2; ++number) {
        std::atomic<bool> done;
        Rider rider = rider_of(number);
        fill(out.slot(number), number, size_of(number));
        put(self, out.slot(number), reinterpret_cast<std::uint64_t>(in.slot(number)), out.handle, in.handle,
            size_of(number), {Marker::kNone, &rider, false}, done);
        if (rider.taken != (number != 0))
            fail("rider %d was%s taken", static_cast<int>(number), rider.taken ? "" : " not");
        wait_for(done);
        if (!rider.taken) send_packet(self, number);
        progress_until("packet", [&] { return arrived > number; });
    }
    if (extension->lands_in_order(btl, self) != expected) fail("writes land %sin order", expected ? "not " : "");
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "", more = argc > 2 ? argv[2] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    find_transport();
    for (std::size_t slot = 0; slot < kSlots; ++slot) expected_number[slot] = slot;
    mca_btl_base_active_message_trigger[kTag].cbfunc = on_packet;
    if (what == "riders") notices(Notice::kRider, static_cast<std::uint32_t>(std::stoul(more)));
    else if (what == "messages") notices(Notice::kMessage, 1);
    else if (what == "tails" || what == "striped_tails") tails(what == "tails");
    else if (what == "reads") reads();
    else if (what == "order") order(more == "yes");
    else fail("nothing to do");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::printf("all right\n");
    MPI_Finalize();
    return 0;
}
