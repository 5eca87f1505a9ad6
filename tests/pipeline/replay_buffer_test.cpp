#include "sim/pipeline/replay_buffer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/pipeline/rollout_use.h"
#include "sim/pipeline/transfer_queue.h"

using namespace millrace;

namespace {

RolloutIndex add(Store& store, RolloutPool& pool, std::uint64_t id, bool correct, std::vector<RolloutIndex>& removed) {
    const RolloutIndex index = pool.acquire();
    pool[index].id = id;
    pool[index].correct = correct;
    store.put({&index, 1}, removed);
    return index;
}

/// Ids of everything in the buffer, found by drawing all of it without replacement.
std::set<std::uint64_t> contents(const ReplayBufferConfig& config, const std::vector<bool>& correct) {
    RolloutPool pool;
    ReplayBufferConfig whole = config;
    whole.sampling = Sampling::uniform_without_replacement;
    std::vector<RolloutIndex> removed;
    ReplayBuffer buffer(whole, 1, 1, pool, 1, 0);
    std::set<std::uint64_t> kept;
    for (std::size_t id = 0; id < correct.size(); ++id) {
        add(buffer, pool, id, correct[id], removed);
        kept.insert(id);
    }
    for (const RolloutIndex gone : removed) {
        kept.erase(pool[gone].id);
    }
    CHECK(buffer.size() == static_cast<std::int64_t>(kept.size()));
    return kept;
}

}  // namespace

TEST_CASE("the buffer keeps the freshest N rollouts") {
    CHECK(contents({.capacity = 4}, std::vector<bool>(10, false)) == std::set<std::uint64_t>{6, 7, 8, 9});
}

TEST_CASE("positive bias keeps what the paper's example keeps") {
    // N = 8, delta = 0.75; rollouts t-9 ... t with outcomes - + + - + + + + - -.
    const std::vector<bool> outcomes = {false, true, true, false, true, true, true, true, false, false};
    const auto kept = contents({.capacity = 8, .positive_bias_delta = 0.75}, outcomes);
    std::set<std::uint64_t> expected;
    for (const int age : {8, 7, 5, 4, 3, 2, 1, 0}) {
        expected.insert(static_cast<std::uint64_t>(9 - age));
    }
    CHECK(kept == expected);
}

TEST_CASE("positive bias drops the oldest correct rollout when its share is full") {
    const std::vector<bool> outcomes(20, true);
    // All correct: the same as plain first in, first out.
    CHECK(contents({.capacity = 5, .positive_bias_delta = 0.4}, outcomes) ==
          std::set<std::uint64_t>{15, 16, 17, 18, 19});
}

TEST_CASE("steps since last use: once in a batch and three times two updates later is new, 2, 0, 0") {
    Rollout rollout;
    rollout.version_started = 1;
    rollout.version_stored = 2;
    const SampleUse first = use_rollout(rollout, 3);
    CHECK(first.since_last_use == SampleUse::first_use);
    CHECK(first.staleness == 2);
    CHECK(first.pre_store == 1);
    CHECK(use_rollout(rollout, 5).since_last_use == 2);
    CHECK(use_rollout(rollout, 5).since_last_use == 0);
    const SampleUse last = use_rollout(rollout, 5);
    CHECK(last.since_last_use == 0);
    CHECK(last.earlier_in_batch == 2);
    CHECK(rollout.uses == 4);
}

TEST_CASE("every rollout of a full buffer is equally likely to be drawn") {
    for (const Sampling sampling : {Sampling::uniform_with_replacement, Sampling::uniform_without_replacement}) {
        RolloutPool pool;
        std::vector<RolloutIndex> removed;
        ReplayBuffer buffer({.capacity = 20, .sampling = sampling}, 8, 1, pool, 3, 0);
        for (std::uint64_t id = 0; id < 33; ++id) {
            add(buffer, pool, id, false, removed);
        }
        std::map<std::uint64_t, int> drawn;
        constexpr int batches = 20'000;
        for (int version = 0; version < batches; ++version) {
            std::vector<RolloutIndex> batch;
            std::vector<RolloutIndex> consumed;
            buffer.draw_batch(version, batch, consumed);
            CHECK(consumed.empty());
            for (const RolloutIndex index : batch) {
                ++drawn[pool[index].id];
            }
        }
        REQUIRE(drawn.size() == 20);
        double chi_squared = 0.0;
        const double expected = batches * 8.0 / 20.0;
        for (const auto& [id, count] : drawn) {
            CHECK(id >= 13);
            chi_squared += (count - expected) * (count - expected) / expected;
        }
        CHECK(chi_squared < 43.8);  // 0.1 % point of chi-squared with 19 degrees of freedom
    }
}

TEST_CASE("sampling without replacement repeats nothing within a batch; with replacement it does") {
    RolloutPool pool;
    std::vector<RolloutIndex> removed;
    ReplayBuffer without({.capacity = 16, .sampling = Sampling::uniform_without_replacement}, 12, 1, pool, 3, 0);
    ReplayBuffer with({.capacity = 16}, 12, 1, pool, 3, 0);
    for (std::uint64_t id = 0; id < 16; ++id) {
        add(without, pool, id, false, removed);
        add(with, pool, id, false, removed);
    }
    double distinct = 0.0;
    constexpr int batches = 4'000;
    for (int version = 0; version < batches; ++version) {
        std::vector<RolloutIndex> batch;
        std::vector<RolloutIndex> consumed;
        without.draw_batch(version, batch, consumed);
        REQUIRE(std::set<RolloutIndex>(batch.begin(), batch.end()).size() == 12);
        batch.clear();
        with.draw_batch(version, batch, consumed);
        distinct += static_cast<double>(std::set<RolloutIndex>(batch.begin(), batch.end()).size());
    }
    // Occupancy: N (1 - (1 - 1/N)^B) distinct ones are expected.
    CHECK(distinct / batches == doctest::Approx(16.0 * (1.0 - std::pow(15.0 / 16.0, 12))).epsilon(0.01));
}

TEST_CASE("never-used rollouts come first") {
    RolloutPool pool;
    std::vector<RolloutIndex> removed;
    ReplayBuffer buffer({.capacity = 12, .sampling = Sampling::never_used_first}, 6, 1, pool, 3, 0);
    std::uint64_t id = 0;
    for (; id < 12; ++id) {
        add(buffer, pool, id, false, removed);
    }
    for (int version = 0; version < 200; ++version) {
        std::set<RolloutIndex> unused;
        for (RolloutIndex index = 0; index < 12; ++index) {
            if (pool[index].uses == 0) {
                unused.insert(index);
            }
        }
        std::vector<RolloutIndex> batch;
        std::vector<RolloutIndex> consumed;
        buffer.draw_batch(version, batch, consumed);
        std::size_t fresh = 0;
        for (const RolloutIndex index : batch) {
            fresh += unused.count(index);
            use_rollout(pool[index], version);
        }
        CHECK(std::set<RolloutIndex>(batch.begin(), batch.end()).size() == 6);
        CHECK(fresh == std::min<std::size_t>(6, unused.size()));
        removed.clear();
        for (int i = 0; i < version % 5; ++i) {
            add(buffer, pool, id++, false, removed);
            pool.release(removed.back());
            removed.pop_back();
        }
    }
}

TEST_CASE("a sharded buffer gives every trainer its own share") {
    RolloutPool pool;
    std::vector<RolloutIndex> removed;
    ReplayBuffer buffer({.capacity = 12, .sampling = Sampling::uniform_without_replacement, .sharded = true}, 12, 3,
                        pool, 3, 0);
    CHECK_FALSE(buffer.can_fill_batch());
    for (std::uint64_t id = 0; id < 12; ++id) {
        add(buffer, pool, id, false, removed);
    }
    REQUIRE(buffer.can_fill_batch());
    std::vector<RolloutIndex> batch;
    std::vector<RolloutIndex> consumed;
    buffer.draw_batch(0, batch, consumed);
    // Rollouts go to the shards in turn; each trainer draws its whole shard of four.
    for (std::size_t i = 0; i < batch.size(); ++i) {
        CHECK(pool[batch[i]].id % 3 == i / 4);
    }
}

TEST_CASE("a transfer queue hands out the oldest or the freshest and drops the oldest") {
    for (const QueueOrder order : {QueueOrder::fifo, QueueOrder::lifo}) {
        RolloutPool pool;
        std::vector<RolloutIndex> removed;
        TransferQueue queue({.capacity = 5, .order = order, .overflow = Overflow::drop_oldest}, 2);
        CHECK_FALSE(queue.can_fill_batch());
        for (std::uint64_t id = 0; id < 7; ++id) {
            add(queue, pool, id, false, removed);
        }
        REQUIRE(removed.size() == 2);
        CHECK(pool[removed[0]].id == 0);
        CHECK(pool[removed[1]].id == 1);
        std::vector<RolloutIndex> batch;
        std::vector<RolloutIndex> consumed;
        queue.draw_batch(0, batch, consumed);
        CHECK(batch == consumed);
        CHECK(pool[batch[0]].id == (order == QueueOrder::fifo ? 2u : 6u));
        CHECK(pool[batch[1]].id == (order == QueueOrder::fifo ? 3u : 5u));
        CHECK(queue.size() == 3);
    }
    TransferQueue blocking({.capacity = 5}, 2);
    CHECK(blocking.has_room(5));
    CHECK_FALSE(blocking.has_room(6));
}
