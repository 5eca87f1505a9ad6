#include "tools/millrace/warm_starts.h"

#include <variant>

#include "tools/millrace/interrupt.h"

namespace millrace {

WarmStarts::Weights WarmStarts::get(AnyBackend& backend, const LearnerSettings& settings) {
    const std::lock_guard lock(mutex_);  // also while it is made: whoever asks for it next has to wait for it anyway
    for (const auto& [wanted, weights] : made_) {
        if (wanted.task == settings.task && wanted.model == settings.model &&
            wanted.warm_start == settings.warm_start) {
            return weights;
        }
    }
    auto weights = std::visit(
        [&](auto& one) { return std::make_shared<WarmStart<float>>(warm_start(*one, settings, &interrupted())); },
        backend);
    made_.emplace_back(settings, weights);
    return weights;
}

}  // namespace millrace
