// Random numbers that are keyed by what a draw is for, never by when it is made.
//
// A draw is addressed by (seed, replication, purpose, entity, index, attempt). The first four select a Philox2x64-10
// key, the last two are its counter. So changing the number of workers leaves the trainers' draws alone, and two
// designs compare under common random numbers. Philox: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace millrace {

__extension__ typedef unsigned __int128 Uint128;  // __extension__: not ISO C++, so -Wpedantic would object

/// What a draw is for. Values are part of the reproducibility contract: append, never renumber.
enum class Purpose : std::uint64_t {
    rollout_tokens = 1,   ///< response length; index = rollout id
    prompt_tokens = 2,    ///< prompt length; index = group id
    rollout_work = 3,     ///< GPU-seconds under the first-order law; index = rollout id
    reward_latency = 4,   ///< index = rollout id
    reward_correct = 5,   ///< index = rollout id
    trainer_service = 6,  ///< index = update
    weight_transfer = 7,  ///< entity = worker, index = policy version
    batch_sampling = 8,   ///< entity = shard, index = policy version that the update starts from
    test_arrivals = 100,  ///< free for tests
    test_services = 101,
    test_schedule = 102,
};

/// The keys of the ten rounds of Philox2x64-10.
constexpr std::array<std::uint64_t, 10> philox_round_keys(std::uint64_t key) {
    constexpr std::uint64_t weyl = 0x9E3779B97F4A7C15u;  // golden ratio
    std::array<std::uint64_t, 10> keys{};
    for (std::uint64_t& round_key : keys) {
        round_key = key;
        key += weyl;
    }
    return keys;
}

/// One Philox2x64-10 block: 128 random bits for a counter of two words under a key.
[[gnu::always_inline]] constexpr std::array<std::uint64_t, 2> philox2x64(
    std::array<std::uint64_t, 2> counter, const std::array<std::uint64_t, 10>& round_keys) {
    constexpr std::uint64_t multiplier = 0xD2B74407B1CE6E93u;
    for (const std::uint64_t round_key : round_keys) {
        const Uint128 product = static_cast<Uint128>(multiplier) * counter[0];
        const auto high = static_cast<std::uint64_t>(product >> 64);
        const auto low = static_cast<std::uint64_t>(product);
        counter = {high ^ round_key ^ counter[1], low};
    }
    return counter;
}
[[gnu::always_inline]] constexpr std::array<std::uint64_t, 2> philox2x64(std::array<std::uint64_t, 2> counter,
                                                                         std::uint64_t key) {
    return philox2x64(counter, philox_round_keys(key));
}

/// Uniform in the open interval (0, 1): a multiple of 2^-53 plus half of one, rounded, so its logarithm is finite.
constexpr double uniform_of(std::uint64_t bits) {
    const double uniform = (static_cast<double>(static_cast<std::int64_t>(bits >> 11)) + 0.5) * 0x1p-53;
    return std::min(uniform, 1.0 - 0x1p-53);  // the largest of all would be rounded up to 1
}

/// All draws of one purpose and entity within one replication.
class RandomStream {
   public:
    constexpr RandomStream(std::uint64_t seed, std::uint64_t replication, Purpose purpose, std::uint64_t entity = 0) {
        const auto run = philox2x64({replication, 0x6d696c6c72616365u}, seed);
        key_ = philox2x64({static_cast<std::uint64_t>(purpose), entity}, run[0] ^ run[1])[0];
    }

    constexpr std::array<std::uint64_t, 2> block(std::uint64_t index, std::uint64_t attempt) const {
        return philox2x64({index, attempt}, key_);
    }

    /// The first uniforms of the draws with the indices `first`, `first` + 1, ...: half the time of one by one.
    void uniforms(std::uint64_t first, std::span<double> uniforms) const {
        const auto round_keys = philox_round_keys(key_);
        for (double& uniform : uniforms) {
            uniform = uniform_of(philox2x64({first++, 0}, round_keys)[0]);
        }
    }

   private:
    std::uint64_t key_;
};

/// The uniforms behind one draw: as many as its sampler asks for, all addressed by the same index.
class Draw {
   public:
    constexpr Draw(const RandomStream& stream, std::uint64_t index) : stream_(stream), index_(index) {}

    [[gnu::always_inline]] constexpr std::uint64_t bits() {
        if (attempt_ % 2 == 0) {
            block_ = stream_.block(index_, attempt_ / 2);
        }
        return block_[attempt_++ % 2];
    }

    constexpr double uniform() { return uniform_of(bits()); }

    /// Uniform integer in [0, n) for 0 < n. The multiply-shift bias is below n / 2^64.
    constexpr std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<Uint128>(bits()) * n) >> 64);
    }

   private:
    RandomStream stream_;
    std::uint64_t index_;
    std::uint64_t attempt_ = 0;
    std::array<std::uint64_t, 2> block_{};
};

}  // namespace millrace
