// The yardstick of the event queue's benchmarks: the engine one would write first, a std::priority_queue of events that
// carry a function pointer. Same order of events as EventQueue.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace millrace {

class ReferenceEngine {
   public:
    using Handler = void (*)(void* model, std::uint64_t argument);

    explicit ReferenceEngine(void* model) : model_(model) {}

    void schedule(std::int64_t time_ns, Handler handler, std::uint64_t argument) {
        pending_.push({time_ns, sequence_++, handler, argument});
    }

    /// Runs the next event; false when there is none.
    bool step() {
        if (pending_.empty()) {
            return false;
        }
        const Entry next = pending_.top();
        pending_.pop();
        now_ns_ = next.time_ns;
        next.handler(model_, next.argument);
        return true;
    }

    std::int64_t now_ns() const { return now_ns_; }

   private:
    struct Entry {
        std::int64_t time_ns;
        std::uint64_t sequence;
        Handler handler;
        std::uint64_t argument;
    };
    static_assert(sizeof(Entry) == 32);

    struct Later {
        bool operator()(const Entry& a, const Entry& b) const {
            return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.sequence > b.sequence;
        }
    };

    std::priority_queue<Entry, std::vector<Entry>, Later> pending_;
    void* model_;
    std::uint64_t sequence_ = 0;
    std::int64_t now_ns_ = 0;
};

}  // namespace millrace
