#include "model/checkpoint.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

#include "model/warm_start.h"
#include "model/weights.h"
#include "tests/model/small_model.h"
#include "tests/model/temporary_file.h"

using namespace millrace;
using namespace millrace::test;

namespace {

Checkpoint<float> some_checkpoint() {
    Checkpoint<float> checkpoint;
    checkpoint.shape = small_shape;
    checkpoint.task = sort3;
    checkpoint.theta_0_hash = 0x0123456789abcdef;
    checkpoint.settings_hash = 77;
    checkpoint.counters = {.updates = 5, .rollouts = 320};
    checkpoint.replicas = 2;
    checkpoint.generated_tokens = {100, 101};
    checkpoint.trained_tokens = {50, 51};
    for (std::vector<float>* array : {&checkpoint.weights, &checkpoint.first_moment, &checkpoint.second_moment}) {
        for (const std::uint64_t seed : {1, 2}) {
            const auto weights = test_weights<float>(small_shape, seed);
            array->insert(array->end(), weights.begin(), weights.end());
        }
    }
    return checkpoint;
}

std::string refusal(const TemporaryFile& file) {
    try {
        read_checkpoint<float>(file.path());
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "accepted";
}

bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what was written is read") {
    const TemporaryFile file("round_trip");
    const Checkpoint<float> written = some_checkpoint();
    write_checkpoint(file.path(), written);
    const auto read = read_checkpoint<float>(file.path());
    CHECK(read.shape == written.shape);
    CHECK(read.task.kind == written.task.kind);
    CHECK(read.task.size == written.task.size);
    CHECK(read.theta_0_hash == written.theta_0_hash);
    CHECK(read.settings_hash == written.settings_hash);
    CHECK(read.counters == written.counters);
    CHECK(read.replicas == 2);
    CHECK(read.generated_tokens == written.generated_tokens);
    CHECK(read.trained_tokens == written.trained_tokens);
    CHECK(read.weights == written.weights);
    CHECK(read.first_moment == written.first_moment);
    CHECK(read.second_moment == written.second_moment);
    const std::filesystem::path path = file.path();
    for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
        const std::string name = entry.path().filename().string();
        CHECK((name == path.filename().string() || !name.starts_with(path.filename().string())));
    }
}

TEST_CASE("files that are not whole and sound are refused, and the message says why") {
    const TemporaryFile file("corrupted");
    CHECK(mentions(refusal(file), "cannot be opened: No such file or directory."));
    write_checkpoint(file.path(), some_checkpoint());
    const std::string good = file.bytes();

    file.set_bytes("");
    CHECK(mentions(refusal(file), "is no checkpoint"));
    file.set_bytes("{\"name\": \"a scenario, which is no checkpoint\"}");
    CHECK(mentions(refusal(file), "is no checkpoint"));
    file.set_bytes(good.substr(0, good.size() - 1));
    CHECK(mentions(refusal(file), "is truncated"));
    file.set_bytes(good.substr(0, 40));
    CHECK(mentions(refusal(file), "is truncated"));
    file.set_bytes(good + "x");
    CHECK(mentions(refusal(file), "is too long"));
    for (const std::size_t place : {24u, 60u, 1000u, static_cast<unsigned>(good.size() - 3)}) {
        std::string bad = good;
        bad[place] = static_cast<char>(bad[place] ^ 4);
        file.set_bytes(bad);
        CHECK(mentions(refusal(file), "is damaged"));
    }
    std::string newer = good;
    newer[8] = 9;
    file.set_bytes(newer);
    CHECK(mentions(refusal(file), "has version 9 of the format; this program reads version 1"));
    file.set_bytes(good);
    CHECK_THROWS_AS(read_checkpoint<double>(file.path()), std::runtime_error);
    CHECK(refusal(file) == "accepted");
}

TEST_CASE("arrays that do not belong to the shape are refused") {
    const TemporaryFile file("shape");
    Checkpoint<float> checkpoint = some_checkpoint();
    checkpoint.replicas = 3;
    write_checkpoint(file.path(), checkpoint);
    CHECK(mentions(refusal(file), "contradicts itself"));
    checkpoint = some_checkpoint();
    checkpoint.shape.heads = 3;
    write_checkpoint(file.path(), checkpoint);
    CHECK(mentions(refusal(file), "impossible model"));
}

TEST_CASE("those who write one checkpoint at a time do not write into each other's file") {
    const TemporaryFile file("contended");
    const Checkpoint<float> checkpoint = some_checkpoint();
    std::vector<std::thread> writers;
    std::atomic<int> failures = 0;
    for (int i = 0; i < 4; ++i) {
        writers.emplace_back([&] {
            for (int time = 0; time < 20; ++time) {
                try {
                    write_checkpoint(file.path(), checkpoint);
                    failures += read_checkpoint<float>(file.path()).weights == checkpoint.weights ? 0 : 1;
                } catch (const std::runtime_error&) {
                    ++failures;
                }
            }
        });
    }
    for (std::thread& writer : writers) {
        writer.join();
    }
    CHECK(failures == 0);
}

TEST_CASE("a failed write leaves the old file and no new one") {
    CHECK_THROWS_AS(write_checkpoint("/nonexistent_folder/checkpoint", some_checkpoint()), std::runtime_error);
}

TEST_CASE("theta_0 from a file: shape, task and hash must agree") {
    const TemporaryFile file("theta_0");
    const auto backend = make_cpu_backend(1);
    LearnerSettings settings = small_settings();
    settings.warm_start.updates = 3;
    const WarmStart<float> made = warm_start(*backend, settings);
    CHECK(made.hash == content_hash<float>(made.weights));
    CHECK(warm_start(*backend, settings).hash == made.hash);

    Checkpoint<float> checkpoint;
    checkpoint.shape = shape_of(settings.model, Task(sort3));
    checkpoint.task = sort3;
    checkpoint.weights = made.weights;
    write_checkpoint(file.path(), checkpoint);
    settings.warm_start.checkpoint = file.path();
    const WarmStart<float> read = warm_start(*backend, settings);
    CHECK(read.weights == made.weights);
    CHECK(read.supervised_updates == 0);
    settings.warm_start.checkpoint_hash = hash_text(made.hash);
    CHECK(warm_start(*backend, settings).hash == made.hash);

    settings.warm_start.checkpoint_hash = "0000000000000000";
    CHECK_THROWS_AS(warm_start(*backend, settings), std::runtime_error);
    settings.warm_start.checkpoint_hash.reset();
    settings.model.mlp_width = 65;
    CHECK_THROWS_AS(warm_start(*backend, settings), std::runtime_error);
    settings.model.mlp_width = 64;
    settings.task.size = 2;
    settings.model.context = 8;
    CHECK_THROWS_AS(warm_start(*backend, settings), std::runtime_error);
}
