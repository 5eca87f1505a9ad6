#include "tools/millrace/run_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tools/millrace/counted.h"

namespace millrace {
namespace {

template <typename... Values>
std::string print(const char* format, Values... values) {
    std::array<char, 512> line{};
    std::snprintf(line.data(), line.size(), format, values...);
    return line.data();
}

/// So many significant digits, without an exponent in the range people read.
std::string number(double value, int digits = 4) {
    const double size = std::abs(value);
    if (size < 1e-12) {
        return "0";
    }
    if (size >= 1e7 || size < 1e-4) {
        return print("%.*e", digits - 1, value);
    }
    return print("%.*f", std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(size)))), value);
}

/// How well a mean is known: two digits say it.
std::string uncertainty(double half_width) {
    return number(half_width, 2);
}

std::string group_of(const std::string& key) {
    return key.substr(0, key.find('/'));
}

std::string store_text(const StoreConfig& store) {
    if (const auto* buffer = std::get_if<ReplayBufferConfig>(&store)) {
        return std::string(buffer->sharded ? "sharded " : "") +
               "replay buffer of N = " + std::to_string(buffer->capacity);
    }
    return "transfer queue of " + std::to_string(std::get<TransferQueueConfig>(store).capacity);
}

/// Published numbers by metric, each with the number of its footnote.
class Footnotes {
   public:
    explicit Footnotes(const std::vector<Published>& published) : published_(published) {
        for (const Published& entry : published) {
            if (std::find(sources_.begin(), sources_.end(), entry.source) == sources_.end()) {
                sources_.push_back(entry.source);
            }
        }
    }

    std::string cell(const std::string& metric) const {
        std::string text;
        for (const Published& entry : published_) {
            if (entry.metric == metric) {
                const auto source = std::find(sources_.begin(), sources_.end(), entry.source) - sources_.begin() + 1;
                text += (text.empty() ? "" : "  ") + print("%.6g [%d]", entry.value, static_cast<int>(source));
            }
        }
        return text;
    }

    std::string list() const {
        std::string text;
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            text += print("  [%zu] ", i + 1) + sources_[i] + "\n";
        }
        return text;
    }

   private:
    const std::vector<Published>& published_;
    std::vector<std::string> sources_;
};

std::string header(const Scenario& scenario, const RunResult& result) {
    const PipelineConfig& config = scenario.pipeline;
    std::string text =
        scenario.name + ": W = " + counted(config.workers.count, "worker") +
        ", T = " + counted(config.trainers.count, "trainer") +
        print(", batches of B = %lld in groups of G = %lld, ", static_cast<long long>(config.trainers.batch),
              static_cast<long long>(config.groups.size)) +
        store_text(config.store) + "\n";
    text += "training on a batch costs C = " + number(result.costs.gpu_s_per_update) +
            " GPU-s, generating it mu = " + number(result.costs.mu) + " times as much";
    if (!(config.workers.length.is_constant() && config.workers.length.mean() == 1.0)) {
        text += "; responses average " + number(config.workers.length.mean()) + " tokens";
    }
    text += "\n" + counted(result.replications_done, "replication") + " of " +
            counted(scenario.horizon.updates, "update") +
            print(", the first %lld of each discarded; intervals are 95 %%\n",
                  static_cast<long long>(result.warmup_updates));
    return text;
}

std::string metric_rows(const RunResult& result, const Footnotes& footnotes) {
    std::string text = print("\n%-34s %12s %10s %11s   %s\n", "metric", "simulated", "+-", "formula", "published");
    std::string group;
    for (const auto& [key, estimate] : result.metrics) {
        if (group_of(key) != group) {
            group = group_of(key);
            text += "\n";
        }
        const bool simulated = estimate.replications > 0;
        const auto predicted = result.formulas.find(key);
        std::string row = print(
            "%-34s %12s %10s %11s   %s", key.c_str(), simulated ? number(estimate.mean).c_str() : "",
            estimate.half_width ? uncertainty(*estimate.half_width).c_str() : "",
            predicted != result.formulas.end() ? number(predicted->second).c_str() : "", footnotes.cell(key).c_str());
        row.erase(row.find_last_not_of(' ') + 1);
        text += row + "\n";
    }
    return text;
}

/// One bar per value, or per range of values when there are many.
std::string histogram_bars(const std::string& title, const Histogram& histogram) {
    if (histogram.total() == 0) {
        return "";
    }
    constexpr std::size_t most_bars = 16;
    constexpr double longest = 48.0;
    const auto& counts = histogram.counts();
    const std::size_t width = (counts.size() + most_bars - 1) / most_bars;
    std::vector<double> shares((counts.size() + width - 1) / width, 0.0);
    for (std::size_t value = 0; value < counts.size(); ++value) {
        shares[value / width] += static_cast<double>(counts[value]) / static_cast<double>(histogram.total());
    }
    const double highest = *std::max_element(shares.begin(), shares.end());
    std::string text = "\n" + title + "\n";
    for (std::size_t bar = 0; bar < shares.size(); ++bar) {
        const std::string label = width == 1 ? print("%zu", bar) : print("%zu-%zu", bar * width, (bar + 1) * width - 1);
        text += print("%9s %6.2f %% ", label.c_str(), 100.0 * shares[bar]) +
                std::string(static_cast<std::size_t>(longest * shares[bar] / highest + 0.5), '#') + "\n";
    }
    return text;
}

/// What the numbers mean for somebody who rents the GPUs.
std::string in_words(const Scenario& scenario, const RunResult& result) {
    const auto mean = [&](const char* key) {
        const auto found = result.metrics.find(key);
        return found == result.metrics.end() ? std::nan("") : found->second.mean;
    };
    std::string text = "\n";
    if (std::isfinite(mean("replay/mean"))) {
        text +=
            "A rollout is used " + number(mean("replay/mean")) + " times on average and is " +
            number(mean("staleness/mean")) + " policy versions old when it is" +
            (std::isfinite(mean("staleness/p99")) ? " (99 % of the time at most " + number(mean("staleness/p99")) + ")"
                                                  : "") +
            ".\n";
    }
    text += "An update takes " + number(mean("time/update_period_s")) + " s and " +
            number(mean("compute/reserved_gpu_s_per_update")) +
            " reserved GPU-s: " + number(mean("compute/gamma_simulated")) +
            " of what a balanced pipeline without a buffer needs (C (1 + mu)).\n";
    if (const double target = mean("noise/relative_compute_to_target"); std::isfinite(target)) {
        text += "Its gradient has " + number(mean("noise/relative_variance")) +
                " times the variance of an on-policy batch, so under this noise model the compute to a target\n" +
                "is " + number(target) + " of the on-policy pipeline's: " +
                (target < 1.0 ? print("a saving of %.0f %%.\n", 100.0 * (1.0 - target))
                              : print("%.0f %% more.\n", 100.0 * (target - 1.0)));
    }
    const double workers_idle = 1.0 - mean("workers/busy");
    const double trainers_idle = 1.0 - mean("trainers/busy");
    if (std::max(workers_idle, trainers_idle) > 0.02) {
        text += "Workers are busy " + print("%.0f %%", 100.0 * (1.0 - workers_idle)) + " of the time, trainers " +
                print("%.0f %%.\n", 100.0 * (1.0 - trainers_idle));
    }
    if (scenario.price) {
        text += "At " + print("%.2f", scenario.price->usd_per_gpu_hour) + " USD per GPU-hour, 1,000 updates cost " +
                print("%.2f USD.\n", 1000.0 * mean("compute/usd_per_update"));
    }
    return text;
}

}  // namespace

std::string run_table(const Scenario& scenario, const RunResult& result, bool overridden) {
    std::string text = header(scenario, result);
    if (!result.metrics.empty()) {
        const Footnotes footnotes(scenario.published);
        text += metric_rows(result, footnotes);
        for (const auto& [key, reason] : result.undefined) {
            text += "\n" + key + " has no value: " + reason + ".";
        }
        text += result.undefined.empty() ? "" : "\n";
        if (!scenario.published.empty()) {
            text += std::string("\nPublished") + (overridden ? ", for the settings in the file, without --set" : "") +
                    ":\n" + footnotes.list();
        }
        text += histogram_bars("Staleness of the samples trained on, in policy versions",
                               result.histograms.at("staleness"));
        text += histogram_bars("Uses of a rollout until it left the store", result.histograms.at("replay_count"));
        text += histogram_bars("Updates since the previous use, of samples used before",
                               result.histograms.at("steps_since_last_use"));
        text += in_words(scenario, result);
    }
    for (const std::string& warning : result.warnings) {
        text += "\nWarning: " + warning + "\n";
    }
    if (result.interrupted) {
        text += "\nInterrupted: these are the replications that were complete.\n";
    }
    return text;
}

}  // namespace millrace
