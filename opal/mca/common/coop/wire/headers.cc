// SPDX-License-Identifier: BSD-3-Clause
#include "coop/wire/headers.h"

#include <utility>

#include "coop/rndv/bounce.h"
#include "coop/rndv/board.h"
#include "coop/rndv/chunk.h"
#include "coop/rndv/protocol.h"
#include "coop/sched/rail_set.h"

namespace coop::wire {
namespace {

// kFactor to a power.
template <std::size_t kExponent>
constexpr std::uint64_t kPower = kFactor* kPower<kExponent - 1>;
template <>
constexpr std::uint64_t kPower<0> = 1;

// The same as mix() with each word, as a sum of products that the CPU can compute in parallel.
template <std::size_t kWords>
std::uint64_t mix_words(std::uint64_t state, const std::uint64_t (&words)[kWords]) noexcept {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return state * kPower<kWords> + (... + (words[I] * kPower<kWords - I>));
    }
    (std::make_index_sequence<kWords>());
}

std::uint64_t mix_bytes(std::uint64_t state, const unsigned char* p, std::size_t bytes) noexcept {
    for (std::uint64_t words[4]; bytes >= sizeof words; p += sizeof words, bytes -= sizeof words) {
        std::memcpy(words, p, sizeof words);
        state = mix_words(state, words);
    }
    for (; bytes >= 8; p += 8, bytes -= 8) {
        std::uint64_t word;
        std::memcpy(&word, p, 8);
        state = mix(state, word);
    }
    if (bytes == 0) return state;
    std::uint64_t word = 0;
    std::memcpy(&word, p, bytes);
    return mix(state, word);
}

// Computes the check word over a header and the data that follows it, `bytes` bytes in total. The header's own
// check word, two bytes at `kCheckAt`, counts as zero.
template <class Header, std::size_t kCheckAt>
std::uint16_t check_of(const Header& header, std::size_t bytes) noexcept {
    static_assert(sizeof(Header) % 8 == 0);
    std::uint64_t words[sizeof(Header) / 8];
    std::memcpy(words, &header, sizeof words);
    words[kCheckAt / 8] &= ~field_at(kCheckAt % 8, std::uint16_t{0xFFFF});
    const std::uint64_t state = mix_words(kSeed ^ (std::uint64_t{bytes} << 32), words);
    return fold(mix_bytes(state, reinterpret_cast<const unsigned char*>(&header + 1), bytes - sizeof words));
}

// Returns the protocol of a row, or null if the row is out of range.
const rndv::Protocol* protocol_of(std::uint8_t row) noexcept {
    return row < rndv::kRows ? &rndv::protocol(static_cast<rndv::Row>(row)) : nullptr;
}

// Bytes between the header and its payload.
std::size_t behind(const RtsHeader& h) noexcept {
    const rndv::Protocol* protocol = protocol_of(h.row);
    return h.handle_bytes + (protocol && protocol->starts_at_once ? sizeof(SlotWords) : 0) +
           (h.match.flags & kFlagPieces ? h.inline_bytes : 0);
}
std::size_t behind(const CtsHeader& h) noexcept { return h.handle_bytes + h.pieces * sizeof(Piece); }

std::uint16_t check_of(const RtsHeader& h) noexcept {
    return check_of<RtsHeader, offsetof(RtsHeader, match) + offsetof(MatchHeader, check)>(h, sizeof h + behind(h));
}
std::uint16_t check_of(const CtsHeader& h) noexcept {
    return check_of<CtsHeader, offsetof(CtsHeader, check)>(h, sizeof h + behind(h));
}
std::uint16_t check_of(const FragHeader& h) noexcept {
    return check_of<FragHeader, offsetof(FragHeader, check)>(h, sizeof h);
}
std::uint16_t check_of(const FinHeader& h) noexcept {
    return check_of<FinHeader, offsetof(FinHeader, check)>(h, sizeof h);
}

static_assert(rndv::kReasons < 255 && rndv::kRows <= 256);
static_assert(kMaxFinParts >= sched::kMaxRails);

// Checks fields against bounds and records the first one out of bounds.
class Fields {
public:
    Fields(Kind kind, Damage& damage) noexcept : kind_(kind), damage_(damage) {}

    Fields& in(const char* field, std::uint64_t value, std::uint64_t min, std::uint64_t max) noexcept {
        if (ok_ && (value < min || value > max)) {
            damage_ = {kind_, field, value, min, max};
            ok_ = false;
        }
        return *this;
    }

    bool ok() const noexcept { return ok_; }

private:
    Kind kind_;
    Damage& damage_;
    bool ok_ = true;
};

template <class Header>
bool long_enough(Kind kind, std::size_t first_bytes, Damage& damage) noexcept {
    return Fields(kind, damage).in("packet length", first_bytes, sizeof(Header), UINT64_MAX).ok();
}

std::uint64_t as_number(Kind kind) noexcept { return static_cast<std::uint64_t>(kind); }

bool kind_is(Kind kind, Kind seen, Damage& damage) noexcept {
    return Fields(kind, damage).in("kind", as_number(seen), as_number(kind), as_number(kind)).ok();
}

void check_matches(Fields& fields, std::uint16_t seen, std::uint16_t computed) noexcept {
    fields.in("check word", seen, computed, computed);
}

// Whether a receiver may grant the protocol. The others name their slot or buffer in the RTS.
bool is_granted(const rndv::Protocol& protocol) noexcept { return !protocol.starts_at_once && !protocol.uses_bounce; }

// Whether the CTS names a slot of the receiver's board.
bool has_slot(const CtsHeader& h, const rndv::Protocol& protocol) noexcept {
    return protocol.mover({protocol.row, {}, static_cast<rndv::Split>(h.copy.split)}) == rndv::Mover::kBoth;
}

// Split, slot and chunk size must be zero unless the copy is cooperative; the generation is not checked here.
void slot_fields(Fields& fields, bool cooperative, const SlotWords& words) noexcept {
    fields.in("split", words.split, 0, cooperative ? rndv::kSplits - 1 : 0)
        .in("slot", words.slot, 0, cooperative ? rndv::kSlots - 1 : 0)
        .in("chunk bytes", words.chunk, cooperative ? 1 : 0, cooperative ? UINT32_MAX : 0);
}

// The whole message is in a bounce buffer; the RTS carries no payload.
void bounce_fields(Fields& fields, const RtsHeader& h) noexcept {
    fields.in("length", h.length, 1, rndv::kBounceBytes)
        .in("bounce buffer", rndv::value_of(h.address), 0, rndv::kBounces - 1)
        .in("handle bytes", h.handle_bytes, 0, 0)
        .in("inline bytes", h.inline_bytes, 0, 0)
        .in("send id", h.send_id, 0, 0);
}

// Whether an RTS is valid that is like most: without pieces, and not of a row that names a slot or a bounce buffer. Its
// bounds are one condition. valid_rts() judges the others, and finds out which field is wrong.
bool plain_rts_is_whole(const RtsHeader& h, std::size_t first_bytes, std::size_t packet_bytes) noexcept {
    const std::size_t bytes = sizeof h + h.handle_bytes;
    const bool in_bounds = (h.match.kind == Kind::kRts) & (h.match.source >= 0) & ((h.match.flags & kFlagPieces) == 0) &
                           (h.row < rndv::kRows) & (h.reason < rndv::kReasons) &
                           (wish_of(h.match.flags) < rndv::kWishes) & (h.call < rndv::kSendCalls) &
                           (h.handle_bytes <= kMaxHandleBytes) & (bytes <= first_bytes) & (h.send_id != 0) &
                           (h.inline_bytes == packet_bytes - bytes) & (h.inline_bytes <= h.length);
    if (!in_bounds) return false;
    const rndv::Protocol& protocol = rndv::protocol(static_cast<rndv::Row>(h.row));
    if (protocol.starts_at_once || protocol.uses_bounce) return false;
    return h.match.check == check_of<RtsHeader, offsetof(RtsHeader, match) + offsetof(MatchHeader, check)>(h, bytes);
}

void match_fields(Fields& fields, const MatchHeader& h) noexcept {
    fields.in("source rank", static_cast<std::uint32_t>(h.source), 0, INT32_MAX);
}

}  // namespace

const char* name(Kind kind) noexcept {
    switch (kind) {
    case Kind::kMatch: return "MATCH";
    case Kind::kRts: return "RTS";
    case Kind::kCts: return "CTS";
    case Kind::kFrag: return "FRAG";
    case Kind::kFin: return "FIN";
    }
    return "unknown";
}

std::size_t control_bytes(const RtsHeader& h) noexcept { return sizeof h + behind(h); }
std::size_t control_bytes(const CtsHeader& h) noexcept { return sizeof h + behind(h); }

void seal(MatchHeader& h) noexcept { seal_match(h); }
void seal(RtsHeader& h) noexcept { h.match.check = check_of(h); }
void seal(CtsHeader& h) noexcept { h.check = check_of(h); }
void seal(FragHeader& h) noexcept { h.check = check_of(h); }
void seal(FinHeader& h) noexcept { h.check = check_of(h); }

bool valid_match(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept {
    if (!long_enough<MatchHeader>(Kind::kMatch, first_bytes, damage)) return false;
    const auto& h = *static_cast<const MatchHeader*>(bytes);
    if (!kind_is(Kind::kMatch, h.kind, damage)) return false;
    Fields fields(Kind::kMatch, damage);
    match_fields(fields, h);
    check_matches(fields, h.check, match_check(h));
    return fields.ok();
}

bool valid_rts(const void* bytes, std::size_t first_bytes, std::size_t packet_bytes, Damage& damage) noexcept {
    if (!long_enough<RtsHeader>(Kind::kRts, first_bytes, damage)) return false;
    const auto& h = *static_cast<const RtsHeader*>(bytes);
    if (plain_rts_is_whole(h, first_bytes, packet_bytes)) return true;
    if (!kind_is(Kind::kRts, h.match.kind, damage)) return false;
    Fields fields(Kind::kRts, damage);
    match_fields(fields, h.match);
    const bool in_pieces = h.match.flags & kFlagPieces;
    const rndv::Protocol* const protocol = protocol_of(h.row);
    fields.in("row", h.row, 0, rndv::kRows - 1)
        .in("reason", h.reason, 0, rndv::kReasons - 1)
        .in("wish", wish_of(h.match.flags), 0, rndv::kWishes - 1)
        .in("call", h.call, 0, rndv::kSendCalls - 1)
        .in("handle bytes", h.handle_bytes, 0, kMaxHandleBytes)
        .in("handle bytes (of words)", in_pieces ? h.handle_bytes % 8 : 0, 0, 0)
        .in("row (of pieces)", in_pieces && protocol && !protocol->may_be_in_pieces ? h.row : 0, 0, 0)
        .in("pieces", in_pieces ? h.inline_bytes : sizeof(Piece), sizeof(Piece), kMaxPieces * sizeof(Piece))
        .in("handle bytes", sizeof h + behind(h), 0, first_bytes);
    if (!fields.ok()) return false;
    if (protocol->starts_at_once) slot_fields(fields, true, slot_words(h));
    const std::size_t payload = packet_bytes - sizeof h - behind(h);
    if (in_pieces) fields.in("pieces", h.inline_bytes % sizeof(Piece), 0, 0).in("inline bytes", payload, 0, 0);
    else fields.in("inline bytes", h.inline_bytes, payload, payload).in("inline bytes", h.inline_bytes, 0, h.length);
    if (protocol->uses_bounce) bounce_fields(fields, h);
    else fields.in("send id", h.send_id, 1, UINT64_MAX);
    if (fields.ok()) check_matches(fields, h.match.check, check_of(h));
    return fields.ok();
}

bool valid_cts(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept {
    if (!long_enough<CtsHeader>(Kind::kCts, first_bytes, damage)) return false;
    const auto& h = *static_cast<const CtsHeader*>(bytes);
    if (!kind_is(Kind::kCts, h.kind, damage)) return false;
    Fields fields(Kind::kCts, damage);
    const rndv::Protocol* const protocol = protocol_of(h.row);
    fields.in("row", h.row, 0, rndv::kRows - 1)
        .in("reason", h.reason, 0, rndv::kReasons - 1)
        .in("handle bytes", h.handle_bytes, 0, kMaxHandleBytes)
        .in("pieces", h.pieces, 0, kMaxPieces)
        .in("counted", h.counted, 0, 1)
        .in("sees", h.sees, 0, 1)
        .in("offloads", h.offloads, 0, protocol && protocol->allows_hcas ? 1 : 0)
        .in("handle bytes (of words)", h.pieces ? h.handle_bytes % 8 : 0, 0, 0)
        .in("handle bytes", sizeof h + behind(h), 0, first_bytes)
        .in("length", h.length, 0, UINT64_MAX - h.offset);
    if (!fields.ok()) return false;
    fields.in("row (of a grant)", is_granted(*protocol) ? 0 : h.row, 0, 0);
    slot_fields(fields, has_slot(h, *protocol), h.copy);
    if (fields.ok()) check_matches(fields, h.check, check_of(h));
    return fields.ok();
}

bool valid_frag(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept {
    if (!long_enough<FragHeader>(Kind::kFrag, first_bytes, damage)) return false;
    const auto& h = *static_cast<const FragHeader*>(bytes);
    if (!kind_is(Kind::kFrag, h.kind, damage)) return false;
    Fields fields(Kind::kFrag, damage);
    check_matches(fields, h.check, check_of(h));
    return fields.ok();
}

bool valid_fin(const void* bytes, std::size_t first_bytes, Damage& damage) noexcept {
    if (!long_enough<FinHeader>(Kind::kFin, first_bytes, damage)) return false;
    const auto& h = *static_cast<const FinHeader*>(bytes);
    if (!kind_is(Kind::kFin, h.kind, damage)) return false;
    Fields fields(Kind::kFin, damage);
    fields.in("FINs", fin_parts(h), 0, h.what != 0 ? kMaxFinParts : 0).in("sees", fin_sees(h), 0, h.what != 0 ? 1 : 0);
    if (h.what == 0) fields.in("bytes", h.bytes, 0, kMaxMessageBytes);
    else fields.in("row", fin_row(h), 0, rndv::kRows - 1).in("reason", fin_reason(h), 0, rndv::kReasons - 1);
    check_matches(fields, h.check, check_of(h));
    return fields.ok();
}

}  // namespace coop::wire
