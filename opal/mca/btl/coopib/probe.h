// SPDX-License-Identifier: BSD-3-Clause
//
// Probes of rails: RDMA reads of a word that identifies the peer (path/connect.h
// explains when and why). The word of this process, and the places into which the
// words of peers are read, are registered on every HCA.
//
// The read asks for no completion; the result is seen in memory. So the thread that
// answers peers never touches the completion queues, which only progress() polls. A
// read that fails does complete, with Rail::mark as its work (coop/rail/rail.h). The
// mark's endpoint is null while the rail is not part of a channel, and progress()
// ignores the completion.
//
// Threading: under the lock of Connections. Ownership: the caller of take() owns the
// block and gives it back when no rail writes there any more.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coop/path/connect.h"
#include "endpoint.h"
#include "pools.h"

namespace coop::ib {

enum class Probed : std::uint8_t { kSilent, kAnswered, kBroken };

class ProbeMemory {
public:
    // `own_id` identifies this process. Returns false if there is no memory or it cannot be registered (errno is set).
    bool open(std::uint64_t own_id, std::vector<rail::Hca*> hcas);

    std::uint64_t own_word() const noexcept { return reinterpret_cast<std::uint64_t>(words_.data()); }
    std::uint32_t rkey(std::uint32_t hca) const { return words_.rkey(hca); }

    // Places for the words of all rails to one peer. take() fills them with a value other than the peer's id.
    struct Block {
        std::uint64_t* places = nullptr;  // one for each rail; null: there is no memory
        const RegisteredMemory* memory = nullptr;
    };
    Block take(std::uint64_t peer);
    void give_back(Block block) { free_.push_back(block); }

private:
    bool grow();
    std::vector<rail::Hca*> hcas_;
    RegisteredMemory words_;
    std::vector<std::unique_ptr<RegisteredMemory>> chunks_;
    std::vector<Block> free_;
};

// Posts the read of rail `index`. Returns false if the queue pair refuses it.
bool post_probe(Rail& rail, std::size_t index, const ProbeMemory::Block& block, std::uint64_t peer_word,
                std::uint32_t rkey);

// Checks whether the word of `peer` has arrived over rail `index`. `ask_queue_pair`: also checks whether the rail is in
// error, which costs a system call.
Probed look_at_probe(const Rail& rail, std::size_t index, const ProbeMemory::Block& block, std::uint64_t peer,
                     bool ask_queue_pair);

}  // namespace coop::ib
