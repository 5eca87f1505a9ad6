#include "model/shares.h"

#include <doctest/doctest.h>

using namespace millrace;

TEST_CASE("small tasks: parts of one replica, nearly equal, in order, none too large") {
    const std::vector<int> units{64, 0, 33};
    const std::vector<Share> shares = divide(units, 17, 576);  // 33 sequences at most
    REQUIRE(shares.size() == 3);
    CHECK(shares[0].units == 32);
    CHECK(shares[1].first == 32);
    CHECK(shares[1].units == 32);
    CHECK(shares[2].replica == 2);
    CHECK(shares[2].units == 33);
}

TEST_CASE("a replica's shares depend on nothing but its own units") {
    const std::vector<Share> among = divide(std::vector<int>{100, 7, 61}, 18, 576);
    const std::vector<Share> alone = divide(std::vector<int>{61}, 18, 576);
    REQUIRE(among.size() >= alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
        const Share& share = among[among.size() - alone.size() + i];
        CHECK(share.replica == 2);
        CHECK(share.first == alone[i].first);
        CHECK(share.units == alone[i].units);
    }
}

TEST_CASE("a unit that is larger than a task is a task") {
    CHECK(divide(std::vector<int>{3}, 1000, 576).size() == 3);
}

TEST_CASE("large tasks hold whole replicas") {
    const std::vector<Share> shares = divide(std::vector<int>(5, 64), 1000, 130000);  // 130 sequences: two replicas
    REQUIRE(shares.size() == 3);
    CHECK(shares[0].replicas == 2);
    CHECK(shares[2].replica == 4);
    CHECK(shares[2].replicas == 1);
    CHECK(shares[2].units == 64);
    // A replica that does not fit is divided all the same.
    CHECK(divide(std::vector<int>(2, 64), 4000, 130000).size() == 4);
}
