#include "sim/sweep/rounds.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/run/formulas.h"
#include "sim/sweep/design_record.h"
#include "sim/sweep/sweep_growth.h"

namespace millrace {
namespace {

/// A learner's update is a thousand rollouts' worth of simulation or more.
constexpr double learner_cost = 1e3;

/// A design's objectives in one row, each turned so that less is better, are added to what is known of it. A design
/// that has failed, or has no value of an objective in some replication, gets no more replications.
void add_to(DesignProgress& progress, const std::vector<SweepObjective>& objectives, const BlockRow& row) {
    progress.asked += row.replications;
    progress.failed = progress.failed || !append_objectives(row, objectives, progress.samples);
    if (progress.failed) {
        progress.samples.values.clear();
    }
}

/// As they are run: of a design with a learner each replication is a block. It takes minutes, and what is lost when a
/// process ends should be little.
std::vector<ReplicationBlock> cut_up(const Sweep& sweep, const std::vector<ReplicationBlock>& planned) {
    std::vector<ReplicationBlock> blocks;
    for (const ReplicationBlock& block : planned) {
        const auto& scenario = sweep.designs[block.design].scenario;
        const std::int64_t step = scenario && scenario->learner ? 1 : block.replications;
        for (std::int64_t done = 0; done < block.replications; done += step) {
            blocks.push_back({block.design, block.first_replication + done, step});
        }
    }
    return blocks;
}

/// Impossible designs have rows that say why, and these take nothing from the budget.
ReplicationPlan plan_of(const Sweep& sweep) {
    ReplicationPlan plan = sweep.replications;
    if (plan.least < plan.most) {
        plan.budget += plan.least * std::count_if(sweep.designs.begin(), sweep.designs.end(),
                                                  [](const Design& design) { return !design.scenario; });
    }
    return plan;
}

void put_long_ones_first(const Sweep& sweep, std::vector<ReplicationBlock>& blocks) {
    std::vector<std::pair<double, ReplicationBlock>> by_cost;
    by_cost.reserve(blocks.size());
    for (const ReplicationBlock& block : blocks) {
        const auto& scenario = sweep.designs[block.design].scenario;
        by_cost.emplace_back(scenario ? expected_cost(*scenario, block.replications) : 0.0, block);
    }
    std::stable_sort(by_cost.begin(), by_cost.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = by_cost[i].second;
    }
}

/// Whether the block's row is there.
bool is_done(const Sweep& sweep, const RowCollection& rows, const ReplicationBlock& block) {
    const BlockRow* row = rows.find(block.design, block.first_replication);
    if (row != nullptr && row->replications != block.replications) {
        throw std::runtime_error("the row of the design " + sweep.designs[block.design].id + " from replication " +
                                 std::to_string(block.first_replication) + " has " + std::to_string(row->replications) +
                                 " replications where the sweep plans " + std::to_string(block.replications) +
                                 ": the rows were written by another version of millrace. Start in a new folder.");
    }
    return row != nullptr;
}

}  // namespace

std::size_t Round::missing() const {
    return static_cast<std::size_t>(std::count(done.begin(), done.end(), false));
}

double expected_cost(const Scenario& scenario, std::int64_t replications) {
    const FirstOrderCosts costs = first_order_costs(scenario.pipeline);
    const auto batch = static_cast<double>(scenario.pipeline.trainers.batch);
    auto updates = static_cast<double>(scenario.horizon.updates);
    const double split =
        static_cast<double>(scenario.pipeline.workers.count) / static_cast<double>(scenario.pipeline.trainers.count);
    // Rollouts per update: trained on, and made while the update takes its time.
    double per_update = batch * (1.0 + (costs.mu > 0.0 ? std::min(split / costs.mu, 100.0) : 0.0));
    if (scenario.learner) {
        if (scenario.horizon.units) {
            updates = std::min(updates, *scenario.horizon.units / (1.0 + costs.mu));
        }
        per_update *= learner_cost * static_cast<double>(scenario.learner->replicas);
    }
    return updates * per_update * static_cast<double>(replications);
}

SweepRounds::SweepRounds(Sweep& sweep)
    : sweep_(sweep), progress_(sweep.designs.size()), has_all_designs_(sweep.most_added == 0) {
    round_.blocks = cut_up(sweep, next_blocks(progress_, plan_of(sweep)));
}

std::optional<Round> SweepRounds::open_round(RowCollection& rows) {
    const auto done = [&](const ReplicationBlock& block) { return is_done(sweep_, rows, block); };
    while (!round_.blocks.empty()) {
        if (!std::all_of(round_.blocks.begin(), round_.blocks.end(), done)) {
            Round open = round_;
            put_long_ones_first(sweep_, open.blocks);
            std::transform(open.blocks.begin(), open.blocks.end(), std::back_inserter(open.done), done);
            return open;
        }
        round_.earlier_blocks += static_cast<std::int64_t>(round_.blocks.size());
        for (const ReplicationBlock& block : round_.blocks) {
            add_to(progress_[block.design], sweep_.objectives, *rows.find(block.design, block.first_replication));
        }
        if (!has_all_designs_) {
            // Before this point each design has its first replications and no more, so no row is missing.
            std::vector<Design> wave = next_wave(sweep_, rows).value();
            has_all_designs_ = wave.empty();
            add_wave(sweep_, std::move(wave), rows);
            progress_.resize(sweep_.designs.size());
        }
        ++round_.number;
        round_.blocks = cut_up(sweep_, next_blocks(progress_, plan_of(sweep_)));
    }
    rows.refuse_waiting();
    if (static_cast<std::size_t>(round_.earlier_blocks) != rows.size()) {
        throw std::runtime_error("there are " + std::to_string(rows.size()) + " rows where the sweep plans " +
                                 std::to_string(round_.earlier_blocks) +
                                 ": the rows were written by another version of millrace. Start in a new folder.");
    }
    return std::nullopt;
}

}  // namespace millrace
