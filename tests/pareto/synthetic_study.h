// Studies of which the truth is known: designs with given means and normal noise, part of it common to all designs as
// under common random numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/engine/portable_math.h"
#include "sim/engine/random.h"
#include "sim/pareto/adaptive_replication.h"
#include "sim/pareto/pareto_front.h"

namespace millrace_test {

using namespace millrace;

struct SyntheticStudy {
    std::uint64_t seed = 0;
    std::vector<ObjectivePoint> truth;
    std::size_t objectives = 2;
    double noise = 0.1;        ///< standard deviation of one replication
    double correlation = 0.5;  ///< of any two designs' noise in the same replication and objective

    double sample(std::size_t design, std::size_t objective, std::int64_t replication) const {
        const auto normal = [&](std::uint64_t entity) {
            const RandomStream stream(seed, static_cast<std::uint64_t>(replication), Purpose::test_services, entity);
            return portable::normal_quantile(Draw(stream, objective).uniform());
        };
        return truth[design][objective] +
               noise * (std::sqrt(correlation) * normal(1'000'000) + std::sqrt(1.0 - correlation) * normal(design));
    }

    void replicate(DesignProgress& progress, const ReplicationBlock& block) const {
        progress.samples.values.resize(objectives);
        for (std::int64_t r = 0; r < block.replications; ++r) {
            for (std::size_t j = 0; j < objectives; ++j) {
                progress.samples.values[j].push_back(sample(block.design, j, block.first_replication + r));
            }
        }
        progress.asked += block.replications;
    }

    std::vector<DesignProgress> run(const ReplicationPlan& plan) const {
        std::vector<DesignProgress> designs(truth.size());
        for (auto blocks = next_blocks(designs, plan); !blocks.empty(); blocks = next_blocks(designs, plan)) {
            for (const ReplicationBlock& block : blocks) {
                replicate(designs[block.design], block);
            }
        }
        return designs;
    }

    std::vector<ObjectiveSamples> samples(const ReplicationPlan& plan) const {
        std::vector<ObjectiveSamples> all;
        for (const DesignProgress& design : run(plan)) {
            all.push_back(design.samples);
        }
        return all;
    }

    std::vector<bool> on_front() const {
        std::vector<bool> result(truth.size(), false);
        for (const std::size_t i : pareto_front(truth)) {
            result[i] = true;
        }
        return result;
    }
};

/// Designs scattered above the curve y = 1 - sqrt(x), so that several are close to the front.
inline SyntheticStudy scattered_study(std::uint64_t seed, std::size_t designs) {
    SyntheticStudy study;
    study.seed = seed;
    for (std::size_t i = 0; i < designs; ++i) {
        Draw draw(RandomStream(seed, 0, Purpose::test_arrivals, i), 0);
        const double x = draw.uniform();
        study.truth.push_back({x, 1.0 - std::sqrt(x) + 0.5 * draw.uniform(), 0.0});
    }
    return study;
}

inline ReplicationPlan equal_plan(std::int64_t replications) {
    return {replications, replications, 0};
}

}  // namespace millrace_test
