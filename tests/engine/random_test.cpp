#include "sim/engine/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace millrace;

TEST_CASE("Philox2x64-10 gives the known answers published with Random123") {
    constexpr std::uint64_t ones = ~std::uint64_t{0};
    using Block = std::array<std::uint64_t, 2>;
    CHECK(philox2x64({0, 0}, 0) == Block{0xca00a0459843d731u, 0x66c24222c9a845b5u});
    CHECK(philox2x64({ones, ones}, ones) == Block{0x65b021d60cd8310fu, 0x4d02f3222f86df20u});
    CHECK(philox2x64({0x243f6a8885a308d3u, 0x13198a2e03707344u}, 0xa4093822299f31d0u) ==
          Block{0x0a5e742c2997341cu, 0xb0f883d38000de5du});
}

TEST_CASE("uniforms lie strictly between 0 and 1") {
    CHECK(uniform_of(0) == 0x1p-54);
    CHECK(uniform_of(~std::uint64_t{0}) == 1.0 - 0x1p-53);
}

TEST_CASE("Philox can be evaluated by the compiler") {
    static_assert(philox2x64({0, 0}, 0)[0] == 0xca00a0459843d731u);
}

namespace {

std::vector<double> uniforms(const RandomStream& stream, std::uint64_t n) {
    std::vector<double> values;
    for (std::uint64_t i = 0; i < n; ++i) {
        values.push_back(Draw(stream, i).uniform());
    }
    return values;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += (a[i] - 0.5) * (b[i] - 0.5);
    }
    return sum / static_cast<double>(a.size()) * 12;  // a uniform's variance is 1/12
}

}  // namespace

TEST_CASE("a draw depends on what it is for and on nothing else") {
    const RandomStream stream(7, 1, Purpose::reward_latency, 3);
    Draw later(stream, 100);
    const double value = Draw(stream, 5).uniform();
    later.uniform();
    CHECK(Draw(stream, 5).uniform() == value);
    CHECK(Draw(RandomStream(7, 1, Purpose::reward_latency, 3), 5).uniform() == value);
}

TEST_CASE("streams that differ in one component of their key are uncorrelated") {
    constexpr std::uint64_t n = 20'000;
    const std::vector<RandomStream> streams = {
        RandomStream(1, 0, Purpose::rollout_tokens, 0),    RandomStream(2, 0, Purpose::rollout_tokens, 0),
        RandomStream(1, 1, Purpose::rollout_tokens, 0),    RandomStream(1, 0, Purpose::prompt_tokens, 0),
        RandomStream(1, 0, Purpose::rollout_tokens, 1),    RandomStream(0, 0, Purpose::rollout_tokens, 0),
        RandomStream(1u << 31, 0, Purpose::rollout_tokens)};
    std::vector<std::vector<double>> samples;
    for (const RandomStream& stream : streams) {
        samples.push_back(uniforms(stream, n));
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            CAPTURE(i);
            CAPTURE(j);
            CHECK(samples[i][0] != samples[j][0]);
            // The estimate's standard deviation is 1 / sqrt(n).
            CHECK(std::abs(correlation(samples[i], samples[j])) < 4.5 / std::sqrt(n));
        }
    }
}

TEST_CASE("successive indices and successive attempts are uncorrelated") {
    constexpr std::uint64_t n = 20'000;
    const RandomStream stream(3, 0, Purpose::test_services);
    std::vector<double> first, second, third, next;
    for (std::uint64_t i = 0; i < n; ++i) {
        Draw draw(stream, i);
        first.push_back(draw.uniform());
        second.push_back(draw.uniform());
        third.push_back(draw.uniform());
        next.push_back(Draw(stream, i + 1).uniform());
    }
    CHECK(std::abs(correlation(first, second)) < 4.5 / std::sqrt(n));
    CHECK(std::abs(correlation(first, third)) < 4.5 / std::sqrt(n));
    CHECK(std::abs(correlation(second, third)) < 4.5 / std::sqrt(n));
    CHECK(std::abs(correlation(first, next)) < 4.5 / std::sqrt(n));
}

TEST_CASE("every bit of a draw is set half of the time") {
    constexpr int n = 20'000;
    const RandomStream stream(4, 0, Purpose::test_services);
    std::array<int, 64> set{};
    for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t bits = Draw(stream, i).bits();
        for (std::size_t bit = 0; bit < 64; ++bit) {
            set[bit] += static_cast<int>(bits >> bit & 1);
        }
    }
    for (const int ones : set) {
        CHECK(std::abs(ones - n / 2) < 4.5 * std::sqrt(n / 4));
    }
}

TEST_CASE("below(n) gives each integer its share, up to the largest n") {
    constexpr int n = 30'000;
    const RandomStream stream(5, 0, Purpose::test_services);
    std::array<int, 3> count{};
    for (std::uint64_t i = 0; i < n; ++i) {
        ++count[Draw(stream, i).below(3)];
        CHECK(Draw(stream, i).below(1) == 0);
        CHECK(Draw(stream, i).below(~std::uint64_t{0}) < ~std::uint64_t{0});
    }
    for (const int share : count) {
        CHECK(std::abs(share - n / 3) < 4.5 * std::sqrt(n * 2.0 / 9));
    }
}
