// What the learners of a run's replications reported while they learnt, and what it comes to: rows, metrics, quartiles
// over models, a table.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/curve_point.h"
#include "sim/run/replications.h"

namespace millrace {

/// The learning curve of one model: one replica of one replication, with prompts and samples of its own.
class ModelCurve {
   public:
    using Row = nlohmann::ordered_json;

    void add(Row row) { rows_.push_back(std::move(row)); }
    bool empty() const { return rows_.empty(); }
    const std::vector<Row>& rows() const { return rows_; }

    /// A column; not a number where a row has none.
    std::vector<double> column(std::string_view key) const;
    /// Mean of the last three evaluations, of fewer where there were fewer after the start.
    double at_end(std::string_view key) const;

    /// Units until the smoothed pass@1 reaches the target; infinite: never.
    double units_to(double target_pass_at_1) const;
    /// The same for 98 % of its own best; infinite when that is its start, as then nothing was gained.
    double units_to_98_percent_of_best() const;
    /// By metric key; infinite where the target was not reached.
    std::map<std::string, double> metrics(double target_pass_at_1) const;

   private:
    std::vector<Row> rows_;  ///< one per evaluation, the first before learning
};

/// The curves of all models of a run.
class PipelineCurves {
   public:
    explicit PipelineCurves(const Scenario& scenario);

    /// Adds a replication's rows, one per replica, and returns them as text. Not from several threads at once.
    std::string add(std::int64_t replication, const CurvePoint& point);
    /// The replication came to its end: only such ones count for metrics and quartiles.
    void complete(std::int64_t replication) { complete_[static_cast<std::size_t>(replication)] = true; }

    /// All rows, one JSON line each, by replication, then by replica, then by update.
    std::string text() const;

    /// Puts metrics, samples and warnings into the result. A replication's sample is the mean over its replicas, as
    /// they share a timeline; infinite when one of them never reaches the target.
    void put_into(RunResult& result) const;

    /// The curves, with what each came to.
    nlohmann::ordered_json models() const;
    /// Median and quartiles over the models that came to their end.
    nlohmann::ordered_json quartiles() const;
    /// A line per model, and one for all.
    std::string table() const;

   private:
    struct Model {
        std::int64_t replication = 0;
        ModelCurve curve;
    };

    bool ended(const Model& model) const {
        return complete_[static_cast<std::size_t>(model.replication)] && !model.curve.empty();
    }
    /// A number of every model that came to its end.
    template <typename Number>
    std::vector<double> of_all(const Number& number) const;
    void put_budget_into(RunResult& result) const;
    void warn(RunResult& result) const;

    const Scenario& scenario_;
    double target_;
    std::vector<Model> models_;   ///< by replication, then by replica
    std::vector<bool> complete_;  ///< by replication
};

}  // namespace millrace
