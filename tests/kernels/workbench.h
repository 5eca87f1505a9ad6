// Arrays of one kernel case in a backend's memory: filled with numbers that do not depend on the backend, guarded on
// both sides, and read back in double.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/random.h"

namespace millrace::test {

/// Numbers of one replica; a replica's numbers do not depend on how many there are.
using Numbers = std::vector<double>;

inline std::uint64_t hash_of(const std::string& text) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    return hash;
}

/// A uniform number of (0, 1) for element `index` of array `name`, exactly representable in float.
inline double uniform_at(const std::string& name, std::uint64_t index) {
    return static_cast<double>(uniform_from(learner_bits(hash_of(name), LearnerPurpose::test, index).word[0]));
}

/// How a case is run.
struct Setting {
    int first_replica = 0;  ///< of the numbers drawn
    int replicas = 1;
    std::map<std::string, std::vector<double>> given = {};  ///< all replicas' numbers of arrays that are not drawn
    /// What inputs are rounded to before anything is computed, so that two precisions start from the same numbers.
    double (*round_real)(double) = nullptr;
    double (*round_operand)(double) = nullptr;
};

inline double round_to_float(double value) {
    return static_cast<double>(static_cast<float>(value));
}
inline double round_to_bf16(double value) {
    return static_cast<double>(to_float(to_bf16(static_cast<float>(value))));
}

/// What a case left in its arrays, by name; every element of an output must have been written.
using Outcome = std::map<std::string, std::vector<double>>;

template <typename P>
class Workbench {
   public:
    using Real = typename P::Real;
    using Operand = typename P::Operand;

    Workbench(Backend<P>& backend, Setting setting) : backend_(backend), setting_(std::move(setting)) {}
    ~Workbench() {
        for (const Array& array : arrays_) {
            backend_.release(array.memory);
        }
    }
    Workbench(const Workbench&) = delete;
    Workbench& operator=(const Workbench&) = delete;

    Backend<P>& backend() { return backend_; }
    int replicas() const { return setting_.replicas; }

    // ---- arrays: [S][size] -----------------------------------------------------------------------------------------

    /// Uniform in (low, high), and never changed by the operation.
    const Real* real(const std::string& name, std::size_t size, double low = -1, double high = 1) {
        return filled<Real>(name, size, Role::input, setting_.round_real, drawn(name, size, low, high));
    }
    const Operand* operand(const std::string& name, std::size_t size, double low = -1, double high = 1) {
        return filled<Operand>(name, size, Role::input, setting_.round_operand, drawn(name, size, low, high));
    }
    /// Has numbers before and others after.
    Real* changing_real(const std::string& name, std::size_t size, double low = -1, double high = 1) {
        return filled<Real>(name, size, Role::output, setting_.round_real, drawn(name, size, low, high));
    }
    Operand* changing_operand(const std::string& name, std::size_t size, double low = -1, double high = 1) {
        return filled<Operand>(name, size, Role::output, setting_.round_operand, drawn(name, size, low, high));
    }
    /// Integers of [0, end).
    const std::int32_t* integers(const std::string& name, std::size_t size, int end, int begin = 0) {
        return filled<std::int32_t>(name, size, Role::input, nullptr, whole(drawn(name, size, begin, end)));
    }
    std::int32_t* changing_integers(const std::string& name, std::size_t size, int end) {
        return filled<std::int32_t>(name, size, Role::output, nullptr, whole(drawn(name, size, 0, end)));
    }
    const std::uint64_t* identifiers(const std::string& name, std::size_t size) {
        return filled<std::uint64_t>(name, size, Role::input, nullptr, whole(drawn(name, size, 0, 1 << 23)));
    }
    /// The same `values` for all replicas together.
    template <typename T>
    const T* shared(const std::string& name, const std::vector<T>& values) {
        Array& array = add(name, values.size() * sizeof(T), Role::input);
        array.read = nullptr;
        backend_.upload(array.data(), values.data(), values.size() * sizeof(T));
        array.before = bytes(array);
        return static_cast<const T*>(array.data());
    }
    /// Poisoned with NaN before.
    Real* real_output(const std::string& name, std::size_t size) { return poisoned<Real>(name, size, Role::output); }
    Operand* operand_output(const std::string& name, std::size_t size) {
        return poisoned<Operand>(name, size, Role::output);
    }
    std::int32_t* integer_output(const std::string& name, std::size_t size) {
        return poisoned<std::int32_t>(name, size, Role::output);
    }
    /// Poisoned before, and nobody's business after. `size` is that of all replicas.
    Real* scratch(const std::string& name, std::size_t size) {
        return static_cast<Real*>(add(name, size * sizeof(Real), Role::scratch).data());
    }
    Operand* operand_scratch(const std::string& name, std::size_t size) {
        return static_cast<Operand*>(add(name, size * sizeof(Operand), Role::scratch).data());
    }

    // ---- afterwards ------------------------------------------------------------------------------------------------

    /// Reads all outputs, and checks that guards and inputs are what they were.
    Outcome outcome() {
        Outcome result;
        for (Array& array : arrays_) {
            CAPTURE(array.name);
            std::vector<std::byte> all(array.bytes + 2 * guard);
            backend_.download(all.data(), array.memory, all.size());
            const auto whole_guard = [](auto first, auto last) {
                return std::all_of(first, last, [](std::byte b) { return b == guard_byte; });
            };
            const auto begin = all.begin() + static_cast<std::ptrdiff_t>(guard);
            const auto end = begin + static_cast<std::ptrdiff_t>(array.bytes);
            CHECK_MESSAGE(whole_guard(all.begin(), begin), "written before the array");
            CHECK_MESSAGE(whole_guard(end, all.end()), "written behind the array");
            if (array.role == Role::input) {
                CHECK_MESSAGE(std::equal(begin, end, array.before.begin(), array.before.end()), "an input was changed");
            } else if (array.role == Role::output) {
                result[array.name] = array.read(all.data() + guard, array.bytes);
            }
        }
        return result;
    }

    /// The numbers that input `name` was given, all replicas'.
    const std::vector<double>& input(const std::string& name) const { return inputs_.at(name); }
    bool has_input(const std::string& name) const { return inputs_.contains(name); }

   private:
    enum class Role { input, output, scratch };
    static constexpr std::size_t guard = 256;
    static constexpr std::byte guard_byte{0xA5};

    struct Array {
        std::string name;
        void* memory = nullptr;
        std::size_t bytes = 0;
        Role role = Role::input;
        std::vector<std::byte> before;
        std::vector<double> (*read)(const std::byte* data, std::size_t bytes) = nullptr;

        void* data() const { return static_cast<std::byte*>(memory) + guard; }
    };

    template <typename T>
    static double as_double(T value) {
        if constexpr (std::is_same_v<T, Bf16>) {
            return static_cast<double>(to_float(value));
        } else {
            return static_cast<double>(value);
        }
    }
    template <typename T>
    static T from_double(double value) {
        if constexpr (std::is_same_v<T, Bf16>) {
            return to_bf16(static_cast<float>(value));
        } else {
            return static_cast<T>(value);
        }
    }
    template <typename T>
    static std::vector<double> read_as(const std::byte* data, std::size_t bytes) {
        std::vector<T> values(bytes / sizeof(T));
        std::memcpy(values.data(), data, bytes);
        std::vector<double> numbers(values.size());
        std::transform(values.begin(), values.end(), numbers.begin(), [](T value) { return as_double(value); });
        return numbers;
    }

    std::vector<std::byte> bytes(const Array& array) {
        std::vector<std::byte> all(array.bytes);
        backend_.download(all.data(), array.data(), all.size());
        return all;
    }

    Array& add(const std::string& name, std::size_t size, Role role) {
        Array& array = arrays_.emplace_back();
        array.name = name;
        array.memory = backend_.allocate(size + 2 * guard);
        array.bytes = size;
        array.role = role;
        std::vector<std::byte> contents(size + 2 * guard, guard_byte);
        std::fill_n(contents.begin() + guard, size, std::byte{0xFF});  // NaN in every floating-point type; -1
        backend_.upload(array.memory, contents.data(), contents.size());
        return array;
    }

    template <typename T>
    T* poisoned(const std::string& name, std::size_t size, Role role) {
        Array& array = add(name, size * static_cast<std::size_t>(replicas()) * sizeof(T), role);
        array.read = &read_as<T>;
        return static_cast<T*>(array.data());
    }

    template <typename T>
    T* filled(const std::string& name, std::size_t size, Role role, double (*round)(double),
              std::vector<double> numbers) {
        if (const auto given = setting_.given.find(name); given != setting_.given.end()) {
            numbers = given->second;
        }
        REQUIRE(numbers.size() == size * static_cast<std::size_t>(replicas()));
        if (round != nullptr) {
            std::transform(numbers.begin(), numbers.end(), numbers.begin(), round);
        }
        T* data = poisoned<T>(name, size, role);
        std::vector<T> values(numbers.size());
        std::transform(numbers.begin(), numbers.end(), values.begin(), [](double x) { return from_double<T>(x); });
        backend_.upload(data, values.data(), values.size() * sizeof(T));
        arrays_.back().before = bytes(arrays_.back());
        inputs_[name] = std::move(numbers);
        return data;
    }

    std::vector<double> drawn(const std::string& name, std::size_t size, double low, double high) const {
        std::vector<double> numbers;
        for (int s = 0; s < replicas(); ++s) {
            const std::string key = name + "/" + std::to_string(setting_.first_replica + s);
            for (std::size_t i = 0; i < size; ++i) {
                numbers.push_back(low + (high - low) * uniform_at(key, i));
            }
        }
        return numbers;
    }
    static std::vector<double> whole(std::vector<double> numbers) {
        std::transform(numbers.begin(), numbers.end(), numbers.begin(), [](double x) { return std::floor(x); });
        return numbers;
    }

    Backend<P>& backend_;
    Setting setting_;
    std::vector<Array> arrays_;
    std::map<std::string, std::vector<double>> inputs_;
};

}  // namespace millrace::test
