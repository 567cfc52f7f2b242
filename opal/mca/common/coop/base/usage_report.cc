// SPDX-License-Identifier: BSD-3-Clause
//
// Formats the usage tables as text with aligned columns, at most 100 characters wide unless labels are very
// long. A long reason is wrapped and indented to its column.
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>

#include "coop/base/usage.h"

namespace coop {

namespace {

constexpr std::size_t kWidth = 100;

enum Column : std::size_t { kPeer, kProtocol, kSize, kMessages, kBytes, kAmount, kColumnCount };

using Line = std::array<std::string, kColumnCount + 1>;  // the last cell is the reason

constexpr std::array<bool, kColumnCount> kFlushRight = {true, false, false, true, true, true};

// Returns, for example, "1,234,567".
std::string grouped(std::uint64_t n) {
    const std::string digits = std::to_string(n);
    std::string out;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

std::string label_of(std::span<const char* const> labels, std::uint32_t i) {
    return i < labels.size() && labels[i] ? labels[i] : "#" + std::to_string(i);
}

// Collects lines, then aligns their columns.
class Table {
public:
    Table(const UsageHeading& heading, bool with_peer) : first_(with_peer ? kPeer : kProtocol) {
        lines_.push_back({"peer", heading.row, heading.size, heading.count, "bytes", "amount", "reason"});
    }

    void add(Line line) { lines_.push_back(std::move(line)); }

    std::string text() const {
        std::array<std::size_t, kColumnCount> widths{};
        for (const Line& line : lines_)
            for (std::size_t i = 0; i < kColumnCount; ++i) widths[i] = std::max(widths[i], line[i].size());
        std::string out;
        for (const Line& line : lines_) append(out, line, widths);
        return out;
    }

private:
    void append(std::string& out, const Line& line, const std::array<std::size_t, kColumnCount>& widths) const {
        std::string row;
        for (std::size_t i = first_; i < kColumnCount; ++i) {
            const std::string padding(widths[i] - line[i].size(), ' ');
            row += "  ";
            row += kFlushRight[i] ? padding + line[i] : line[i] + padding;
        }
        append_wrapped(out, row + "  ", line[kColumnCount]);
    }

    // Appends `row` and then `text`, wrapped between words at kWidth.
    static void append_wrapped(std::string& out, std::string row, std::string_view text) {
        const std::size_t indent = row.size();
        while (!text.empty()) {
            const std::string_view word = text.substr(0, text.find(' '));
            const bool starts_line = row.size() == indent;
            if (!starts_line && row.size() + 1 + word.size() > kWidth) {
                out += row + '\n';
                row.assign(indent, ' ');
            } else if (!starts_line) {
                row += ' ';
            }
            row += word;
            text.remove_prefix(std::min(word.size() + 1, text.size()));
        }
        row.erase(row.find_last_not_of(' ') + 1);
        out += row + '\n';
    }

    std::size_t first_;
    std::vector<Line> lines_;
};

struct Totals {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
};

// One line per cell in use; a peer or protocol is named in its first line only.
void add_lines(Table& table, std::span<const UsageCount> counts, const UsageShape& shape, const UsageLabels& labels,
               std::string peer, Totals& totals) {
    std::optional<std::uint32_t> last_row;
    for (const UsageCount& count : counts) {
        const std::uint32_t row = shape.row_of(count.index);
        const std::string protocol = row == last_row ? "" : label_of(labels.rows, row);
        table.add({peer, protocol, size_class_label(shape.class_of(count.index)), grouped(count.messages),
                   grouped(count.bytes), human_bytes(count.bytes),
                   label_of(labels.reasons, shape.reason_of(count.index))});
        peer.clear();
        last_row = row;
        totals.messages += count.messages;
        totals.bytes += count.bytes;
    }
}

Line totals_line(const Totals& totals) {
    return {"", "total", "", grouped(totals.messages), grouped(totals.bytes), human_bytes(totals.bytes), ""};
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
    if (bytes < 1024) return std::to_string(bytes) + " B";
    constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    std::size_t unit = 0;
    double amount = static_cast<double>(bytes) / 1024.0;
    while (amount >= 1023.95 && unit + 1 < kUnits.size()) {  // 1023.95 would be printed as 1024.0
        amount /= 1024.0;
        ++unit;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %s", amount, kUnits[unit]);
    return text.data();
}

std::string format_table(const UsageHeading& heading, const Usage& usage, const UsageLabels& labels) {
    Table table(heading, false);
    Totals totals;
    add_lines(table, usage.counts(), usage.shape(), labels, "", totals);
    if (totals.messages == 0) return heading.title + ": none\n";
    table.add(totals_line(totals));
    return heading.title + '\n' + table.text();
}

std::string format_job_table(const Usage& usage, const UsageLabels& labels, int processes) {
    const std::string title = "pml/coop: messages sent by " + std::to_string(processes) +
                              (processes == 1 ? " process" : " processes");
    return format_table({title}, usage, labels);
}

std::string format_peer_table(int rank, std::span<const PeerUsage> peers, const UsageShape& shape,
                              const UsageLabels& labels) {
    const std::string title = "pml/coop: messages sent by rank " + std::to_string(rank) + ", by peer";
    Table table({title}, true);
    Totals totals;
    for (const PeerUsage& peer : peers) add_lines(table, peer.counts, shape, labels, std::to_string(peer.peer), totals);
    if (totals.messages == 0) return title + ": none\n";
    table.add(totals_line(totals));
    return title + '\n' + table.text();
}

}  // namespace coop
