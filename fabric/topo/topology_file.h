// SPDX-License-Identifier: BSD-3-Clause
//
// A topology as text. 'coop-fabric show' prints a subnet in this form.
//
//     # Behind '#' is a comment. A line is a statement: a word, names, settings.
//     subnet link-layer=ib prefix=0xfe80000000000000
//     switch leaf0 leaf1 spine0 spine1
//     host   h0 h1
//     hca    h0/coop0 h1/coop0 ports=2 profile=default lmc=1 mtu=4096
//     port   h1/coop0/2 lid=0x20 lmc=2
//     link   h0/coop0/1 leaf0 rate=250MB/s latency=400ns
//     link   leaf0 spine0 rate=2GB/s latency=400ns load=500MB/s
//     route  h0/coop0/1+1 0x21 via leaf0 spine1 leaf1
//
//   subnet  once, or not at all. link-layer=ib|roce (ib), prefix= of the GIDs, islands=no|yes (no): ports that do not reach each
//           other are a mistake, or meant to be so
//   switch  one or more names
//   host    one or more names
//   hca     one or more HOST/NAME, all with the same settings: ports= 1..4 (1), profile= (default), lmc= 0..7 (0),
//           mtu= 256..4096 (4096), pkeys= the table of P_Keys (0xffff), grh=optional|required: takes packets without a
//           global routing header, or does not (optional), prefix= of the GIDs (that of the subnet). Packets between ports of
//           different prefixes need that header, too. The order is that in which a host lists its HCAs.
//   port    one or more HOST/HCA/NUMBER, where it differs from its HCA: lid= (the lowest free ones), lmc=, mtu=, pkeys=,
//           grh=, prefix=
//   link    a cable between two of HOST/HCA/NUMBER and SWITCH: rate= (unlimited), latency= (0), loss= (0), load= (none),
//           each one value, or two: from the first end to the second, and back (rate=2GB/s,500MB/s).
//           load= is what somebody else sends all the time. A port has one cable; switches may have several between them.
//   route   from source LID to destination LID, above the forwarding tables: the switches in order, SWITCH:K for the K-th
//           cable to it. A LID is a number, or a port and how much is added to its base LID. 'nowhere' instead of 'via …': packets
//           from one to the other are lost; the way back is another route.
//
// Statements may stand in any order: names are looked up at the end. Names are of letters, digits, '_', '.' and '-', and
// begin with a letter or '_'. Ways that no route names are the shortest, spread by destination (routing.h).
//
// Errors: "FILE:LINE: what is wrong".
#pragma once

#include <string>
#include <string_view>

#include "fabric/shm/segment.h"
#include "fabric/topo/topology.h"

namespace coop::fabric {

// `name` is for messages. The topology that comes out is checked, its LIDs are assigned.
Error parse_topology(const std::string& name, std::string_view text, Topology& topology);
Error read_topology_file(const std::string& path, Topology& topology);

std::string to_text(const Topology& topology);

}  // namespace coop::fabric
