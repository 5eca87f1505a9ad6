#include "sim/engine/key_tournament.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "sim/engine/random.h"

using namespace millrace;

// Keys of both widths in use: in few values of their upper bits, so that the lower ones decide often.
TEST_CASE_TEMPLATE("a tournament's top is the smallest of the keys in it, whichever places they come and go in", Key,
                   std::uint64_t, Uint128) {
    constexpr int upper = sizeof(Key) * 8 - 24;
    for (const std::size_t places : {1u, 2u, 3u, 7u, 64u, 100u}) {
        const RandomStream stream(places, 0, Purpose::test_schedule);
        KeyTournament<Key> tournament(places);
        std::map<Key, std::size_t> expected;
        std::vector<Key> key_in(places, KeyTournament<Key>::never);
        const auto take_out = [&](std::size_t place) {
            expected.erase(key_in[place]);
            key_in[place] = KeyTournament<Key>::never;
        };
        for (std::uint64_t step = 0; step < 8000; ++step) {
            Draw draw(stream, step);
            // Phases of filling and of emptying; a removal is followed by a put into the same place, into another one
            // that may be taken, or by another removal.
            const bool filling = step / 300 % 2 == 0;
            const std::uint64_t action = draw.below(16);
            const std::size_t place = draw.below(places);
            if (action < (filling ? 9u : 5u)) {
                take_out(place);
                key_in[place] = Key{draw.below(20)} << upper | static_cast<Key>(step << 8 | place);
                expected[key_in[place]] = place;
                tournament.put(place, key_in[place]);
            } else if (action < 12) {
                if (!expected.empty()) {
                    const std::size_t first = expected.begin()->second;
                    take_out(first);
                    tournament.remove_top(first);
                }
            } else {
                take_out(place);
                tournament.remove(place);
            }
            REQUIRE(tournament.key(place) == key_in[place]);
            REQUIRE(tournament.top() == (expected.empty() ? KeyTournament<Key>::never : expected.begin()->first));
            if (step % 1000 == 999 && !expected.empty()) {
                const Key amount = expected.begin()->first;
                tournament.lower_all(amount);
                std::map<Key, std::size_t> lowered;
                for (const auto& [key, where] : expected) {
                    key_in[where] = key - amount;
                    lowered[key - amount] = where;
                }
                expected = lowered;
                REQUIRE(tournament.top() == 0);
            }
        }
    }
}
