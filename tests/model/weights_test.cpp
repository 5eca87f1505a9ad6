#include "model/weights.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "tests/model/small_model.h"

using namespace millrace;
using namespace millrace::test;

TEST_CASE("one replica's weights serve all") {
    const auto backend = make_reference_backend(1);
    Weights<Float64> weights(*backend, small_shape, 3);
    const std::vector<double> one = test_weights<double>(small_shape, 1);
    weights.upload(one);
    const std::vector<double> all = weights.download();
    REQUIRE(all.size() == 3 * one.size());
    CHECK(std::equal(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(2 * one.size())));
    CHECK_THROWS_AS(weights.upload(std::span(one).first(10)), std::invalid_argument);
}

TEST_CASE("memory in use is that of the versions in use") {
    const auto backend = make_reference_backend(1);
    Weights<Float64> weights(*backend, small_shape, 1);
    std::shared_ptr<const Weights<Float64>> survivor;
    {
        WeightsPool<Float64> pool(*backend, small_shape, 1);
        std::vector<std::shared_ptr<const Weights<Float64>>> window;
        for (int version = 0; version < 100; ++version) {
            weights.set_version(version);
            window.push_back(pool.copy_of(weights));
            if (window.size() > 4) {
                window.erase(window.begin());
            }
        }
        CHECK(pool.allocated() == 5);
        survivor = window.front();
    }
    CHECK(survivor->version() == 96);  // outlives its pool
}

TEST_CASE("the hash of weights is a function of their bits, all of them") {
    std::vector<float> weights(100, 0.5f);
    const std::uint64_t hash = content_hash<float>(weights);
    CHECK(content_hash<float>(weights) == hash);
    weights[99] = 0.50000006f;
    CHECK(content_hash<float>(weights) != hash);
    weights[99] = 0.5f;
    weights.push_back(0.0f);
    CHECK(content_hash<float>(weights) != hash);
    CHECK(hash_text(0xe220a8397b1dcdaf) == "e220a8397b1dcdaf");
    CHECK(hash_text(0x1) == "0000000000000001");
}
