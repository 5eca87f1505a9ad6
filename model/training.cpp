#include "model/training.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace millrace {

namespace {

/// Names recorded work: the same for the same numbers only.
std::uint64_t key_of(std::initializer_list<std::uint64_t> parts) {
    return content_hash(std::as_bytes(std::span(parts.begin(), parts.size())));
}

std::uint64_t address_of(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
}

ObjectiveRule rule_of(const ObjectiveSettings& settings) {
    ObjectiveRule rule;
    switch (settings.algorithm) {
        case Algorithm::grpo:
            rule.kind = ObjectiveKind::grpo;
            break;
        case Algorithm::asymre:
            rule.kind = ObjectiveKind::asymre;
            break;
        case Algorithm::reinforce:
            rule.kind = ObjectiveKind::reinforce;
            break;
    }
    rule.ratio = settings.ratio == RatioLevel::token ? RatioKind::token : RatioKind::sequence;
    rule.clip_low = settings.clip_low;
    rule.clip_high = settings.clip_high;
    return rule;
}

template <typename P, typename T>
void upload_growing(Backend<P>& backend, BackendArray<P, T>& array, const std::vector<T>& host) {
    if (array.size() < host.size()) {
        array = BackendArray<P, T>(backend, host.size());
    }
    if (!host.empty()) {
        array.upload(host);
    }
}

}  // namespace

template <typename P>
Trainer<P>::Trainer(Backend<P>& backend, const ModelShape& shape, int replicas, int prompt_tokens, int sequence_tokens)
    : backend_(backend),
      transformer_(backend, shape),
      prompt_tokens_(prompt_tokens),
      sequence_tokens_(sequence_tokens),
      weights_(backend, shape, replicas),
      pool_(backend, shape, replicas) {
    const std::size_t all = static_cast<std::size_t>(replicas) * weights_.parameters();
    first_moment_ = BackendArray<P, Real>(backend, all);
    second_moment_ = BackendArray<P, Real>(backend, all);
    gradient_ = BackendArray<P, Real>(backend, all);
    norm_ = BackendArray<P, Real>(backend, static_cast<std::size_t>(replicas));
    norm_scratch_ = BackendArray<P, Real>(
        backend, std::max(backend.norm_scratch(replicas, weights_.parameters()),
                          static_cast<std::size_t>(replicas) * backend.norm_scratch(1, weights_.parameters())));
    adamw_step_ = BackendArray<P, AdamWStep<Real>>(backend, 1);
    workspaces_.resize(static_cast<std::size_t>(backend.lanes()));
}

template <typename P>
void Trainer<P>::start(std::span<const Real> weights) {
    weights_.upload(weights);
    weights_.set_version(0);
    updates_ = 0;
    backend_.clear(first_moment_.data(), first_moment_.size() * sizeof(Real));
    backend_.clear(second_moment_.data(), second_moment_.size() * sizeof(Real));
}

template <typename P>
std::vector<UpdateStatistics> Trainer<P>::update(std::span<const TaskRollout* const> batch,
                                                 const ObjectiveSettings& objective, const OptimizerSettings& optimizer,
                                                 double learning_rate) {
    return step(batch, rule_of(objective), optimizer, learning_rate);
}

template <typename P>
std::vector<UpdateStatistics> Trainer<P>::update_supervised(std::span<const TaskRollout* const> batch,
                                                            const OptimizerSettings& optimizer, double learning_rate) {
    return step(batch, {.kind = ObjectiveKind::supervised}, optimizer, learning_rate);
}

template <typename P>
std::vector<typename P::Real> Trainer<P>::gradient(std::span<const TaskRollout* const> batch,
                                                   const ObjectiveRule& rule) {
    compute_gradient(batch, rule);
    return gradient_.download();
}

template <typename P>
TrainingState<typename P::Real> Trainer<P>::state() const {
    return {updates_, weights_.download(), first_moment_.download(), second_moment_.download()};
}

template <typename P>
void Trainer<P>::restore(const TrainingState<Real>& state) {
    if (state.first_moment.size() != first_moment_.size() || state.second_moment.size() != second_moment_.size()) {
        throw std::invalid_argument("The optimizer's state is of another number of replicas or parameters.");
    }
    weights_.upload(state.weights);
    first_moment_.upload(state.first_moment);
    second_moment_.upload(state.second_moment);
    updates_ = state.updates;
    weights_.set_version(updates_);
}

// ---- one update -----------------------------------------------------------------------------------------------------

template <typename P>
std::vector<UpdateStatistics> Trainer<P>::step(std::span<const TaskRollout* const> batch, const ObjectiveRule& rule,
                                               const OptimizerSettings& optimizer, double learning_rate) {
    compute_gradient(batch, rule);
    apply(optimizer, learning_rate);
    return statistics();
}

template <typename P>
void Trainer<P>::compute_gradient(std::span<const TaskRollout* const> batch, const ObjectiveRule& rule) {
    if (batch.empty()) {
        throw std::invalid_argument("A batch without rollouts cannot be trained on.");
    }
    pack(batch, rule);
    reserve();
    const double scale = 1.0 / static_cast<double>(batch.size());
    backend_.parallel(static_cast<int>(packed_.shares.size()),
                      [&](int share, int lane) { run_share(share, lane, rule, scale); });
    add_up();
}

template <typename P>
void Trainer<P>::pack(std::span<const TaskRollout* const> batch, const ObjectiveRule& rule) {
    const auto replicas = static_cast<std::size_t>(weights_.replicas());
    const bool supervised = rule.kind == ObjectiveKind::supervised;
    const bool keep_all = backend_.tokens_per_task() >= whole_batch_tokens;
    const auto row = static_cast<std::size_t>(sequence_tokens_);
    const int most_rows = sequence_tokens_ - 1;

    std::vector<std::vector<const TaskRollout*>> active(replicas);
    std::vector<int> units(replicas);
    for (const TaskRollout* rollout : batch) {
        if (rollout->tokens.size() != replicas * row || rollout->answer_tokens.size() != replicas ||
            (!supervised && rollout->advantage.size() != replicas)) {
            throw std::invalid_argument("A rollout of other replicas or of another length cannot be trained on.");
        }
        for (std::size_t s = 0; s < replicas; ++s) {
            if (supervised || keep_all || rollout->advantage[s] != 0.0) {
                active[s].push_back(rollout);
            }
        }
    }
    std::ranges::transform(active, units.begin(), [](const auto& list) { return static_cast<int>(list.size()); });

    packed_ = {};
    packed_.sequences = units;
    packed_.shares = divide(units, static_cast<std::size_t>(most_rows), backend_.tokens_per_task());
    packed_.first_share.assign(replicas + 1, 0);
    packed_.first.push_back(0);
    for (const Share& share : packed_.shares) {
        const auto members = [&](int replica) {
            return std::span(active[static_cast<std::size_t>(replica)])
                .subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.units));
        };
        int rows = keep_all ? most_rows : 1;
        for (int replica = share.replica; replica < share.replica + share.replicas; ++replica) {
            ++packed_.first_share[static_cast<std::size_t>(replica) + 1];
            for (const TaskRollout* rollout : members(replica)) {
                const std::int32_t answer = rollout->answer_tokens[static_cast<std::size_t>(replica)];
                rows = std::max(rows, std::min(most_rows, prompt_tokens_ + answer - 1));
            }
        }
        packed_.share_tokens.push_back(rows);
        // Positions of the shares are those of their sequences with the most rows.
        packed_.old_log_probability.resize(packed_.first.back() * static_cast<std::size_t>(most_rows));
        for (int replica = share.replica; replica < share.replica + share.replicas; ++replica) {
            for (const TaskRollout* rollout : members(replica)) {
                append(*rollout, replica, rows, supervised);
            }
        }
        packed_.first.push_back(packed_.answer_tokens.size());
    }
    packed_.old_log_probability.resize(packed_.first.back() * static_cast<std::size_t>(most_rows));
    if (keep_all && !std::ranges::all_of(packed_.fresh, [](bool fresh) { return fresh; })) {
        packed_.fresh.assign(packed_.fresh.size(), false);  // one record for all mixtures
    }
    for (std::size_t s = 0; s < replicas; ++s) {
        packed_.first_share[s + 1] += packed_.first_share[s];
    }
}

template <typename P>
void Trainer<P>::append(const TaskRollout& rollout, int replica, int share_tokens, bool supervised) {
    const auto s = static_cast<std::size_t>(replica);
    const auto row = static_cast<std::size_t>(sequence_tokens_);
    const auto rows = static_cast<std::size_t>(share_tokens);
    const auto answer = static_cast<std::size_t>(rollout.answer_tokens[s]);
    const auto first_answer_row = static_cast<std::size_t>(prompt_tokens_ - 1);
    const auto begin = rollout.tokens.begin() + static_cast<std::ptrdiff_t>(s * row);
    packed_.tokens.insert(packed_.tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(row));
    packed_.answer_tokens.push_back(rollout.answer_tokens[s]);
    packed_.advantage.push_back(supervised ? Real(1) : static_cast<Real>(rollout.advantage[s]));
    packed_.fresh.push_back(!supervised && rollout.policy_version == updates_);
    auto& old = packed_.old_log_probability;
    const std::size_t place = old.size();
    old.resize(place + rows, Real(0));
    if (!supervised) {
        const std::size_t room = rollout.log_probability.size() / static_cast<std::size_t>(weights_.replicas());
        for (std::size_t i = 0; i < std::min({answer, room, rows - first_answer_row}); ++i) {
            old[place + first_answer_row + i] = static_cast<Real>(rollout.log_probability[s * room + i]);
        }
    }
}

/// Uploads the batch and makes sure that there is room to work. Memory once reserved is kept: on a GPU memory that goes
/// away takes recorded work with it.
template <typename P>
void Trainer<P>::reserve() {
    upload_growing(backend_, tokens_, packed_.tokens);
    upload_growing(backend_, answer_tokens_, packed_.answer_tokens);
    upload_growing(backend_, advantage_, packed_.advantage);
    upload_growing(backend_, old_log_probability_, packed_.old_log_probability);
    const std::size_t statistics = packed_.answer_tokens.size() * sequence_statistics;
    if (statistics_.size() < statistics) {
        statistics_ = BackendArray<P, Real>(backend_, statistics);
    }
    const std::size_t slots = packed_.shares.size() * weights_.parameters();
    if (slots_.size() < slots) {
        slots_ = BackendArray<P, Real>(backend_, slots);
    }

    Extent needed = largest_;
    needed.tokens = sequence_tokens_ - 1;
    for (const Share& share : packed_.shares) {
        needed.replicas = std::max(needed.replicas, share.replicas);
        needed.sequences = std::max(needed.sequences, share.units);
    }
    if (needed.replicas > largest_.replicas || needed.sequences > largest_.sequences) {
        for (auto& workspace : workspaces_) {
            workspace.reset();
        }
    }
    largest_ = needed;
    for (auto& workspace : std::span(workspaces_).first(std::min(workspaces_.size(), packed_.shares.size()))) {
        if (!workspace) {
            workspace = std::make_unique<Workspace<P>>(Workspace<P>::for_training(backend_, shape(), largest_));
        }
    }
}

template <typename P>
void Trainer<P>::run_share(int index, int lane, const ObjectiveRule& rule, double scale) {
    const auto k = static_cast<std::size_t>(index);
    const Share& share = packed_.shares[k];
    const std::size_t first = packed_.first[k];
    const std::size_t parameters = static_cast<std::size_t>(share.replica) * weights_.parameters();
    const auto row = static_cast<std::size_t>(sequence_tokens_);
    const auto replica = static_cast<std::size_t>(share.replica);
    Workspace<P>& workspace = *workspaces_[static_cast<std::size_t>(lane)];
    Activations<P>& a = workspace.activations();
    const bool only_part = packed_.first_share[replica + 1] - packed_.first_share[replica] > 1;
    Real* const gradient = only_part ? slots_.data() + k * weights_.parameters() : gradient_.data() + parameters;

    const PassInput<P> input{.extent = {share.replicas, share.units, packed_.share_tokens[k]},
                             .tokens = tokens_.data() + first * row,
                             .token_stride = row,
                             .reals = weights_.reals() + parameters,
                             .operands = weights_.operands() + parameters,
                             .parameter_stride = weights_.parameters()};
    Classifier<P> classifier{.extent = input.extent,
                             .vocabulary = shape().vocabulary,
                             .logits = a.logits,
                             .targets = input.tokens + 1,
                             .target_stride = row,
                             .log_probability = a.log_probability,
                             .entropy = a.entropy};
    const Objective<P> objective{.extent = input.extent,
                                 .rule = rule,
                                 .scale = scale,
                                 .first_answer_row = prompt_tokens_ - 1,
                                 .answer_tokens = answer_tokens_.data() + first,
                                 .advantage = advantage_.data() + first,
                                 .log_probability = a.log_probability,
                                 .old_log_probability = old_log_probability_.data() + first * (row - 1),
                                 .entropy = a.entropy,
                                 .weight = a.weight,
                                 .statistics = statistics_.data() + first * sequence_statistics};

    const auto fresh = packed_.fresh.begin() + static_cast<std::ptrdiff_t>(first);
    const auto fresh_end = packed_.fresh.begin() + static_cast<std::ptrdiff_t>(packed_.first[k + 1]);
    const bool any_fresh = std::find(fresh, fresh_end, true) != fresh_end;
    const std::uint64_t key =
        key_of({address_of(workspace.address()), address_of(gradient), address_of(input.tokens),
                address_of(objective.statistics), static_cast<std::uint64_t>(share.replicas),
                static_cast<std::uint64_t>(share.units), static_cast<std::uint64_t>(input.extent.tokens),
                static_cast<std::uint64_t>(any_fresh), static_cast<std::uint64_t>(rule.kind),
                static_cast<std::uint64_t>(rule.ratio), std::bit_cast<std::uint64_t>(rule.clip_low),
                std::bit_cast<std::uint64_t>(rule.clip_high), std::bit_cast<std::uint64_t>(scale)});
    backend_.repeatable(key, [&] {
        transformer_.forward(input, a);
        backend_.run(classifier);
        if (any_fresh) {
            replace_fresh(k, a.log_probability);
        }
        backend_.run(objective);
        classifier.log_probability = nullptr;
        classifier.entropy = nullptr;
        classifier.weight = a.weight;
        classifier.dlogits = a.dlogits;
        backend_.run(classifier);
        transformer_.backward(input, a, gradient, weights_.parameters());
    });
}

/// Log-probabilities of the share's fresh sequences at generation become those that were just computed.
template <typename P>
void Trainer<P>::replace_fresh(std::size_t share, const Real* log_probability) {
    const auto rows = static_cast<std::size_t>(packed_.share_tokens[share]);
    const std::size_t first = packed_.first[share];
    const std::size_t end = packed_.first[share + 1];
    Real* const old = old_log_probability_.data() + first * static_cast<std::size_t>(sequence_tokens_ - 1);
    for (std::size_t begin = first; begin < end;) {
        std::size_t run = begin;  // a run of fresh sequences, then the stale one that ends it
        while (run < end && packed_.fresh[run]) {
            ++run;
        }
        backend_.copy(old + (begin - first) * rows, log_probability + (begin - first) * rows,
                      (run - begin) * rows * sizeof(Real));
        begin = run + 1;
    }
}

/// Adds up the parts of replicas that were divided. The others' gradients are in place already.
template <typename P>
void Trainer<P>::add_up() {
    const std::size_t parameters = weights_.parameters();
    backend_.parallel(weights_.replicas(), [&](int replica, int) {
        const auto s = static_cast<std::size_t>(replica);
        const int first = packed_.first_share[s];
        const int parts = packed_.first_share[s + 1] - first;
        Real* const sum = gradient_.data() + s * parameters;
        if (parts == 0) {
            backend_.clear(sum, parameters * sizeof(Real));
        } else if (parts > 1) {
            backend_.run(SumParts<P>{.parts = parts,
                                     .part_stride = parameters,
                                     .size = parameters,
                                     .part = slots_.data() + static_cast<std::size_t>(first) * parameters,
                                     .sum = sum});
        }
    });
}

template <typename P>
void Trainer<P>::apply(const OptimizerSettings& optimizer, double learning_rate) {
    ++updates_;
    weights_.set_version(updates_);
    const auto step = static_cast<double>(updates_);
    const std::vector<AdamWStep<Real>> numbers{
        {.learning_rate = static_cast<Real>(learning_rate),
         .first_correction = static_cast<Real>(1.0 / (1.0 - std::pow(optimizer.beta1, step))),
         .second_correction = static_cast<Real>(1.0 / (1.0 - std::pow(optimizer.beta2, step)))}};
    adamw_step_.upload(numbers);

    const std::size_t parameters = weights_.parameters();
    const auto update_replicas = [&](int first, int replicas) {
        const auto s = static_cast<std::size_t>(first);
        const std::size_t place = s * parameters;
        backend_.run(GlobalNorm<P>{.replicas = replicas,
                                   .parameters = parameters,
                                   .gradient = gradient_.data() + place,
                                   .norm = norm_.data() + s,
                                   .scratch = norm_scratch_.data() + s * backend_.norm_scratch(1, parameters)});
        backend_.run(AdamW<P>{.replicas = replicas,
                              .parameters = parameters,
                              .beta1 = optimizer.beta1,
                              .beta2 = optimizer.beta2,
                              .epsilon = optimizer.epsilon,
                              .weight_decay = optimizer.weight_decay,
                              .max_norm = optimizer.max_gradient_norm,
                              .step = adamw_step_.data(),
                              .norm = norm_.data() + s,
                              .gradient = gradient_.data() + place,
                              .first = first_moment_.data() + place,
                              .second = second_moment_.data() + place,
                              .weight = weights_.reals() + place,
                              .operand = weights_.rounded() == nullptr ? nullptr : weights_.rounded() + place});
    };
    if (backend_.tokens_per_task() >= whole_batch_tokens) {
        const std::uint64_t key =
            key_of({address_of(gradient_.data()), std::bit_cast<std::uint64_t>(optimizer.beta1),
                    std::bit_cast<std::uint64_t>(optimizer.beta2), std::bit_cast<std::uint64_t>(optimizer.epsilon),
                    std::bit_cast<std::uint64_t>(optimizer.weight_decay),
                    std::bit_cast<std::uint64_t>(optimizer.max_gradient_norm)});
        backend_.repeatable(key, [&] { update_replicas(0, weights_.replicas()); });
    } else {
        backend_.parallel(weights_.replicas(), [&](int replica, int) { update_replicas(replica, 1); });
    }
}

template <typename P>
std::vector<UpdateStatistics> Trainer<P>::statistics() const {
    const auto replicas = static_cast<std::size_t>(weights_.replicas());
    const std::vector<Real> norms = norm_.download();
    std::vector<Real> sequences(packed_.answer_tokens.size() * sequence_statistics);
    statistics_.download_to(sequences);
    std::vector<UpdateStatistics> result;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < replicas; ++s) {
        const std::size_t count = static_cast<std::size_t>(packed_.sequences[s]) * sequence_statistics;
        result.push_back(
            summarize(std::span<const Real>(sequences).subspan(begin, count), static_cast<double>(norms[s])));
        begin += count;
    }
    return result;
}

template class Trainer<Float32>;
template class Trainer<Float64>;
template class Trainer<Mixed>;

}  // namespace millrace
