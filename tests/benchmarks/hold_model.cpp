// Cost of an event: the hold model (every event schedules its successor, so the number pending stays the same) on
// EventQueue and, in the same iteration, on a plain std::priority_queue engine. The counter `ratio` is how many times
// faster EventQueue is; both clocks run in this process, interleaved, so the ratio holds on any machine.
//
// What to expect. At 1,000 pending everything is in the first-level cache and std::priority_queue pays for branches
// nobody can predict: a sift-down of ten levels of which about half are mispredicted, at 15 to 20 cycles each, 100 to
// 150 cycles in all. (Built at -O2 instead of -O3 the reference is faster, probably by conditional moves, and the ratio
// was 1.4.) The bottom-up 4-ary heap has five levels of about 20 cycles (two loads, two
// comparisons, two selections, no branch) and about one misprediction where the sinking ends: 120 cycles. So the ratio,
// with slab and clock on top, should lie near 2. At 100,000 pending the keys fill 1.6 MB against 3.2 MB and nine levels
// touch memory against seventeen, with the next lines on their way, which again makes about 2. The aim:
// 2.0 at 1,000 and 1.8 at 100,000.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>

#include "sim/engine/distribution.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/portable_math.h"
#include "sim/engine/random.h"
#include "tests/benchmarks/cpu_time.h"
#include "tests/benchmarks/reference_engine.h"

namespace millrace {
namespace {

/// Exponential increments of mean one second, in nanoseconds: the quantiles of the law, picked by the upper bits of a
/// linear congruential generator. Cheap, because its cost is in both times and hides part of the ratio.
class Increments {
   public:
    Increments() {
        for (std::size_t i = 0; i < quantiles_.size(); ++i) {
            const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(quantiles_.size());
            quantiles_[i] = static_cast<std::int64_t>(-1e9 * portable::log(p));
        }
    }
    std::int64_t next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        // The middle bits spread the values between two quantiles, so that few events tie.
        return quantiles_[state_ >> 55] + static_cast<std::int64_t>(state_ >> 35 & 0xfffff);
    }

   private:
    std::array<std::int64_t, 512> quantiles_;
    std::uint64_t state_ = 1;
};

enum Kind : std::uint32_t { step_kind, wake_kind };

/// With wake-ups, each step also schedules an event at the current time.
template <bool wake_ups>
class OnEventQueue {
   public:
    explicit OnEventQueue(std::uint64_t pending) {
        queue_.reserve(pending + 1);
        for (std::uint64_t i = 0; i < pending; ++i) {
            queue_.schedule(Time{increments_.next()}, {step_kind, 0, i});
        }
    }

    void run(std::uint64_t events) {
        Event event;
        while (events-- > 0 && queue_.pop(event)) {
            switch (event.kind) {
                case step_kind:
                    if constexpr (wake_ups) {
                        queue_.schedule(queue_.now(), {wake_kind, 0, event.argument});
                    }
                    queue_.schedule(Time{queue_.now().ns + increments_.next()}, event);
                    trace_ = trace_ * 31 + event.argument;
                    break;
                default:
                    trace_ = trace_ * 33 + event.argument;
            }
        }
    }
    std::uint64_t trace() const { return trace_; }

   private:
    EventQueue queue_;
    Increments increments_;
    std::uint64_t trace_ = 0;
};

template <bool wake_ups>
class OnReference {
   public:
    explicit OnReference(std::uint64_t pending) : engine_(this) {
        for (std::uint64_t i = 0; i < pending; ++i) {
            engine_.schedule(increments_.next(), step, i);
        }
    }

    void run(std::uint64_t events) {
        while (events-- > 0 && engine_.step()) {
        }
    }
    std::uint64_t trace() const { return trace_; }

   private:
    static void step(void* model, std::uint64_t argument) {
        auto& self = *static_cast<OnReference*>(model);
        if constexpr (wake_ups) {
            self.engine_.schedule(self.engine_.now_ns(), wake, argument);
        }
        self.engine_.schedule(self.engine_.now_ns() + self.increments_.next(), step, argument);
        self.trace_ = self.trace_ * 31 + argument;
    }
    static void wake(void* model, std::uint64_t argument) {
        auto& self = *static_cast<OnReference*>(model);
        self.trace_ = self.trace_ * 33 + argument;
    }

    ReferenceEngine engine_;
    Increments increments_;
    std::uint64_t trace_ = 0;
};

template <class Model>
double seconds_to_run(Model& model, std::uint64_t events) {
    const double start = millrace_test::cpu_seconds();
    model.run(events);
    return millrace_test::cpu_seconds() - start;
}

template <bool wake_ups>
void compare(benchmark::State& state) {
    const auto pending = static_cast<std::uint64_t>(state.range(0));
    constexpr std::uint64_t events = 40'000;
    OnEventQueue<wake_ups> ours(pending);
    OnReference<wake_ups> reference(pending);
    ours.run(4 * pending);  // to the stationary mix of keys
    reference.run(4 * pending);
    double our_time = 0;
    double reference_time = 0;
    bool ours_first = true;
    for (auto _ : state) {
        double a = 0;
        double b = 0;
        if (ours_first) {
            a = seconds_to_run(ours, events);
            b = seconds_to_run(reference, events);
        } else {
            b = seconds_to_run(reference, events);
            a = seconds_to_run(ours, events);
        }
        ours_first = !ours_first;
        our_time += a;
        reference_time += b;
        state.SetIterationTime(a);
    }
    if (ours.trace() != reference.trace()) {
        state.SkipWithError("the two engines disagree about the order of events");
    }
    state.counters["ratio"] = reference_time / our_time;
    state.counters["events_per_second"] = static_cast<double>(state.iterations() * events) / our_time;
}

BENCHMARK(compare<false>)->Name("engine/hold")->Arg(1'000)->Arg(100'000)->UseManualTime();
BENCHMARK(compare<true>)->Name("engine/hold_with_wake_ups")->Arg(1'000)->Arg(100'000)->UseManualTime();

// Nanoseconds per draw, Philox included.
void draw(benchmark::State& state, const Distribution& law) {
    const RandomStream stream(1, 0, Purpose::test_services);
    std::uint64_t index = 0;
    for (auto _ : state) {
        Draw draw(stream, index++);
        benchmark::DoNotOptimize(law.sample(draw));
    }
    state.counters["draws_per_second"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(draw, constant, Distribution::constant(1))->Name("engine/draw/constant");
BENCHMARK_CAPTURE(draw, exponential, Distribution::exponential(1))->Name("engine/draw/exponential");
BENCHMARK_CAPTURE(draw, lognormal, Distribution::lognormal(1, 0.5))->Name("engine/draw/lognormal");
BENCHMARK_CAPTURE(draw, gamma, Distribution::gamma(1, 0.5))->Name("engine/draw/gamma");
BENCHMARK_CAPTURE(draw, clipped, Distribution::truncated(Distribution::lognormal(1, 0.5), 3, TruncateMode::clip))
    ->Name("engine/draw/clipped_lognormal");
BENCHMARK_CAPTURE(draw, resampled, Distribution::truncated(Distribution::lognormal(1, 0.5), 3, TruncateMode::resample))
    ->Name("engine/draw/resampled_lognormal");

}  // namespace
}  // namespace millrace
