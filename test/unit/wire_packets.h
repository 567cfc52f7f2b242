// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of each kind for the tests of wire/headers.h.
#pragma once

#include "coop/rndv/board.h"
#include "coop/rndv/bounce.h"
#include "coop/rndv/protocol.h"
#include "coop/wire/headers.h"

#include <cstring>
#include <string>
#include <vector>

namespace coop::wire::test {

// A packet: header, handle, words of a slot, pieces or payload.
using Bytes = std::vector<unsigned char>;

inline Bytes packet_of(const void* header, std::size_t header_bytes, std::size_t more = 0) {
    Bytes bytes(header_bytes + more);
    std::memcpy(bytes.data(), header, header_bytes);
    for (std::size_t i = header_bytes; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(7 * i + 1);
    return bytes;
}

template <class Header>
Header& in(Bytes& bytes) {
    return *reinterpret_cast<Header*>(bytes.data());
}

// behind(): the length of all that follows a header and is sealed with it. words_of(): the SlotWords in it.
inline std::size_t behind(const RtsHeader& h) {
    std::size_t bytes = h.handle_bytes;
    if (h.row == static_cast<std::uint8_t>(rndv::Row::kRtr)) bytes += sizeof(SlotWords);
    if (h.match.flags & kFlagPieces) bytes += h.inline_bytes;
    return bytes;
}
inline std::size_t behind(const CtsHeader& h) { return h.handle_bytes + h.pieces * sizeof(Piece); }

inline SlotWords& words_of(RtsHeader& h) {
    return *reinterpret_cast<SlotWords*>(reinterpret_cast<unsigned char*>(&h + 1) + h.handle_bytes);
}

inline MatchHeader match_header(Kind kind) {
    return {.kind = kind, .flags = 0, .context = 3, .source = 5, .tag = -17, .sequence = 65535, .check = 0};
}

inline Bytes good_match() {
    MatchHeader h = match_header(Kind::kMatch);
    seal(h);
    return packet_of(&h, sizeof h, 20);
}

constexpr std::uint8_t kHandle = 24;
constexpr std::uint32_t kInline = 100;

inline Bytes good_rts() {
    RtsHeader h{};
    h.match = match_header(Kind::kRts);
    h.match.flags = kFlagContiguous | kFlagGet | wish_flag(static_cast<std::uint8_t>(rndv::Wish::kCoopLoad));
    h.length = 1 << 20;
    h.send_id = 0x100000001;
    h.address = 0x7fff12345678;
    h.inline_bytes = kInline;
    h.handle_bytes = kHandle;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRget);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kReceiverReads);
    h.call = static_cast<std::uint8_t>(rndv::SendCall::kRsend);
    Bytes bytes = packet_of(&h, sizeof h, kHandle + kInline);
    seal(in<RtsHeader>(bytes));
    return bytes;
}

// Into an offered receive.
inline Bytes good_rtr() {
    Bytes bytes = good_rts();
    bytes.resize(sizeof(RtsHeader) + kHandle + sizeof(SlotWords));
    auto& h = in<RtsHeader>(bytes);
    h.match.flags |= kFlagShare;
    h.inline_bytes = 0;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRtr);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kOffered);
    words_of(h) = {rndv::kSlots - 1, 0xfffffffe, 131072, static_cast<std::uint8_t>(rndv::Split::kSenderLeads), {}};
    seal(h);
    return bytes;
}

// The payload is in a bounce buffer.
inline Bytes good_bounce() {
    RtsHeader h{};
    h.match = match_header(Kind::kRts);
    h.length = rndv::kBounceBytes;
    h.address = rndv::stamped(7, rndv::kBounces - 1);
    h.row = static_cast<std::uint8_t>(rndv::Row::kBounce);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kOneWay);
    Bytes bytes = packet_of(&h, sizeof h, 0);
    seal(in<RtsHeader>(bytes));
    return bytes;
}

inline Bytes good_cts() {
    CtsHeader h{};
    h.kind = Kind::kCts;
    h.row = static_cast<std::uint8_t>(rndv::Row::kRput);
    h.sender = 1;
    h.send_id = 0x100000001;
    h.recv_id = 0x300000007;
    h.offset = kInline;
    h.length = (1 << 20) - kInline;
    h.address = 0x7fff00000000;
    h.handle_bytes = kHandle;
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kNoGet);
    Bytes bytes = packet_of(&h, sizeof h, kHandle);
    seal(in<CtsHeader>(bytes));
    return bytes;
}

constexpr std::uint8_t kPieces = 3;

// From a buffer in pieces, which are listed after the handle.
inline Bytes good_rts_in_pieces() {
    Bytes bytes = good_rts();
    bytes.resize(sizeof(RtsHeader) + kHandle + kPieces * sizeof(Piece), 0x55);
    auto& h = in<RtsHeader>(bytes);
    h.match.flags = kFlagGet | kFlagPieces;
    h.inline_bytes = kPieces * sizeof(Piece);
    seal(h);
    return bytes;
}

// Into a buffer in pieces.
inline Bytes good_cts_in_pieces() {
    Bytes bytes = good_cts();
    bytes.resize(sizeof(CtsHeader) + kHandle + kPieces * sizeof(Piece), 0x66);
    auto& h = in<CtsHeader>(bytes);
    h.pieces = kPieces;
    seal(h);
    return bytes;
}

// Both sides copy.
inline Bytes good_coop_cts() {
    Bytes bytes = good_cts();
    auto& h = in<CtsHeader>(bytes);
    h.row = static_cast<std::uint8_t>(rndv::Row::kCoop);
    h.reason = static_cast<std::uint8_t>(rndv::Reason::kBothWait);
    h.copy = {1, 7, 65536, static_cast<std::uint8_t>(rndv::Split::kHalves), {}};
    seal(h);
    return bytes;
}

inline Bytes good_frag() {
    FragHeader h{Kind::kFrag, 0, 0, 2, 0x300000007, 4096};
    seal(h);
    return packet_of(&h, sizeof h, 50);
}

inline Bytes good_fin() {
    FinHeader h{};
    h.kind = Kind::kFin;
    h.sender = 2;
    h.id = 0x300000007;
    h.bytes = 1 << 20;
    set_fin_choice(h, static_cast<std::uint8_t>(rndv::Row::kRget),
                   static_cast<std::uint8_t>(rndv::Reason::kReceiverReads));
    seal(h);
    return packet_of(&h, sizeof h);
}

// One kind of packet, with the functions of its receiver.
struct Format {
    const char* name;
    Kind kind;
    std::size_t header_bytes;
    std::size_t sealed_bytes;  // header, handle, words of a slot and pieces
    Bytes (*good)();
    bool (*valid)(const Bytes& bytes, Damage& damage);
};

inline const Format kFormats[] = {
    {"MATCH", Kind::kMatch, sizeof(MatchHeader), sizeof(MatchHeader), good_match,
     [](const Bytes& b, Damage& d) { return valid_match(b.data(), b.size(), d); }},
    {"RTS", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader) + kHandle, good_rts,
     [](const Bytes& b, Damage& d) { return valid_rts(b.data(), b.size(), b.size(), d); }},
    {"CTS", Kind::kCts, sizeof(CtsHeader), sizeof(CtsHeader) + kHandle, good_cts,
     [](const Bytes& b, Damage& d) { return valid_cts(b.data(), b.size(), d); }},
    {"FRAG", Kind::kFrag, sizeof(FragHeader), sizeof(FragHeader), good_frag,
     [](const Bytes& b, Damage& d) { return valid_frag(b.data(), b.size(), d); }},
    {"FIN", Kind::kFin, sizeof(FinHeader), sizeof(FinHeader), good_fin,
     [](const Bytes& b, Damage& d) { return valid_fin(b.data(), b.size(), d); }},
    {"RTS_rtr", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader) + kHandle + sizeof(SlotWords), good_rtr,
     [](const Bytes& b, Damage& d) { return valid_rts(b.data(), b.size(), b.size(), d); }},
    {"RTS_bounce", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader), good_bounce,
     [](const Bytes& b, Damage& d) { return valid_rts(b.data(), b.size(), b.size(), d); }},
    {"RTS_pieces", Kind::kRts, sizeof(RtsHeader), sizeof(RtsHeader) + kHandle + kPieces * sizeof(Piece),
     good_rts_in_pieces, [](const Bytes& b, Damage& d) { return valid_rts(b.data(), b.size(), b.size(), d); }},
    {"CTS_pieces", Kind::kCts, sizeof(CtsHeader), sizeof(CtsHeader) + kHandle + kPieces * sizeof(Piece),
     good_cts_in_pieces, [](const Bytes& b, Damage& d) { return valid_cts(b.data(), b.size(), d); }},
    {"CTS_coop", Kind::kCts, sizeof(CtsHeader), sizeof(CtsHeader) + kHandle, good_coop_cts,
     [](const Bytes& b, Damage& d) { return valid_cts(b.data(), b.size(), d); }},
};

// Everything that may follow a header, and each field at its limit.
inline Bytes largest_rts(std::uint8_t flags) {
    const bool pieces = flags & kFlagPieces;
    Bytes bytes = packet_of(
        "", 0, sizeof(RtsHeader) + kMaxHandleBytes + (pieces ? kMaxPieces * sizeof(Piece) : sizeof(SlotWords)));
    RtsHeader h{};
    h.match = match_header(Kind::kRts);
    h.match.flags = flags;
    h.match.source = INT32_MAX;
    h.length = h.send_id = h.address = UINT64_MAX;
    h.inline_bytes = pieces ? kMaxPieces * sizeof(Piece) : UINT32_MAX;
    h.handle_bytes = kMaxHandleBytes;
    h.row = static_cast<std::uint8_t>(pieces ? rndv::Row::kCoop
                                             : rndv::Row::kRtr);  // an RTR names a slot, and is never in pieces
    h.reason = rndv::kReasons - 1;
    h.call = rndv::kSendCalls - 1;
    std::memcpy(bytes.data(), &h, sizeof h);
    if (!pieces) words_of(in<RtsHeader>(bytes)) = {rndv::kSlots - 1, UINT32_MAX, UINT32_MAX, rndv::kSplits - 1, {}};
    seal(in<RtsHeader>(bytes));
    return bytes;
}

inline Bytes largest_cts() {
    Bytes bytes = packet_of("", 0, sizeof(CtsHeader) + kMaxHandleBytes + kMaxPieces * sizeof(Piece));
    CtsHeader h{};
    h.kind = Kind::kCts;
    h.row = static_cast<std::uint8_t>(rndv::Row::kCoop);
    h.sender = UINT32_MAX;
    h.send_id = h.recv_id = h.address = h.length = UINT64_MAX;
    h.copy = {rndv::kSlots - 1, UINT32_MAX, UINT32_MAX, rndv::kSplits - 1, {}};
    h.handle_bytes = kMaxHandleBytes;
    h.reason = rndv::kReasons - 1;
    h.pieces = kMaxPieces;
    h.counted = 1;
    std::memcpy(bytes.data(), &h, sizeof h);
    seal(in<CtsHeader>(bytes));
    return bytes;
}

}  // namespace coop::wire::test
