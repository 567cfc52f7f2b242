// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of one communicator that have agreed to use coll/rdmaag, and the wire between them.
//
// Short packets and announcements are active messages of the BTLs that the PML uses, under a tag of our own, so no
// matching takes place. Long steps are puts where the transport has them. A notice follows a put when it is complete
// here, or with its data if the transport can send it itself (coop/extension/btl_extension.h). Where there is no put, or
// the transport refuses one, the data go in packets.
//
// Threading: calls on one communicator follow each other, in any threads; packets arrive in any thread. Ownership: the
// module of the communicator owns its group. Errors: a damaged packet, or a transport that fails, ends the job.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <vector>

#include "compat.h"
#include "coop/coll/call.h"

namespace coop::ag {

class Group {
public:
    // Null: out of memory.
    static std::unique_ptr<Group> create(ompi_communicator_t& comm, std::size_t short_bytes) noexcept;
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    // All processes have a group now; steps up to `short_bytes` are short.
    void agree(std::uint64_t short_bytes) noexcept { short_bytes_ = short_bytes; }

    // Gathers the blocks into `memory`, which has the own block already. Returns when it has all blocks. Steps up to 1/short_part
    // of the limit are short; the same in all processes.
    void gather(std::byte* memory, const coll::Blocks& blocks, coll::Algorithm algorithm,
                std::uint32_t short_part = 1) noexcept;

    const char* on_packet(const coll::Packet& packet, const void* data, mca_btl_base_module_t* btl) noexcept;

    // --- the Wire of coll/call.h, for one call at a time ---
    bool announce(std::uint32_t to, std::uint32_t number) noexcept;
    bool send_short(std::uint32_t to, std::uint32_t step, const coll::Pieces& pieces) noexcept;
    std::uint64_t send_long(std::uint32_t to, std::uint32_t step, std::uint64_t at, const coll::Piece& piece,
                            const coll::Announcement& there) noexcept;
    bool send_empty(std::uint32_t to, std::uint32_t step) noexcept;
    bool settle() noexcept;

private:
    // The receive buffer as a transport knows it; without a handle where the transport needs none.
    struct Registered {
        mca_btl_base_module_t* btl;
        mca_btl_base_registration_handle_t* handle;
        bool usable;
    };
    struct Put;

    Group(ompi_communicator_t& comm, std::unique_ptr<coll::Inbox> inbox) noexcept;

    mca_bml_base_endpoint_t& endpoint(std::uint32_t rank) const noexcept;
    const Registered& registered(mca_bml_base_btl_t& btl) noexcept;
    void release_memory() noexcept;

    coll::Packet packet_of(coll::Kind kind, std::uint32_t step) const noexcept;
    bool send(mca_bml_base_btl_t& btl, coll::Packet& packet, const coll::Pieces& pieces) noexcept;
    std::uint64_t send_data(std::uint32_t to, std::uint32_t step, std::uint64_t at, const coll::Piece& piece) noexcept;
    bool send_notice(mca_bml_base_btl_t& btl, std::uint32_t step, std::uint64_t bytes) noexcept;
    int start(Put& put, mca_bml_base_btl_t& btl, bool to_the_end, void* local, std::uint64_t remote,
              mca_btl_base_registration_handle_t* local_handle,
              mca_btl_base_registration_handle_t* remote_handle) noexcept;
    bool settle(Put& put) noexcept;
    static void on_sent(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t* descriptor,
                        int status);
    static void on_put_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void* address,
                            mca_btl_base_registration_handle_t*, void* context, void* put, int status);

    ompi_communicator_t& comm_;
    std::unique_ptr<coll::Inbox> inbox_;
    std::vector<std::byte> staging_;  // for one packet with its data
    std::uint64_t short_bytes_ = 0;
    std::uint32_t lap_ = 0;

    // Of the present call.
    std::byte* memory_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::vector<Registered> registered_;
    std::list<Put> puts_;
    std::atomic<std::uint32_t> under_way_{0};  // packets in descriptors of a transport
};

// Registers the callback for arriving packets; once per process. False: the PML does not use BTLs.
bool receive_packets() noexcept;

// Whether this process can send packets to the other one, and how long they may be; 0: it cannot.
std::size_t longest_packet(ompi_communicator_t& comm, std::uint32_t rank) noexcept;

}  // namespace coop::ag
