// SPDX-License-Identifier: BSD-3-Clause
//
// The list of protocols ("rows", after the table of protocols that choose() reads). To add one: write rows/NAME.cc with
// its Protocol, name the file in the core's Makefile.inc, and enter the row here four times: in Row, in the
// declaration, by number and by preference. No other list of rows exists.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coop::rndv {

struct Protocol;

// The numbers travel in control headers: append, or change the wire version.
enum class Row : std::uint8_t {
    kEager,  // the payload is in the first packet, whether or not a receive is posted
    kSend,   // RTS, CTS, then fragments that both sides copy
    kRput,   // RTS, CTS with the receive buffer, put by the sender, FIN; between two that share memory: like coop, led
             // by the sender
    kRget,   // RTS with the send buffer, get by the receiver, FIN
    kCoop,   // RTS with the send buffer, CTS with the receive buffer; both sides copy and see the end on the receiver's
             // board
    kRtr,    // the receive was offered: RTS; both sides copy at once and see the end on the receiver's board
    kBounce,  // RTS; the payload lies in memory that the sender shares, and the receiver copies it from there
    kLane,    // like eager, or like send, but through a ring that both processes share, without a transport
};

namespace rows {
extern const Protocol eager, send, rput, rget, coop, rtr, bounce, lane;

inline constexpr const Protocol* kByNumber[] = {&eager, &send, &rput, &rget, &coop, &rtr, &bounce, &lane};

// choose() takes the first that can carry the message.
inline constexpr const Protocol* kByPreference[] = {&lane, &eager, &bounce, &send, &rtr, &coop, &rput, &rget};
}  // namespace rows

constexpr std::size_t kRows = sizeof rows::kByNumber / sizeof *rows::kByNumber;
static_assert(sizeof rows::kByPreference == sizeof rows::kByNumber);

}  // namespace coop::rndv
