#include "sim/engine/event_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/random.h"
#include "tests/engine/allocation_counter.h"

using namespace millrace;

namespace {

/// The same set of events, kept in a std::set ordered by (time, sequence).
class Reference {
   public:
    std::uint64_t schedule(Time time, Event event) {
        pending_.insert({time.ns, ++sequence_, event.kind, event.argument});
        time_of_.push_back({time.ns, event.kind, event.argument});
        return sequence_;
    }

    bool cancel(std::uint64_t sequence) {
        const auto [time, kind, argument] = time_of_[sequence - 1];
        return pending_.erase({time, sequence, kind, argument}) == 1;
    }

    bool pop(Event& event) {
        if (pending_.empty()) {
            return false;
        }
        const auto [time, sequence, kind, argument] = *pending_.begin();
        pending_.erase(pending_.begin());
        now_.ns = time;
        event = {kind, 0, argument};
        const std::uint64_t product = (digest_ ^ static_cast<std::uint64_t>(time)) * 0x9E3779B97F4A7C15u;
        digest_ = (product << 29 | product >> 35) ^ (std::uint64_t{kind} << 40 | sequence);
        return true;
    }

    Time now() const { return now_; }
    std::size_t size() const { return pending_.size(); }
    std::uint64_t digest() const { return digest_; }

   private:
    std::set<std::tuple<std::int64_t, std::uint64_t, std::uint32_t, std::uint64_t>> pending_;
    std::vector<std::tuple<std::int64_t, std::uint32_t, std::uint64_t>> time_of_;
    std::uint64_t sequence_ = 0;
    Time now_;
    std::uint64_t digest_ = 0;
};

struct Mix {
    const char* name;
    std::uint64_t spread;  // times lie within this many nanoseconds of now, so a small one means many ties
    int schedule_percent;  // the rest are pops, cancels and timers
    int cancel_percent;
    int timer_percent = 0;
};

constexpr std::uint32_t timer_kind = 7;

/// What tells an event from others: the number of a timer, else the argument.
std::uint64_t name_of(const Event& event) {
    return event.kind == timer_kind ? event.entity : event.argument;
}

void compare_with_reference(const Mix& mix, std::uint64_t seed) {
    CAPTURE(mix.name);
    EventQueue queue;
    Reference reference;
    std::vector<std::pair<EventHandle, std::uint64_t>> handles;
    // Of the reference, in which a timer is an event that is cancelled when it is set anew.
    std::vector<std::uint64_t> timers(mix.timer_percent > 0 ? 5 : 0);
    if (!timers.empty()) {
        queue.make_timers(timers.size(), timer_kind);
    }
    const RandomStream stream(seed, 0, Purpose::test_schedule);
    for (std::uint64_t step = 0; step < 20'000; ++step) {
        Draw draw(stream, step);
        const auto action = static_cast<int>(draw.below(100));
        if (action < mix.schedule_percent) {
            const Time time{queue.now().ns + static_cast<std::int64_t>(draw.below(mix.spread))};
            const Event event{static_cast<std::uint32_t>(draw.below(5)), 0, step};
            handles.emplace_back(queue.schedule(time, event), reference.schedule(time, event));
        } else if (action < mix.schedule_percent + mix.cancel_percent && !handles.empty()) {
            // Any handle ever given: pending, happened or already cancelled.
            const auto& [handle, sequence] = handles[draw.below(handles.size())];
            REQUIRE(queue.cancel(handle) == reference.cancel(sequence));
        } else if (action >= 100 - mix.timer_percent) {
            const auto timer = static_cast<std::uint32_t>(draw.below(timers.size()));
            if (timers[timer] != 0) {
                reference.cancel(timers[timer]);
            }
            if (draw.below(4) == 0) {
                queue.stop_timer(timer);
                timers[timer] = 0;
            } else {
                const Time time{queue.now().ns + static_cast<std::int64_t>(draw.below(mix.spread))};
                queue.set_timer(timer, time);
                timers[timer] = reference.schedule(time, {timer_kind, 0, timer});
            }
        } else {
            Event event, expected;
            REQUIRE(queue.pop(event) == reference.pop(expected));
            REQUIRE(event.kind == expected.kind);
            REQUIRE(name_of(event) == expected.argument);
        }
        REQUIRE(queue.now() == reference.now());
        REQUIRE(queue.size() == reference.size());
    }
    Event event, expected;
    while (reference.pop(expected)) {
        REQUIRE(queue.pop(event));
        REQUIRE(name_of(event) == expected.argument);
    }
    CHECK_FALSE(queue.pop(event));
    CHECK(queue.empty());
    CHECK(queue.digest() == reference.digest());
}

std::vector<std::uint64_t> drain(EventQueue& queue) {
    std::vector<std::uint64_t> arguments;
    for (Event event; queue.pop(event);) {
        arguments.push_back(event.argument);
    }
    return arguments;
}

}  // namespace

TEST_CASE("events come in the order of a std::set of (time, sequence), ties, cancels and timers included") {
    for (const Mix& mix :
         {Mix{"growing", 1'000'000, 55, 5}, Mix{"steady", 1000, 48, 4}, Mix{"nearly all tied", 2, 50, 10},
          Mix{"all at once", 1, 50, 10}, Mix{"mostly cancelled", 1'000'000'000, 50, 45},
          Mix{"mostly cancelled, tied", 3, 50, 45}, Mix{"timers", 1'000'000, 10, 2, 40},
          Mix{"timers, tied", 3, 20, 5, 30}, Mix{"timers only, all at once", 1, 0, 0, 50}}) {
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            compare_with_reference(mix, seed);
        }
    }
}

TEST_CASE("events at one instant happen in the order in which they were scheduled") {
    EventQueue queue;
    queue.schedule(Time{10}, {0, 0, 1});
    queue.schedule(Time{10}, {0, 0, 2});
    queue.schedule(Time{5}, {0, 0, 0});
    queue.schedule(Time{10}, {0, 0, 3});
    Event event;
    REQUIRE(queue.pop(event));
    REQUIRE(queue.pop(event));
    CHECK(event.argument == 1);
    CHECK(queue.now() == Time{10});
    queue.schedule(Time{10}, {0, 0, 4});  // a wake-up without delay goes behind those already waiting for this instant
    queue.schedule(Time{11}, {0, 0, 6});
    queue.schedule(Time{10}, {0, 0, 5});
    CHECK(drain(queue) == std::vector<std::uint64_t>{2, 3, 4, 5, 6});
}

TEST_CASE("the clock moves to each event and stays when there is none") {
    EventQueue queue;
    Event event;
    CHECK_FALSE(queue.pop(event));
    CHECK(queue.now() == Time{0});
    queue.schedule(Time{7}, {3, 4, 5});
    const EventHandle last = queue.schedule(Time{9}, {});
    CHECK(queue.size() == 2);
    CHECK(queue.pop(event));
    CHECK(event.kind == 3);
    CHECK(event.entity == 4);
    CHECK(event.argument == 5);
    CHECK(queue.now() == Time{7});
    CHECK(queue.cancel(last));
    CHECK_FALSE(queue.pop(event));
    CHECK(queue.now() == Time{7});  // a cancelled event does not move it
    CHECK(queue.popped() == 1);
    CHECK(queue.empty());
}

TEST_CASE("a handle is good for one event only") {
    EventQueue queue;
    CHECK_FALSE(queue.cancel(EventHandle{}));
    const EventHandle first = queue.schedule(Time{1}, {0, 0, 1});
    CHECK(queue.cancel(first));
    CHECK_FALSE(queue.cancel(first));
    // The next event takes over the slot of the first; the old handle must not reach it.
    const EventHandle second = queue.schedule(Time{1}, {0, 0, 2});
    CHECK_FALSE(queue.cancel(first));
    CHECK(drain(queue) == std::vector<std::uint64_t>{2});
    CHECK_FALSE(queue.cancel(second));
    // The same for an event at the current time.
    const EventHandle third = queue.schedule(queue.now(), {0, 0, 3});
    CHECK(queue.cancel(third));
    queue.schedule(queue.now(), {0, 0, 4});
    CHECK_FALSE(queue.cancel(third));
    CHECK(drain(queue) == std::vector<std::uint64_t>{4});
}

TEST_CASE("the last representable instant is as good as any other") {
    constexpr Time end{std::numeric_limits<std::int64_t>::max()};
    EventQueue queue;
    queue.schedule(end, {0, 0, 1});
    Event event;
    REQUIRE(queue.pop(event));
    queue.schedule(end, {0, 0, 2});
    CHECK(drain(queue) == std::vector<std::uint64_t>{2});
}

TEST_CASE("what cannot be done is refused") {
    EventQueue queue;
    queue.schedule(Time{5}, {});
    Event event;
    queue.pop(event);
    CHECK_THROWS_AS(queue.schedule(Time{4}, {}), std::logic_error);
    CHECK_THROWS_AS(queue.schedule(Time{-1}, {}), std::logic_error);
    queue.make_timers(1, timer_kind);
    CHECK_THROWS_AS(queue.set_timer(0, Time{4}), std::logic_error);

    EventQueue late(EventQueue::sequence_limit - 2);
    late.schedule(Time{1}, {0, 0, 1});
    late.schedule(Time{1}, {0, 0, 2});
    CHECK_THROWS_AS(late.schedule(Time{1}, {}), std::overflow_error);
    late.make_timers(1, timer_kind);
    CHECK_THROWS_AS(late.set_timer(0, Time{1}), std::overflow_error);
    CHECK(drain(late) == std::vector<std::uint64_t>{1, 2});

    EventQueue narrow(1, 20);
    for (std::uint64_t i = 0; i < 20; ++i) {
        narrow.schedule(Time{static_cast<std::int64_t>(i)}, {0, 0, i});
    }
    CHECK_THROWS_AS(narrow.schedule(Time{1}, {}), std::length_error);
    CHECK(narrow.size() == 20);
    narrow.pop(event);
    CHECK_NOTHROW(narrow.schedule(Time{30}, {}));
    CHECK(drain(narrow).size() == 20);
}

TEST_CASE("events that are always cancelled do not pile up") {
    EventQueue queue;
    queue.reserve(200);
    const std::uint64_t before = allocations();
    for (std::int64_t i = 0; i < 100'000; ++i) {
        // A far timeout set and cleared, as a station does on each of its events; at the same instant too.
        CHECK(queue.cancel(queue.schedule(Time{1'000'000'000 + i}, {})));
        CHECK(queue.cancel(queue.schedule(queue.now(), {})));
    }
    CHECK(queue.empty());
    CHECK(allocations() == before);
}

TEST_CASE("a steady state allocates nothing") {
    EventQueue queue;
    const RandomStream stream(1, 0, Purpose::test_schedule);
    std::uint64_t draws = 0;
    const auto later = [&] {
        return Time{queue.now().ns + static_cast<std::int64_t>(Draw(stream, draws++).below(1000))};
    };
    for (std::uint64_t i = 0; i < 1000; ++i) {
        queue.schedule(later(), {0, 0, i});
    }
    const auto turn = [&] {
        Event event;
        queue.pop(event);
        const EventHandle handle = queue.schedule(later(), event);
        queue.schedule(queue.now(), {1, 0, 0});
        if (event.argument % 3 == 0) {
            queue.cancel(handle);
            queue.schedule(later(), event);
        }
        while (event.kind != 1) {
            queue.pop(event);
            if (event.kind != 1) {
                queue.schedule(later(), event);
            }
        }
    };
    for (int i = 0; i < 10'000; ++i) {
        turn();
    }
    const std::uint64_t before = allocations();
    for (int i = 0; i < 100'000; ++i) {
        turn();
    }
    CHECK(allocations() == before);
    CHECK(queue.size() == 1000);
}

TEST_CASE("the digest tells apart orders, times and kinds") {
    const auto digest = [](std::vector<std::pair<std::int64_t, std::uint32_t>> events) {
        EventQueue queue;
        for (const auto& [time, kind] : events) {
            queue.schedule(Time{time}, {kind, 0, 0});
        }
        drain(queue);
        return queue.digest();
    };
    const std::set<std::uint64_t> digests = {digest({{1, 1}, {2, 1}}), digest({{2, 1}, {1, 1}}),
                                             digest({{1, 1}, {3, 1}}), digest({{1, 2}, {2, 1}}),
                                             digest({{1, 1}, {2, 2}}), digest({{1, 1}})};
    CHECK(digests.size() == 6);
    CHECK(digest({{1, 1}, {2, 1}}) == digest({{1, 1}, {2, 1}}));
}
