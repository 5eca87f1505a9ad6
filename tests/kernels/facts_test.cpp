// Facts about the operations that hold whatever the numbers are.
#include <doctest/doctest.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <numbers>

#include "tests/kernels/compare.h"

using namespace millrace;
using namespace millrace::test;

namespace {

/// Runs `fact` on the reference and on every CPU backend; `tolerance` is what may be lost to rounding.
template <typename Fact>
void on_all_backends(const Fact& fact) {
    {
        CAPTURE("reference");
        fact(*make_reference_backend(1), 1e-12);
    }
    {
        CAPTURE("CPU in double precision");
        fact(*make_cpu_backend_float64(1), 1e-12);
    }
    for (const CpuUnderTest& cpu : cpus_under_test()) {
        CAPTURE(cpu.name);
        fact(*cpu.make(1), 2e-6);
    }
}

template <typename P>
Outcome attend(Backend<P>& backend, const Extent& extent, int width, int heads, const std::vector<double>& qkv) {
    const auto rows = static_cast<std::size_t>(extent.rows());
    const auto columns = static_cast<std::size_t>(width);
    const auto scores = rows * static_cast<std::size_t>(heads) * static_cast<std::size_t>(extent.tokens);
    Workbench<P> bench(backend, {.given = {{"qkv", qkv}}});
    backend.run(AttentionForward<P>{.extent = extent,
                                    .width = width,
                                    .heads = heads,
                                    .qkv = bench.operand("qkv", 3 * rows * columns),
                                    .y = bench.operand_output("y", rows * columns),
                                    .probabilities = bench.operand_output("probabilities", scores)});
    return bench.outcome();
}

std::vector<double> random_numbers(const std::string& name, std::size_t size, double low, double high) {
    std::vector<double> numbers(size);
    for (std::size_t i = 0; i < size; ++i) {
        numbers[i] = low + (high - low) * uniform_at(name, i);
    }
    return numbers;
}

}  // namespace

TEST_CASE("attention is a causal average") {
    constexpr int tokens = 19;
    constexpr int width = 32;
    constexpr int heads = 2;
    on_all_backends([&]<typename P>(Backend<P>& backend, double tolerance) {
        const Extent extent{1, 2, tokens};
        std::vector<double> qkv = random_numbers("qkv", 2 * tokens * 3 * width, -3, 3);
        const Outcome before = attend(backend, extent, width, heads, qkv);
        {  // probabilities of a query sum to one, and future keys have none
            const std::vector<double>& p = before.at("probabilities");
            for (std::size_t query = 0; query < 2 * heads * tokens; ++query) {
                double sum = 0;
                for (std::size_t j = 0; j < tokens; ++j) {
                    sum += p[query * tokens + j];
                    if (j > query % tokens) {
                        CHECK(p[query * tokens + j] == 0);
                    }
                }
                CHECK(sum == doctest::Approx(1).epsilon(tolerance));
            }
        }
        {  // changing a token changes nothing before it, bit for bit, and something after
            constexpr std::size_t changed = 17;
            for (std::size_t i = 0; i < 3 * width; ++i) {
                qkv[changed * 3 * width + i] += 1;
            }
            const Outcome after = attend(backend, extent, width, heads, qkv);
            const auto part = [&](const Outcome& outcome, std::size_t first, std::size_t last) {
                const std::vector<double>& y = outcome.at("y");
                return std::vector<double>(y.begin() + static_cast<std::ptrdiff_t>(first * width),
                                           y.begin() + static_cast<std::ptrdiff_t>(last * width));
            };
            CHECK(same_bits(part(before, 0, changed), part(after, 0, changed)));
            CHECK(!same_bits(part(before, changed + 1, tokens), part(after, changed + 1, tokens)));
            CHECK(same_bits(part(before, tokens, 2 * tokens), part(after, tokens, 2 * tokens)));  // other sequence
        }
        {  // equal keys are averaged equally
            for (std::size_t row = 0; row < 2 * tokens; ++row) {
                for (std::size_t i = 0; i < width; ++i) {
                    qkv[(row * 3 + 1) * width + i] = 0.5;
                }
            }
            const std::vector<double> y = attend(backend, extent, width, heads, qkv).at("y");
            double sum = 0;
            for (std::size_t t = 0; t < tokens; ++t) {
                sum += qkv[(t * 3 + 2) * width];
                CHECK(std::abs(y[t * width] - sum / static_cast<double>(t + 1)) < 3 * tolerance);
            }
        }
    });
}

TEST_CASE("decoding with a cache is the training form, token by token") {
    constexpr int tokens = 18;
    constexpr int prompt = 5;
    constexpr int copies = 2;
    for (const int heads : {2, 3, 4}) {
        CAPTURE(heads);
        on_all_backends([&]<typename P>(Backend<P>& backend, double tolerance) {
            using Real = typename P::Real;
            const int width = heads * 16;
            const auto w = static_cast<std::size_t>(width);
            const std::vector<double> qkv = random_numbers("qkv", tokens * 3 * w, -2, 2);
            const Outcome whole = attend(backend, {1, 1, tokens}, width, heads, qkv);

            // One prompt, continued twice by the same tokens.
            const auto start = qkv.begin();
            const std::vector<double> before(start, start + static_cast<std::ptrdiff_t>(prompt * 3 * w));
            Workbench<P> bench(backend, {.given = {{"prompt", before}}});
            Real* keys = bench.scratch("keys", copies * tokens * w);
            Real* values = bench.scratch("values", copies * tokens * w);
            backend.run(FillCache<P>{.extent = {1, 1, prompt},
                                     .width = width,
                                     .copies = copies,
                                     .context = tokens,
                                     .qkv = bench.operand("prompt", before.size()),
                                     .keys = keys,
                                     .values = values});
            for (int t = prompt; t < tokens; ++t) {
                const auto row = start + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(t) * 3 * w);
                std::vector<double> twice(row, row + static_cast<std::ptrdiff_t>(3 * w));
                twice.insert(twice.end(), row, row + static_cast<std::ptrdiff_t>(3 * w));
                Workbench<P> step(backend, {.given = {{"qkv", twice}}});
                backend.run(
                    AttentionDecode<P>{.extent = {1, copies, 1},
                                       .width = width,
                                       .heads = heads,
                                       .context = tokens,
                                       .position = t,
                                       .qkv = step.operand("qkv", twice.size()),
                                       .keys = keys,
                                       .values = values,
                                       .y = step.operand_output("y", copies * w),
                                       .probabilities = step.operand_scratch("p", cases::size(copies, heads, tokens))});
                const std::vector<double> y = step.outcome().at("y");
                for (std::size_t i = 0; i < copies * w; ++i) {
                    const double wanted = whole.at("y")[static_cast<std::size_t>(t) * w + i % w];
                    CHECK(std::abs(y[i] - wanted) < 2 * tolerance);
                }
            }
            bench.outcome();
        });
    }
}

TEST_CASE("RMSNorm forgets the length of its input and scales with its gain") {
    constexpr std::size_t width = 32;
    on_all_backends([&]<typename P>(Backend<P>& backend, double tolerance) {
        const auto normalise = [&](double input_factor, double gain_factor) {
            std::vector<double> x = random_numbers("x", 3 * width, -1, 1);
            std::vector<double> gain = random_numbers("gain", width, 0.5, 1.5);
            std::transform(x.begin(), x.end(), x.begin(), [&](double value) { return value * input_factor; });
            std::transform(gain.begin(), gain.end(), gain.begin(), [&](double g) { return g * gain_factor; });
            Workbench<P> bench(backend, {.given = {{"x", x}, {"gain", gain}}});
            backend.run(RmsNormForward<P>{.extent = {1, 3, 1},
                                          .width = width,
                                          .x = bench.real("x", 3 * width),
                                          .gain = bench.real("gain", width),
                                          .y = bench.operand_output("y", 3 * width)});
            return bench.outcome().at("y");
        };
        const std::vector<double> plain = normalise(1, 1);
        const std::vector<double> longer = normalise(4, 1);
        const std::vector<double> gained = normalise(1, 3);
        for (std::size_t i = 0; i < plain.size(); ++i) {
            // The epsilon under the root is 1e-5, beside a mean square of about 1/3.
            CHECK(longer[i] == doctest::Approx(plain[i]).epsilon(3e-5));
            CHECK(gained[i] == doctest::Approx(3 * plain[i]).epsilon(tolerance));
        }
    });
}

TEST_CASE("softmax of equal logits has the entropy of a die, and gradients of logits sum to zero") {
    constexpr std::size_t vocabulary = 20;
    on_all_backends([&]<typename P>(Backend<P>& backend, double tolerance) {
        std::vector<double> logits(3 * vocabulary, 7.0);
        for (std::size_t v = 0; v < vocabulary; ++v) {
            logits[vocabulary + v] = v == 4 ? 1000.0 : -1000.0;  // certain, and far outside what exp can represent
            logits[2 * vocabulary + v] = 0.3 * static_cast<double>(v);
        }
        Workbench<P> bench(backend, {.given = {{"logits", logits}}});
        backend.run(Classifier<P>{.extent = {1, 1, 3},
                                  .vocabulary = vocabulary,
                                  .logits = bench.real("logits", logits.size()),
                                  .targets = bench.template shared<Token>("targets", {3, 4, 0}),
                                  .target_stride = 3,
                                  .log_probability = bench.real_output("log_probability", 3),
                                  .entropy = bench.real_output("entropy", 3),
                                  .weight = bench.real("weight", 3),
                                  .dlogits = bench.operand_output("dlogits", logits.size())});
        const Outcome outcome = bench.outcome();
        const double log_sides = std::log(static_cast<double>(vocabulary));
        CHECK(outcome.at("entropy")[0] == doctest::Approx(log_sides).epsilon(tolerance));
        CHECK(outcome.at("log_probability")[0] == doctest::Approx(-log_sides).epsilon(tolerance));
        CHECK(outcome.at("entropy")[1] == doctest::Approx(0).epsilon(tolerance));
        CHECK(outcome.at("log_probability")[1] == doctest::Approx(0).epsilon(tolerance));
        for (std::size_t row = 0; row < 3; ++row) {
            double sum = 0;
            for (std::size_t v = 0; v < vocabulary; ++v) {
                sum += outcome.at("dlogits")[row * vocabulary + v];
            }
            CHECK(std::abs(sum) < tolerance);
        }
    });
}

TEST_CASE("AdamW does what its paper's Algorithm 2 says, upwards") {
    on_all_backends([&]<typename P>(Backend<P>& backend, double tolerance) {
        using Real = typename P::Real;
        constexpr std::size_t parameters = 33;
        constexpr double rate = 0.01;
        constexpr double decay = 0.1;
        constexpr double beta1 = 0.9;
        constexpr double beta2 = 0.99;
        std::vector<double> weight = random_numbers("weight", parameters, -1, 1);
        std::vector<double> first(parameters, 0.0);
        std::vector<double> second(parameters, 0.0);
        std::vector<double> m = first;
        std::vector<double> v = second;
        std::vector<double> expected = weight;
        for (int t = 1; t <= 5; ++t) {
            const std::vector<double> gradient = random_numbers("gradient" + std::to_string(t), parameters, -1, 1);
            double norm = 0;
            for (const double g : gradient) {
                norm += g * g;
            }
            norm = std::sqrt(norm);
            const double clip = t == 3 ? 2 * norm : 0.5 * norm;  // once it is longer than the gradient
            const double correction1 = 1 / (1 - std::pow(beta1, t));
            const double correction2 = 1 / (1 - std::pow(beta2, t));
            Workbench<P> bench(backend, {.given = {{"gradient", gradient},
                                                   {"first", first},
                                                   {"second", second},
                                                   {"weight", weight},
                                                   {"norm", {norm}}}});
            backend.run(AdamW<P>{
                .parameters = parameters,
                .weight_decay = decay,
                .max_norm = clip,
                .step = bench.shared(
                    "step", std::vector<AdamWStep<Real>>{{static_cast<Real>(rate), static_cast<Real>(correction1),
                                                          static_cast<Real>(correction2)}}),
                .norm = bench.real("norm", 1),
                .gradient = bench.real("gradient", parameters),
                .first = bench.changing_real("first", parameters),
                .second = bench.changing_real("second", parameters),
                .weight = bench.changing_real("weight", parameters)});
            const Outcome outcome = bench.outcome();
            for (std::size_t i = 0; i < parameters; ++i) {
                const double g = gradient[i] * std::min(1.0, clip / norm);
                m[i] = beta1 * m[i] + (1 - beta1) * g;
                v[i] = beta2 * v[i] + (1 - beta2) * g * g;
                const double step = rate * m[i] * correction1 / (std::sqrt(v[i] * correction2) + 1e-8);
                expected[i] += step - rate * decay * expected[i];
                CHECK(outcome.at("weight")[i] == doctest::Approx(expected[i]).epsilon(10 * tolerance));
            }
            weight = outcome.at("weight");
            first = outcome.at("first");
            second = outcome.at("second");
        }
    });
}

TEST_CASE("the GRPO clip takes the gradient only where moving on would leave the trusted region") {
    struct Example {
        double ratio;
        double advantage;
        bool clipped;
    };
    const std::vector<Example> examples{{1.0, 1, false}, {1.3, 1, true},   {1.3, -1, false},  {0.7, 1, false},
                                        {0.7, -1, true}, {1.19, 1, false}, {0.81, -1, false}, {1.3, 0, false}};
    on_all_backends([&]<typename P>(Backend<P>& backend, double tolerance) {
        for (const Example& example : examples) {
            CAPTURE(example.ratio);
            CAPTURE(example.advantage);
            Workbench<P> bench(backend, {.given = {{"advantage", {example.advantage}},
                                                   {"log_probability", {0, -1 + std::log(example.ratio), 0}},
                                                   {"old", {0, -1, 0}}}});
            backend.run(Objective<P>{.extent = {1, 1, 3},
                                     .rule = {.kind = ObjectiveKind::grpo},
                                     .first_answer_row = 1,
                                     .answer_tokens = bench.template shared<std::int32_t>("answer_tokens", {1}),
                                     .advantage = bench.real("advantage", 1),
                                     .log_probability = bench.real("log_probability", 3),
                                     .old_log_probability = bench.real("old", 3),
                                     .weight = bench.real_output("weight", 3),
                                     .statistics = bench.real_output("statistics", sequence_statistics)});
            const Outcome outcome = bench.outcome();
            const double weight = example.clipped ? 0 : example.ratio * example.advantage;
            CHECK(outcome.at("weight")[0] == 0);
            CHECK(outcome.at("weight")[1] == doctest::Approx(weight).epsilon(tolerance));
            CHECK(outcome.at("weight")[2] == 0);
            CHECK(outcome.at("statistics")[stat_clipped] == (example.clipped ? 1 : 0));
            CHECK(outcome.at("statistics")[stat_tokens] == 1);
            CHECK(outcome.at("statistics")[stat_ratio] == doctest::Approx(example.ratio).epsilon(tolerance));
        }
    });
}

TEST_CASE("tokens are sampled as often as their probability says") {
    constexpr int vocabulary = 9;
    constexpr int draws = 40000;
    on_all_backends([&]<typename P>(Backend<P>& backend, double tolerance) {
        for (const double temperature : {1.0, 0.5}) {
            CAPTURE(temperature);
            std::vector<double> row = random_numbers("logits", vocabulary, -1.5, 1.5);
            row[3] = -300;  // never
            std::vector<double> logits;
            std::vector<double> ids;
            for (int i = 0; i < draws; ++i) {
                logits.insert(logits.end(), row.begin(), row.end());
                ids.push_back(i);
            }
            Workbench<P> bench(
                backend, {.given = {{"logits", logits}, {"id", ids}, {"ended", std::vector<double>(draws, 0.0)}}});
            backend.run(Sample<P>{.extent = {1, draws, 1},
                                  .vocabulary = vocabulary,
                                  .position = 4,
                                  .rule = {.temperature = temperature, .end = 1, .pad = 2},
                                  .seed = bench.identifiers("seed", 1),
                                  .sequence_id = bench.identifiers("id", draws),
                                  .logits = bench.real("logits", logits.size()),
                                  .ended = bench.changing_integers("ended", draws, 1),
                                  .token = bench.integer_output("token", draws),
                                  .token_stride = 1,
                                  .log_probability = bench.real_output("log_probability", draws),
                                  .log_probability_stride = 1});
            const Outcome outcome = bench.outcome();
            std::vector<double> probability(vocabulary);
            double total = 0;
            for (std::size_t v = 0; v < vocabulary; ++v) {
                total += probability[v] = std::exp(row[v] / temperature);
            }
            std::vector<double> count(vocabulary, 0.0);
            double wrong_log_probability = 0;
            for (std::size_t i = 0; i < draws; ++i) {
                const auto token = static_cast<std::size_t>(outcome.at("token")[i]);
                REQUIRE(token < vocabulary);
                ++count[token];
                wrong_log_probability = std::max(wrong_log_probability, std::abs(outcome.at("log_probability")[i] -
                                                                                 std::log(probability[token] / total)));
                CHECK(outcome.at("ended")[i] == (token == 1 ? 1 : 0));
            }
            CHECK(wrong_log_probability < 5 * tolerance);
            CHECK(count[3] == 0);
            double chi_squared = 0;
            for (std::size_t v = 0; v < vocabulary; ++v) {
                const double expected = draws * probability[v] / total;
                chi_squared += expected > 0.5 ? (count[v] - expected) * (count[v] - expected) / expected : 0;
            }
            CHECK(chi_squared < boost::math::quantile(boost::math::chi_squared(vocabulary - 2), 0.999));
        }
    });
}

TEST_CASE("greedy sampling takes the first of the most probable tokens, and ended sequences get padding") {
    on_all_backends([&]<typename P>(Backend<P>& backend, double tolerance) {
        const std::vector<double> logits{0, 2, 1, 2, 0, 2, 1, 2, -1, -1, -1, -1};
        Workbench<P> bench(backend, {.given = {{"logits", logits}, {"ended", {0, 1, 0}}}});
        backend.run(Sample<P>{.extent = {1, 3, 1},
                              .vocabulary = 4,
                              .rule = {.greedy = true, .end = 0, .pad = 3},
                              .seed = bench.identifiers("seed", 1),
                              .sequence_id = bench.identifiers("id", 3),
                              .logits = bench.real("logits", logits.size()),
                              .ended = bench.changing_integers("ended", 3, 2),
                              .token = bench.integer_output("token", 3),
                              .token_stride = 1,
                              .log_probability = bench.real_output("log_probability", 3),
                              .log_probability_stride = 1});
        const Outcome outcome = bench.outcome();
        CHECK(outcome.at("token") == std::vector<double>{1, 3, 0});
        CHECK(outcome.at("ended") == std::vector<double>{0, 1, 1});
        const double total = 1 + 2 * std::exp(2.0) + std::numbers::e;
        CHECK(outcome.at("log_probability")[0] == doctest::Approx(2 - std::log(total)).epsilon(tolerance));
        CHECK(outcome.at("log_probability")[1] == 0);
        CHECK(outcome.at("log_probability")[2] == doctest::Approx(-std::log(4.0)).epsilon(tolerance));
    });
}
