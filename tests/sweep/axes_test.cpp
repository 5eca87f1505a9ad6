#include "sim/sweep/axes.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "sim/sweep/sweep_vocabulary.h"

namespace millrace {
namespace {

using Values = std::vector<double>;

TEST_CASE("a range has the decimal numbers that a person would write") {
    CHECK(range_values(1, 7, 1) == Values{1, 2, 3, 4, 5, 6, 7});
    CHECK(range_values(0.1, 0.7, 0.1) == Values{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7});
    CHECK(range_values(-0.3, 0.3, 0.15) == Values{-0.3, -0.15, 0, 0.15, 0.3});
    CHECK(range_values(1e-7, 5e-7, 2e-7) == Values{1e-7, 3e-7, 5e-7});
    CHECK(range_values(0, 1e20, 5e19) == Values{0, 5e19, 1e20});
    CHECK(range_values(0, 0, 3) == Values{0});
}

TEST_CASE("a range ends before what is larger than its end") {
    CHECK(range_values(1, 8, 3) == Values{1, 4, 7});
    CHECK(range_values(1, 1.9, 1) == Values{1});
    CHECK(range_values(0, 0.3, 0.2) == Values{0, 0.2});
}

TEST_CASE("a range whose numbers take too many digits together has no values") {
    CHECK(range_values(1, 1 + 0x1p-52, 1e-17).empty());
    CHECK(range_values(1e300, 1e301, 1e-300).empty());
}

TEST_CASE("a logarithmic range with whole ends has whole numbers, each once") {
    CHECK(log_range_values(64, 32768, 10) == Values{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768});
    CHECK(log_range_values(1, 1000, 4) == Values{1, 10, 100, 1000});
    CHECK(log_range_values(1, 4, 20) == Values{1, 2, 3, 4});
    CHECK(log_range_values(5, 5, 3) == Values{5});
}

TEST_CASE("a logarithmic range has equal ratios and keeps its ends") {
    CHECK(log_range_values(0.01, 100, 5) == Values{0.01, 0.1, 1, 10, 100});
    CHECK(log_range_values(0.1, 1, 3) == Values{0.1, 0.316228, 1});
    const Values values = log_range_values(0.123456789, 9.87654321, 12);
    REQUIRE(values.size() == 12);
    CHECK(values.front() == 0.123456789);
    CHECK(values.back() == 9.87654321);
    const double ratio = std::pow(9.87654321 / 0.123456789, 1.0 / 11.0);
    for (std::size_t i = 1; i < values.size(); ++i) {
        CHECK(values[i] / values[i - 1] == doctest::Approx(ratio).epsilon(1e-5));
    }
    CHECK(log_range_values(1e-300, 1e300, 3) == Values{1e-300, 1, 1e300});
}

TEST_CASE("paths of all kinds of objects, of laws and of lists are paths of a scenario") {
    for (const char* const path :
         {"seed", "store", "store.order", "store.sampling", "store.eviction.delta", "workers.service.gpu_s_per_rollout",
          "workers.service.gpu_s_per_rollout.cv", "workers.length.of.p99", "workers.length.components.0.weight",
          "workers.length.quantiles.3.1", "noise.sigma2.points.2.1", "published.0.value", "learner.objective.clip_high",
          "admission.steps_ahead"}) {
        CAPTURE(std::string(path));
        CHECK(check_scenario_path(path).message.empty());
    }
    CHECK(check_scenario_path("$schema").message == "no scenario has \"$schema\"");
}

TEST_CASE("of a path that no scenario has, the wrong step and the nearest path are named") {
    const PathFault misspelt = check_scenario_path("workers.service.per_sequenc_s");
    CHECK(misspelt.offset == 16);
    CHECK(misspelt.suggestion == "workers.service.per_sequence_s");
    CHECK(check_scenario_path("worker.service.kind").suggestion == "workers.service.kind");
    CHECK(check_scenario_path("capacity").suggestion == "store.capacity");
    CHECK(check_scenario_path("trainers-count").suggestion == "trainers.count");
    CHECK(check_scenario_path("workers.length.of.p98").suggestion == "workers.length.of.p99");
    CHECK(check_scenario_path("xyzzy.plugh").suggestion.empty());
    CHECK(check_scenario_path("learner.evaluation.every_updates").suggestion == "learner.evaluation.every_units");
    CHECK(check_scenario_path("workers..count").offset == 8);
    CHECK(check_scenario_path("workers.count.").offset == 14);
}

TEST_CASE("what lies in what") {
    CHECK(lies_in("store.capacity", "store"));
    CHECK(lies_in("store", "store"));
    CHECK_FALSE(lies_in("store", "store.capacity"));
    CHECK_FALSE(lies_in("storehouse", "store"));
}

}  // namespace
}  // namespace millrace
