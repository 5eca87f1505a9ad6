#include "sim/sweep/sweep_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "sim/pipeline/pipeline.h"
#include "sim/sweep/row_file.h"

namespace millrace {
namespace {

BlockRow failure(BlockRow row, std::string why) {
    std::replace(why.begin(), why.end(), '\n', ' ');
    row.error = std::move(why);
    return row;
}

BlockRow with_results(BlockRow row, const RunResult& result) {
    row.warmup_updates = result.warmup_updates;
    for (const auto& [key, values] : result.samples) {
        auto& column = row.metrics[key];
        for (const double value : values) {
            column.push_back(std::isfinite(value) ? std::optional(value) : std::nullopt);
        }
    }
    row.undefined = result.undefined;
    return row;
}

/// One round's blocks, which threads take one after the other.
class RoundRunner {
   public:
    RoundRunner(const Sweep& sweep, const SweepRunOptions& options, std::int64_t round,
                std::vector<ReplicationBlock> blocks, RowCollection& rows, RowFile& file)
        : sweep_(sweep),
          options_(options),
          round_(round),
          blocks_(std::move(blocks)),
          rows_(rows),
          file_(file),
          shares_(static_cast<std::size_t>(options.jobs)),
          running_(static_cast<std::size_t>(options.jobs)) {
        double sum = 0.0;
        for (const ReplicationBlock& block : blocks_) {
            cost_before_.push_back(sum);
            const auto& scenario = sweep.designs[block.design].scenario;
            sum += scenario ? expected_cost(*scenario, block.replications) : 0.0;
        }
        cost_before_.push_back(sum);
    }

    void run(SweepOutcome& outcome) {
        std::vector<std::jthread> threads;
        for (std::size_t job = 0; job < shares_.size(); ++job) {
            threads.emplace_back([this, job] { work(job); });
        }
        std::unique_lock lock(mutex_);
        while (!finished_.wait_for(lock, std::chrono::milliseconds(100), [this] { return running_ == 0; })) {
            lock.unlock();
            show_progress();
            if (options_.work != nullptr) {
                options_.work->tick();
            }
            lock.lock();
        }
        lock.unlock();
        threads.clear();
        file_.sync();
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        outcome.blocks += blocks_done_;
        outcome.replications += replications_done_;
    }

   private:
    bool stopped() const { return failed_ || (options_.interrupt != nullptr && options_.interrupt->load()); }

    std::size_t next_ticket() { return options_.work != nullptr ? options_.work->next_ticket() : tickets_++; }

    void work(std::size_t job) {
        try {
            while (!stopped()) {
                const std::size_t ticket = next_ticket();
                if (ticket >= blocks_.size()) {
                    break;
                }
                latest_ticket_ = std::max(latest_ticket_.load(), ticket + 1);
                shares_[job].done = 0.0;
                shares_[job].cost = cost_before_[ticket + 1] - cost_before_[ticket];
                if (const std::optional<BlockRow> row = simulate(blocks_[ticket], job)) {
                    keep(*row);
                }
                shares_[job].cost = 0.0;
            }
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!failure_) {
                failure_ = std::current_exception();
            }
            failed_ = true;
        }
        if (stopped() && options_.work != nullptr) {
            options_.work->no_more_tickets();
        }
        const std::lock_guard lock(mutex_);
        --running_;
        finished_.notify_one();
    }

    void keep(const BlockRow& row) {
        file_.append(block_row_json(row));
        const std::lock_guard lock(mutex_);
        rows_.add(row, "this process");
        ++blocks_done_;
        replications_done_ += row.replications;
    }

    /// None: it was interrupted.
    std::optional<BlockRow> simulate(const ReplicationBlock& block, std::size_t job) {
        const Design& design = sweep_.designs[block.design];
        BlockRow row;
        row.design = design.id;
        row.first_replication = block.first_replication;
        row.replications = block.replications;
        if (!design.scenario) {
            return failure(row, design.error);
        }
        Scenario scenario = *design.scenario;
        scenario.replications = block.replications;
        RunOptions run;
        run.first_replication = block.first_replication;
        run.interrupt = options_.interrupt;
        run.progress = [this, job](double share) { shares_[job].done = share; };
        try {
            if (!scenario.horizon.warmup_updates) {
                scenario.horizon.warmup_updates = warmup_found_before(*design.scenario, block, run);
            }
            const RunResult result = options_.simulate(scenario, run);
            return result.interrupted ? std::nullopt : std::optional(with_results(row, result));
        } catch (const PipelineStuck& error) {
            return failure(row, error.what());
        } catch (const std::range_error& error) {
            return failure(row, error.what());
        } catch (const std::overflow_error& error) {
            return failure(row, error.what());
        } catch (const std::length_error& error) {
            return failure(row, error.what());
        }
    }

    /// The warm-up of a block that does not find its own: the first block of a design finds that of the later ones.
    /// With a learner every block is one replication, too few to find it: there the timeline of the first
    /// replications is run for it.
    std::optional<std::int64_t> warmup_found_before(const Scenario& scenario, const ReplicationBlock& block,
                                                    const RunOptions& run) {
        if (scenario.learner) {
            Scenario first = scenario;
            first.replications = sweep_.replications.least;
            std::vector<std::string> said_in_no_row;
            return automatic_warmup(first, {.interrupt = run.interrupt}, said_in_no_row);
        }
        if (block.first_replication == 0) {
            return std::nullopt;
        }
        const std::lock_guard lock(mutex_);
        return rows_.find(block.design, 0)->warmup_updates;
    }

    void show_progress() const {
        if (!options_.progress || cost_before_.back() == 0.0) {
            return;
        }
        const std::size_t begun = std::min(latest_ticket_.load(), blocks_.size());
        double cost = cost_before_[begun];
        for (const Share& share : shares_) {
            cost -= share.cost * (1.0 - share.done);
        }
        options_.progress({std::clamp(cost / cost_before_.back(), 0.0, 1.0), round_,
                           static_cast<std::int64_t>(blocks_.size() - begun)});
    }

    /// What a thread is at.
    struct Share {
        std::atomic<double> cost{0.0};  ///< of its block; 0: none
        std::atomic<double> done{0.0};  ///< share of it
    };

    const Sweep& sweep_;
    const SweepRunOptions& options_;
    std::int64_t round_;
    std::vector<ReplicationBlock> blocks_;
    std::vector<double> cost_before_;  ///< of the blocks before each one, and of all
    RowCollection& rows_;
    RowFile& file_;
    std::atomic<std::size_t> tickets_{0};
    std::atomic<std::size_t> latest_ticket_{0};  ///< for the progress display only
    std::vector<Share> shares_;                  ///< by thread
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    std::condition_variable finished_;
    std::size_t running_;
    std::exception_ptr failure_;
    std::int64_t blocks_done_ = 0;
    std::int64_t replications_done_ = 0;
};

/// The blocks of a round that this process, or its team, has to do.
std::vector<ReplicationBlock> to_do(const Round& round, const SweepRunOptions& options) {
    std::vector<ReplicationBlock> blocks;
    for (std::size_t place = 0; place < round.blocks.size(); ++place) {
        if (!round.done[place] && is_of_shard(place, options.shard, options.shards)) {
            blocks.push_back(round.blocks[place]);
        }
    }
    return blocks;
}

}  // namespace

std::string rows_file_name(const SweepRunOptions& options) {
    if (options.work != nullptr) {
        return "runs-rank-" + std::to_string(options.work->rank) + "-of-" + std::to_string(options.work->ranks) +
               ".jsonl";
    }
    return options.shards == 1
               ? "runs.jsonl"
               : "runs-" + std::to_string(options.shard) + "-of-" + std::to_string(options.shards) + ".jsonl";
}

SweepOutcome run_sweep(const Sweep& sweep, const std::string& folder, const SweepRunOptions& options) {
    const SharedWork* work = options.work;
    const auto interrupted = [&] {
        const bool here = options.interrupt != nullptr && options.interrupt->load();
        return work != nullptr ? work->any(here) : here;
    };
    RowFile file(folder + "/" + rows_file_name(options));
    Sweep grown = sweep;  // to which designs may be added
    RowCollection rows(grown);
    SweepRounds plan(grown);
    SweepOutcome outcome;
    for (bool first = true;; first = false) {
        // Every rank's rows are on disk, since it has been here after its last round; and no rank adds rows before all
        // have read, so that all find the same ones.
        outcome.interrupted = interrupted();
        if (first || work != nullptr || options.shards > 1) {
            read_rows(folder, rows);
        }
        outcome.open = plan.open_round(rows);
        if (first) {
            outcome.blocks_before = static_cast<std::int64_t>(rows.size());
            if (options.begun) {
                options.begun(outcome.blocks_before);
            }
        }
        if (outcome.interrupted || !outcome.open) {
            break;
        }
        std::vector<ReplicationBlock> blocks = to_do(*outcome.open, options);
        if (work != nullptr) {
            work->start_round();
        }
        if (blocks.empty()) {
            break;
        }
        RoundRunner(grown, options, outcome.open->number, std::move(blocks), rows, file).run(outcome);
    }
    return outcome;
}

}  // namespace millrace
