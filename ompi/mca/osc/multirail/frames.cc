// SPDX-License-Identifier: BSD-3-Clause
//
// Packets on their way: from a window to the transport, and from the transport to a window.
//
//     records ─► open frame ─► close_frame() ─► send() ─► try_send(), again and again
//         closed when full or too many are open (messages.cc), by finish(), end_epoch(), post(), for locks and messages
//     answers ─► Replies ─► send_or_keep() ─► Peer::waiting ─► send_waiting() ─► try_send(), once in each round
//         the open frame takes this way, too, if only a request waits for its results (expect())
//     arrival ─► on_packet() ─► Inbox ─► execute() in target.cc, on_reply() or on_signal()
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "coop/base/tsan.h"
#include "diagnose.h"
#include "frames.h"
#include "window.h"
#include "ompi/mca/shim/codes.h"

namespace coop::osc {
namespace {

constexpr std::uint32_t kFlags = MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
// Packets in descriptors, to one process and to all, because a transport could buffer any number of them, each in some
// kilobytes of registered memory. Beyond kMostOfAll each process may have one, so that those which answer do not wait for
// others that do not.
constexpr std::uint32_t kMostUnderWay = 32, kMostOfAll = 256, kMostWithOneEach = 4096;
constexpr std::size_t kFreeBuffers = 64;

std::atomic<std::uint32_t> all_under_way{0};

bool may_send(const Peer& to) noexcept {
    const std::uint32_t own = to.under_way.load(std::memory_order_acquire);
    return own < kMostUnderWay &&
           all_under_way.load(std::memory_order_relaxed) < (own == 0 ? kMostWithOneEach : kMostOfAll);
}
void add_under_way(Peer& to) noexcept {
    to.under_way.fetch_add(1, std::memory_order_relaxed);
    all_under_way.fetch_add(1, std::memory_order_relaxed);
}
void end_under_way(Peer& to) noexcept {
    all_under_way.fetch_sub(1, std::memory_order_relaxed);
    to.under_way.fetch_sub(1, std::memory_order_release);
}

// The windows of this process by context id.
struct Windows {
    std::mutex lock;
    std::unordered_map<std::uint32_t, Window*> map;
};
Windows& windows() noexcept {
    static auto& all = *new Windows;
    return all;
}

extern "C" void mca_osc_multirail_on_packet(mca_btl_base_module_t*, mca_btl_base_tag_t,
                                            mca_btl_base_descriptor_t* descriptor, void*) {
    const async::Polling turn(handler().get());
    const mca_btl_base_segment_t& segment = *descriptor->des_segments;
    const std::span bytes(static_cast<const std::byte*>(segment.seg_addr.pval), segment.seg_len);
    const rma::Packet packet = rma::read_packet(bytes);
    const char* why = rma::find_damage(bytes);
    if (!why) {
        Window* const window = Window::find(packet.window);
        why = window ? window->on_packet(packet, bytes) : "window";
        if (window) window->let_go();
    }
    if (why) wrong_packet(packet, why);
}

void copy_into(mca_btl_base_descriptor_t& descriptor, std::span<const std::byte> packet,
               mca_btl_base_completion_fn_t on_sent, void* context) noexcept {
    std::memcpy(descriptor.des_segments->seg_addr.pval, packet.data(), packet.size());
    descriptor.des_cbfunc = on_sent;
    descriptor.des_cbdata = context;
}

// Some window has packets to send or PML messages to progress in the next round.
std::atomic<bool> any_window_waits{false};

// Open MPI calls it in each round of opal_progress() while there are windows.
int poll_windows() {
    const bool blocks_wanted = process.staging.take_wish();
    if (!blocks_wanted && !any_window_waits.load(std::memory_order_relaxed)) return 0;
    const async::Polling turn(handler().get());
    any_window_waits.store(false, std::memory_order_seq_cst);
    std::vector<Window*> all;
    {
        const std::lock_guard lock(windows().lock);
        for (const auto& [context, window] : windows().map)
            if (blocks_wanted || window->has_waiting() || window->has_messages()) all.push_back(window);
        for (Window* const window : all) window->retain();
    }
    int sent = 0;
    for (Window* const window : all) {
        if (blocks_wanted) window->close_blocks();
        if (window->has_messages()) sent += window->progress_messages();
        sent += window->send_waiting();
        window->let_go();
    }
    return sent;
}

}  // namespace

bool receive_packets() noexcept {
    static const bool registered = mca_bml.bml_register &&
                                   mca_bml.bml_register(kTag, mca_osc_multirail_on_packet, nullptr) == OMPI_SUCCESS;
    return registered;
}

mca_bml_base_btl_t* packets_to(ompi_communicator_t& comm, std::uint32_t rank) noexcept {
    mca_bml_base_endpoint_t* const there = mca_bml_base_get_endpoint(
        ompi_comm_peer_lookup(&comm, static_cast<int>(rank)));
    return there ? mca_bml_base_btl_array_get_index(&there->btl_eager, 0) : nullptr;
}

Window* Window::find(std::uint32_t context) noexcept {
    const std::lock_guard lock(windows().lock);
    const auto found = windows().map.find(context);
    if (found == windows().map.end()) return nullptr;
    found->second->retain();
    return found->second;
}

void Window::enter_map() {
    const std::lock_guard lock(windows().lock);
    windows().map.emplace(context_, this);
    if (windows().map.size() == 1) opal_progress_register(poll_windows);
}

void Window::leave_map() noexcept {
    {
        const std::lock_guard lock(windows().lock);
        windows().map.erase(context_);
        if (windows().map.empty()) opal_progress_unregister(poll_windows);
    }
    // Another thread may still be inside of a function of this window: send_waiting(), on_packet(), …
    while (users_.load(std::memory_order_acquire) > 0) sched_yield();
}

Buffer Window::take_buffer() {
    if (!buffers_.empty()) {
        Buffer buffer = std::move(buffers_.back());
        buffers_.pop_back();
        return buffer;
    }
    return {std::make_unique_for_overwrite<std::byte[]>(frame_bytes_), frame_bytes_};
}

void Window::give_back(Buffer&& buffer) noexcept {
    if (buffer.bytes && buffers_.size() < kFreeBuffers) buffers_.push_back(std::move(buffer));
}

// Sends the packet without a descriptor, so that no callback reports its end.
bool Window::send_unreported(const Outgoing& out, bool interrupts) noexcept {
    mca_bml_base_btl_t& btl = *out.to->btl;
    if (interrupts) return extension_->send_urgent(btl.btl, btl.btl_endpoint, out.buffer.bytes.get(), out.bytes, kTag);
    if (!btl.btl->btl_sendi || process.faults.hit(Fault::kSendi)) return false;
    static opal_convertor_t no_payload{};  // some transports look at its flags even so
    return mca_bml_base_sendi(&btl, &no_payload, out.buffer.bytes.get(), out.bytes, 0, MCA_BTL_NO_ORDER, kFlags, kTag,
                              nullptr) == OMPI_SUCCESS;
}

bool Window::try_send(const Outgoing& out) noexcept {
    Peer& to = *out.to;
    mca_bml_base_btl_t& btl = *to.btl;
    Faults& faults = process.faults;
    if (!may_send(to) || faults.hit(Fault::kBusy)) return false;
    // The handler may have interrupted the program inside of a transport that does not take turns with it. The program
    // sends the packet in its next call.
    if (handler().is_handler() && btl.btl != rdma_) return false;
    std::byte* const bytes = out.buffer.bytes.get();
    if (faults.armed()) [[unlikely]]
        faults.corrupt(out.is_reply ? Fault::kCorruptFin : Fault::kCorruptMatch, bytes, out.bytes);
    const bool interrupts = interrupts_ && !out.is_reply && btl.btl == rdma_;
    if (out.bytes <= to.most_unreported && send_unreported(out, interrupts)) return true;
    mca_btl_base_descriptor_t* descriptor = nullptr;
    if (!faults.hit(Fault::kAlloc))
        mca_bml_base_alloc(&btl, &descriptor, MCA_BTL_NO_ORDER, out.bytes, kFlags | MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    if (!descriptor) return false;
    copy_into(*descriptor, {bytes, out.bytes}, on_sent, out.to);
    add_under_way(to);
    if (interrupts) extension_->make_urgent(btl.btl, descriptor);
    // The asynchronous handler has to learn of the end: other packets may wait for it.
    if (interrupts_) handler().under_way(1);
    tsan_release(descriptor);
    const int rc = mca_bml_base_send(&btl, descriptor, kTag);
    if (rc >= 0) return true;
    if (interrupts_) handler().under_way(-1);
    end_under_way(to);
    mca_bml_base_free(&btl, descriptor);
    if (!is_shortage(rc)) transport_failed(*btl.btl, "send", rc);
    return false;
}

void Window::on_sent(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t* descriptor,
                     int status) {
    tsan_acquire(descriptor);
    // Without this packet the target would wait for ever.
    if (status < 0) transport_failed(*btl, "send", status);
    Peer& to = *static_cast<Peer*>(descriptor->des_cbdata);
    Window& window = *to.window;
    if (!window.interrupts_) return end_under_way(to);
    // While the program computes, only this callback can send what waits.
    window.retain();
    end_under_way(to);
    handler().under_way(-1);
    if (window.has_waiting()) window.send_waiting();
    window.let_go();
}

// Tries all packets in each round, so that a peer that takes none does not hold up those to other peers.
void Window::send(std::vector<Outgoing>&& out) noexcept {
    for (bool waited = false; !out.empty(); waited = true) {
        if (waited) {
            process.count(Count::kWaits);
            opal_progress();
        }
        std::erase_if(out, [this](Outgoing& each) {
            if (!try_send(each)) return false;
            const std::lock_guard lock(mutex_);
            give_back(std::move(each.buffer));
            return true;
        });
    }
}

void Window::note_waiting(Peer& peer) noexcept {
    if (!peer.busy) busy_.push_back(&peer);
    peer.busy = true;
    any_waiting_.store(true, std::memory_order_release);
    any_window_waits.store(true, std::memory_order_seq_cst);
}

void Window::note_messages() noexcept {
    any_message_.store(true, std::memory_order_release);
    any_window_waits.store(true, std::memory_order_seq_cst);
}

// For callbacks, which must not wait: sends what it can, and leaves the rest to the progress function.
void Window::send_or_keep(std::vector<Outgoing>&& out) noexcept {
    {
        const std::lock_guard lock(mutex_);
        for (Outgoing& each : out) {
            note_waiting(*each.to);
            each.to->waiting.push_back(std::move(each));
        }
    }
    if (has_waiting()) send_waiting();
}

// The next packet to the peer: one that waits, else the open frame if it is `eager`, else a part of a long answer.
// False: none. Call it with the mutex held.
bool Window::next_waiting(Peer& peer, Outgoing& out) {
    if (peer.waiting.empty()) {
        std::vector<Outgoing> more;
        if (peer.eager) close_frame(peer, more);
        else if (!peer.answers.empty()) continue_answers(peer, more);
        for (Outgoing& each : more) peer.waiting.push_back(std::move(each));
    }
    if (peer.waiting.empty()) return false;
    out = std::move(peer.waiting.front());
    peer.waiting.pop_front();
    return true;
}

int Window::send_waiting() noexcept {
    std::vector<Peer*> busy;
    {
        const std::lock_guard lock(mutex_);
        any_waiting_.store(false, std::memory_order_relaxed);
        busy.swap(busy_);
        for (Peer* const peer : busy) peer->busy = false;
    }
    int sent = 0;
    for (Peer* const peer : busy) {
        for (Outgoing out;; ++sent) {
            Lock lock(mutex_);
            if (!next_waiting(*peer, out)) break;
            lock.unlock();
            const bool is_sent = try_send(out);
            lock.lock();
            if (!is_sent) {
                peer->waiting.push_front(std::move(out));
                note_waiting(*peer);
                break;
            }
            give_back(std::move(out.buffer));
        }
    }
    return sent;
}

const char* Window::on_packet(const rma::Packet& packet, std::span<const std::byte> bytes) noexcept {
    if (packet.source >= processes_ || packet.source == rank_) return "source";
    const char* why = nullptr;
    RequestList done;
    std::vector<Outgoing> out;
    {
        const std::lock_guard lock(mutex_);
        if (packet.kind == rma::Packets::kReply) {
            why = on_reply(packet.source, bytes, done);
        } else if (packet.kind == rma::Packets::kSignal) {
            why = on_signal(packet.source, rma::read_signal(bytes));
        } else {
            Replies replies(*this);
            rma::Inbox& inbox = peer(packet.source).inbox;
            const bool known = inbox.on_frame(packet.sequence, bytes, [&](std::span<const std::byte> frame) {
                if (!why) why = execute(packet.source, frame, replies);
            });
            if (inbox.held() > 0) process.count(Count::kHeldFrames);
            if (!known) why = "sequence";
            out = replies.take();
        }
    }
    if (why) return why;
    send_or_keep(std::move(out));
    complete_all(done);
    return nullptr;
}

}  // namespace coop::osc
