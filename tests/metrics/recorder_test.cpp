#include "sim/metrics/recorder.h"

#include <doctest/doctest.h>

#include <vector>

using namespace millrace;

namespace {

/// One update whose batch has a sample for each of these steps since last use.
void update(Recorder& recorder, const std::vector<std::int64_t>& since_last_use) {
    for (const std::int64_t since : since_last_use) {
        SampleUse use;
        use.staleness = 3;
        use.since_last_use = since;
        use.earlier_in_batch = since == 0 ? 1 : 0;
        recorder.use(use);
    }
    recorder.end_batch();
    recorder.end_update(Time{}, WorkerClock(1, WorkerState::starved), TrainerClock(1, TrainerState::waiting), {}, {});
}

}  // namespace

TEST_CASE("steps since last use are summed over samples that are not new, and counted after the warm-up") {
    constexpr std::int64_t first = SampleUse::first_use;
    Recorder recorder(std::nullopt, 100);
    recorder.expect(4, 2);
    update(recorder, {first, first, first});
    update(recorder, {first, 0, 5, 5});
    update(recorder, {first, 0, 0, 2, 7});
    update(recorder, {2, 9});
    const ReplicationRecord record = recorder.take();
    REQUIRE(record.updates.size() == 4);
    std::vector<std::int64_t> new_samples;
    std::vector<std::int64_t> steps;
    std::vector<std::int64_t> unique;
    for (const UpdateRecord& update : record.updates) {
        new_samples.push_back(update.new_samples);
        steps.push_back(update.last_use_steps);
        unique.push_back(update.unique_samples);
    }
    CHECK(new_samples == std::vector<std::int64_t>{3, 4, 5, 5});
    CHECK(steps == std::vector<std::int64_t>{0, 10, 19, 30});
    CHECK(unique == std::vector<std::int64_t>{3, 6, 9, 11});
    CHECK(record.steps_since_last_use.counts() == std::vector<std::uint64_t>{2, 0, 2, 0, 0, 0, 0, 1, 0, 1});
    CHECK(record.staleness.counts() == std::vector<std::uint64_t>{0, 0, 0, 7});
}

TEST_CASE("a run of first uses only has no steps since last use") {
    Recorder recorder(std::nullopt, 100);
    recorder.expect(1, 0);
    update(recorder, {SampleUse::first_use, SampleUse::first_use});
    CHECK(recorder.take().steps_since_last_use.counts().empty());
}
