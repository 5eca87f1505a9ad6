#include "tools/millrace/learn_curve.h"

#include <cmath>
#include <stdexcept>

namespace millrace {
namespace {

using Row = LearnCurve::Row;

}  // namespace

const std::vector<CurveColumn>& curve_columns() {
    static const std::vector<CurveColumn> columns = {
        {"learner/pass@1", true},           {"learner/pass@4", true},
        {"learner/pass@16", true},          {"learner/greedy", true},
        {"learner/entropy", true},          {"learner/answer_tokens", true},
        {"learner/generated_tokens", true}, {"learner/trained_tokens", true},
        {"updates/reward", false},          {"updates/trained_sequences", false},
        {"updates/ratio_deviation", false}, {"updates/clipped_fraction", false},
        {"updates/ess_token", false},       {"updates/ess_sequence", false},
        {"updates/gradient_norm", false}};
    return columns;
}

Row json_number(std::optional<double> number) {
    return number && std::isfinite(*number) ? Row(*number) : Row(nullptr);
}

void put_evaluation(Row& row, const Evaluation& evaluation) {
    row["learner/pass@1"] = json_number(evaluation.pass_at_1);
    row["learner/pass@4"] = json_number(evaluation.pass_at_4);
    row["learner/pass@16"] = json_number(evaluation.pass_at_16);
    row["learner/greedy"] = json_number(evaluation.greedy);
    row["learner/entropy"] = json_number(evaluation.entropy);
}

void put_statistics(Row& row, const std::optional<UpdateStatistics>& statistics) {
    const auto put = [&](const char* key, double UpdateStatistics::*number) {
        row[key] = statistics ? json_number((*statistics).*number) : Row(nullptr);
    };
    put("updates/trained_sequences", &UpdateStatistics::trained_sequences);
    put("updates/ratio_deviation", &UpdateStatistics::mean_abs_ratio_minus_1);
    put("updates/clipped_fraction", &UpdateStatistics::clipped_fraction);
    put("updates/ess_token", &UpdateStatistics::ess_token);
    put("updates/ess_sequence", &UpdateStatistics::ess_sequence);
    put("updates/gradient_norm", &UpdateStatistics::gradient_norm);
}

std::string LearnCurve::add(const LearnReport& report) {
    std::string lines;
    for (std::size_t r = 0; r < report.replicas.size(); ++r) {
        const LearnReplicaReport& replica = report.replicas[r];
        const Evaluation& evaluation = replica.evaluation;
        Row row;
        row["update"] = report.update;
        row["replication"] = r;
        put_evaluation(row, evaluation);
        row["learner/answer_tokens"] = json_number(evaluation.answer_tokens);
        row["learner/generated_tokens"] = replica.generated_tokens;
        row["learner/trained_tokens"] = replica.trained_tokens;
        // Before the first update there is nothing to say of updates.
        const bool updated = report.update > 0;
        row["updates/reward"] = updated ? json_number(replica.reward) : Row(nullptr);
        put_statistics(row, updated ? std::optional(replica.mean) : std::nullopt);
        lines += row.dump() + "\n";
        rows_.push_back(std::move(row));
    }
    return lines;
}

void LearnCurve::read(std::istream& in, std::int64_t last, std::size_t replications) {
    rows_.clear();
    for (std::string line; std::getline(in, line);) {
        Row row = Row::parse(line, nullptr, false);
        if (!row.is_object() || !row.contains("update") || row.at("update").get<std::int64_t>() > last) {
            break;
        }
        rows_.push_back(std::move(row));
    }
    const bool complete = !rows_.empty() && rows_.size() % replications == 0 && last_update() == last;
    if (!complete) {
        throw std::runtime_error("its curve does not reach update " + std::to_string(last) +
                                 ", where its weights stand");
    }
}

std::int64_t LearnCurve::last_update() const {
    return rows_.back().at("update").get<std::int64_t>();
}

std::vector<std::int64_t> LearnCurve::updates() const {
    std::vector<std::int64_t> updates;
    for (const Row& row : rows_) {
        if (row.at("replication") == 0) {
            updates.push_back(row.at("update").get<std::int64_t>());
        }
    }
    return updates;
}

std::vector<double> LearnCurve::at_start(std::string_view key) const {
    return at(rows_.front().at("update").get<std::int64_t>(), key);
}

std::vector<double> LearnCurve::at_end(std::string_view key) const {
    return at(last_update(), key);
}

std::vector<double> LearnCurve::at(std::int64_t update, std::string_view key) const {
    std::vector<double> values;
    for (const Row& row : rows_) {
        const Row& number = row.at(std::string(key));
        if (row.at("update") == update && number.is_number()) {
            values.push_back(number.get<double>());
        }
    }
    return values;
}

Row LearnCurve::series(std::string_view key, std::int64_t replication) const {
    Row values = Row::array();
    for (const Row& row : rows_) {
        if (row.at("replication") == replication) {
            values.push_back(row.at(std::string(key)));
        }
    }
    return values;
}

std::string LearnCurve::text() const {
    std::string lines;
    for (const Row& row : rows_) {
        lines += row.dump() + "\n";
    }
    return lines;
}

}  // namespace millrace
