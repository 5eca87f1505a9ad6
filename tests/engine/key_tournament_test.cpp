#include "sim/engine/key_tournament.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "sim/engine/random.h"

using namespace millrace;

TEST_CASE("a tournament's top is the smallest of the keys in it, whichever places they come and go in") {
    using Key = KeyTournament::Key;
    for (const std::size_t places : {1u, 2u, 3u, 7u, 64u, 100u}) {
        const RandomStream stream(places, 0, Purpose::test_schedule);
        KeyTournament tournament(places);
        std::map<Key, std::size_t> expected;
        std::vector<std::size_t> free;
        for (std::size_t place = 0; place < places; ++place) {
            free.push_back(place);
        }
        for (std::uint64_t step = 0; step < 5000; ++step) {
            Draw draw(stream, step);
            // Phases of filling and of emptying; a removal is followed by a put into the same place, into another one,
            // or by another removal.
            const bool puts = draw.below(8) < (step / 300 % 2 == 0 ? 5u : 3u);
            if (puts && !free.empty()) {
                const std::size_t chosen = draw.below(free.size());
                const std::size_t place = free[chosen];
                free[chosen] = free.back();
                free.pop_back();
                // Few values in the upper half, so that the lower one decides often.
                const Key key = Key{draw.below(20)} << 64 | step << 24 | place;
                expected[key] = place;
                tournament.put(place, key);
            } else if (!puts && !expected.empty()) {
                const auto [key, place] = *expected.begin();
                expected.erase(expected.begin());
                free.push_back(place);
                tournament.remove_top(place);
            }
            REQUIRE(tournament.top() == (expected.empty() ? KeyTournament::never : expected.begin()->first));
        }
    }
}
