// SPDX-License-Identifier: BSD-3-Clause
//
// A topology as text. 'coop-fabric show' prints a subnet in this form.
//
//     # A comment. A statement is one line: a keyword, names, settings.
//     subnet link-layer=ib prefix=0xfe80000000000000
//     switch leaf0 leaf1 spine0 spine1
//     host   h0 h1
//     hca    h0/coop0 h1/coop0 ports=2 profile=default lmc=1 mtu=4096
//     port   h1/coop0/2 lid=0x20 lmc=2
//     link   h0/coop0/1 leaf0 rate=250MB/s latency=400ns
//     link   leaf0 spine0 rate=2GB/s latency=400ns load=500MB/s
//     route  h0/coop0/1+1 0x21 via leaf0 spine1 leaf1
//
//   subnet  at most once. link-layer=ib|roce (ib), prefix= of the GIDs, islands=no|yes (no): whether some
//           ports may be unable to reach each other
//   switch  one or more names
//   host    one or more names
//   hca     one or more HOST/NAME, all with the same settings: ports= 1..4 (1), profile= (default), lmc= 0..7 (0),
//           mtu= 256..4096 (4096), register-cost= the processor time that registering memory takes, BASE,PER_PAGE
//           (0,0), pkeys= the table of P_Keys (0xffff), grh=optional|required: whether the ports drop
//           packets without a global routing header (optional), prefix= of the GIDs (the subnet's). Packets between
//           ports with different prefixes need that header, too. A host lists its HCAs in the order of these
//           statements.
//   port    one or more HOST/HCA/NUMBER that differ from their HCA: lid= (the lowest free ones), lmc=, mtu=, pkeys=,
//           grh=, prefix=
//   link    a cable between two ends, each HOST/HCA/NUMBER or SWITCH: rate= (unlimited), latency= (0), loss= (0),
//           load= (none), each with one value, or with two: from the first end to the second, and back (rate=2GB/s,500MB/s).
//           load= is constant background traffic. A port has one cable; switches may have several between them.
//   route   from source LID to destination LID, overriding the forwarding tables: the switches in order, SWITCH:K
//           for the K-th cable to it. A LID is a number, or a port plus an offset to its base LID. With 'nowhere' instead of
//           'via …' packets from one to the other are lost; the opposite direction is another route.
//
// Statements may be in any order. A name consists of letters, digits, '_', '.' and '-' and begins with a letter or '_'.
// Other routes are the shortest, spread by destination (routing.h).
//
// Errors: "FILE:LINE: what is wrong"; without the line if the error is in no particular one.
#pragma once

#include <string>
#include <string_view>

#include "fabric/shm/segment.h"
#include "fabric/topo/topology.h"

namespace coop::fabric {

// `name` is for messages. The resulting topology has LIDs and has passed check().
Error parse_topology(const std::string& name, std::string_view text, Topology& topology);
Error read_topology_file(const std::string& path, Topology& topology);

std::string to_text(const Topology& topology);

}  // namespace coop::fabric
