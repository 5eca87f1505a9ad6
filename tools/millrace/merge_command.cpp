#include "tools/millrace/merge_command.h"

#include <charconv>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "sim/sweep/rounds.h"
#include "sim/sweep/row_collection.h"
#include "tools/millrace/counted.h"
#include "tools/millrace/sweep_folder.h"

namespace millrace {
namespace {

/// The number of shards that the sweep was run with, from the names of the files, runs-2-of-5.jsonl; none when it was
/// run in other ways as well.
std::optional<std::int64_t> number_of_shards(const std::string& folder) {
    std::set<std::int64_t> numbers;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with("runs") || !name.ends_with(".jsonl")) {
            continue;
        }
        std::int64_t shards = 0;
        if (const std::size_t of = name.find("-of-"); of != std::string::npos && !name.starts_with("runs-rank")) {
            std::from_chars(name.data() + of + 4, name.data() + name.size(), shards);
        }
        numbers.insert(shards);
    }
    return numbers.size() == 1 && *numbers.begin() > 0 ? std::optional(*numbers.begin()) : std::nullopt;
}

/// "1-3,5", as sbatch --array takes it.
std::string ranges(const std::set<std::int64_t>& numbers) {
    std::string text;
    for (auto first = numbers.begin(); first != numbers.end();) {
        auto last = first;
        auto next = std::next(last);
        while (next != numbers.end() && *next == *last + 1) {
            last = next++;
        }
        text += (text.empty() ? "" : ",") + std::to_string(*first);
        if (*last > *first) {
            text += "-" + std::to_string(*last);
        }
        first = next;
    }
    return text;
}

void say_what_is_missing(const std::string& folder, const Sweep& sweep, const Round& round) {
    std::set<std::size_t> designs;
    std::set<std::int64_t> shards;
    const std::optional<std::int64_t> all_shards = number_of_shards(folder);
    for (std::size_t place = 0; place < round.blocks.size(); ++place) {
        if (round.done[place]) {
            continue;
        }
        designs.insert(round.blocks[place].design);
        for (std::int64_t shard = 1; shard <= all_shards.value_or(0); ++shard) {
            if (is_of_shard(place, shard, *all_shards)) {
                shards.insert(shard);
            }
        }
    }
    const std::size_t missing = round.missing();
    if (round.number > 1 && missing == round.blocks.size()) {
        const bool refining = sweep.designs[*designs.begin()].refined && round.blocks.front().first_replication == 0;
        std::cerr << "Another round is needed, of " << missing << " blocks for " << designs.size()
                  << (refining ? " designs added in gaps of the frontier" : " designs that are not decided yet")
                  << " (round " << round.number << "; " << round.earlier_blocks << " blocks are done). ";
    } else {
        std::cerr << missing << " of " << round.blocks.size() << " blocks are missing, of " << designs.size() << " of "
                  << sweep.designs.size() << " designs";
        if (round.number > 1) {
            std::cerr << " (round " << round.number << "; the rounds before are complete)";
        }
        std::cerr << ". ";
    }
    if (shards.empty()) {
        std::cerr << "Start the sweep again: it goes on with what is there.\n";
    } else {
        std::cerr << "Start these shards of " << *all_shards << " again: " << ranges(shards) << "\n";
    }
}

}  // namespace

int merge_command(const MergeOptions& options) {
    Sweep sweep = read_sweep_folder(options.folder);
    RowCollection rows(sweep);
    read_rows(options.folder, rows);
    const std::optional<Round> open = SweepRounds(sweep).open_round(rows);
    if (open) {
        say_what_is_missing(options.folder, sweep, *open);
        if (!options.partial) {
            return exit_failed;
        }
        if (rows.waiting() > 0) {
            std::cerr << "Left out: " << counted(rows.waiting(), "row")
                      << " of designs that follow from missing rows.\n";
        }
    }
    write_merged_rows(options.folder, rows);
    std::cout << counted(rows.size(), "row") << " of " << counted(sweep.designs.size(), "design") << ": "
              << merged_rows_file(options.folder) << '\n';
    return exit_done;
}

}  // namespace millrace
