#include "model/generation.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>

#include "model/tasks/alphabet.h"

namespace millrace {

namespace {

SamplingRule sampling_rule(bool greedy) {
    return {.temperature = 1.0, .greedy = greedy, .end = alphabet::end_of_answer, .pad = alphabet::pad};
}

std::size_t product(int a, int b) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

template <typename P>
Generator<P>::Generator(Backend<P>& backend, const ModelShape& shape, int prompt_tokens, int answer_room)
    : backend_(backend), transformer_(backend, shape), prompt_tokens_(prompt_tokens), answer_room_(answer_room) {
    if (prompt_tokens < 1 || answer_room < 1 || prompt_tokens + answer_room > shape.context) {
        throw std::invalid_argument("A prompt of " + std::to_string(prompt_tokens) + " tokens and an answer of " +
                                    std::to_string(answer_room) + " do not fit a context of " +
                                    std::to_string(shape.context) + ".");
    }
    lanes_.resize(static_cast<std::size_t>(backend.lanes()));
}

template <typename P>
GenerationResult<P> Generator<P>::generate(const Weights<P>& weights, const GenerationRequest& request) {
    const int replicas = weights.replicas();
    const int sequences = request.prompts * request.copies;
    const std::size_t all = product(replicas, sequences);
    const auto row = static_cast<std::size_t>(sequence_tokens());
    const auto prompt_row = static_cast<std::size_t>(prompt_tokens_);
    assert(request.prompt_tokens.size() == product(replicas, request.prompts) * prompt_row);
    assert(request.seeds.size() == static_cast<std::size_t>(replicas) && request.sequence_ids.size() == all);
    GenerationResult<P> result;
    if (all == 0) {
        return result;
    }

    reserve(replicas, sequences);
    result.tokens.assign(all * row, alphabet::pad);
    for (std::size_t i = 0; i < all; ++i) {
        const std::size_t prompt = i / static_cast<std::size_t>(request.copies);
        std::copy_n(request.prompt_tokens.begin() + static_cast<std::ptrdiff_t>(prompt * prompt_row), prompt_row,
                    result.tokens.begin() + static_cast<std::ptrdiff_t>(i * row));
    }
    tokens_.upload(result.tokens);
    seeds_.upload(request.seeds);
    sequence_ids_.upload(request.sequence_ids);
    backend_.clear(ended_.data(), all * sizeof(std::int32_t));

    const std::vector<int> units(static_cast<std::size_t>(replicas), request.prompts);
    const std::vector<Share> shares =
        divide(units, static_cast<std::size_t>(request.copies) * row, backend_.tokens_per_task());
    Share largest;
    for (const Share& share : shares) {
        largest.replicas = std::max(largest.replicas, share.replicas);
        largest.units = std::max(largest.units, share.units);
    }
    for (Lane& lane : std::span(lanes_).first(std::min(lanes_.size(), shares.size()))) {
        prepare(lane, largest, request.copies);
    }
    backend_.parallel(static_cast<int>(shares.size()), [&](int task, int lane) {
        run_share(weights, request, shares[static_cast<std::size_t>(task)], lanes_[static_cast<std::size_t>(lane)]);
    });

    tokens_.download_to(result.tokens);
    std::vector<Real> log_probability(all * row);
    log_probability_.download_to(log_probability);
    result.answer_tokens.resize(all);
    const auto room = static_cast<std::size_t>(answer_room_);
    result.log_probability.assign(all * room, Real(0));
    for (std::size_t i = 0; i < all; ++i) {
        const std::size_t answer = i * row + prompt_row;
        const auto tokens = std::span(result.tokens).subspan(answer, room);
        const auto end = std::ranges::find(tokens, alphabet::end_of_answer);
        const auto length = std::min(room, static_cast<std::size_t>(end - tokens.begin()) + 1);
        result.answer_tokens[i] = static_cast<std::int32_t>(length);
        std::copy_n(log_probability.begin() + static_cast<std::ptrdiff_t>(answer), length,
                    result.log_probability.begin() + static_cast<std::ptrdiff_t>(i * room));
    }
    return result;
}

/// Makes room for a call, and keeps it: on a GPU memory that goes away takes recorded work with it.
template <typename P>
void Generator<P>::reserve(int replicas, int sequences) {
    const std::size_t all = product(replicas, sequences);
    if (ended_.size() < all) {
        const auto row = static_cast<std::size_t>(sequence_tokens());
        tokens_ = BackendArray<P, Token>(backend_, all * row);
        log_probability_ = BackendArray<P, Real>(backend_, all * row);
        ended_ = BackendArray<P, std::int32_t>(backend_, all);
        sequence_ids_ = BackendArray<P, std::uint64_t>(backend_, all);
    }
    if (seeds_.size() < static_cast<std::size_t>(replicas)) {
        seeds_ = BackendArray<P, std::uint64_t>(backend_, static_cast<std::size_t>(replicas));
    }
}

template <typename P>
void Generator<P>::prepare(Lane& lane, const Share& largest, int copies) {
    if (lane.workspace && lane.replicas >= largest.replicas && lane.prompts >= largest.units && lane.copies >= copies) {
        return;
    }
    const ModelShape& shape = transformer_.shape();
    lane.replicas = std::max(lane.replicas, largest.replicas);
    lane.prompts = std::max(lane.prompts, largest.units);
    lane.copies = std::max(lane.copies, copies);
    const Extent prompts{lane.replicas, lane.prompts, prompt_tokens_ - 1};
    lane.workspace = std::make_unique<Workspace<P>>(
        Workspace<P>::for_generation(backend_, shape, prompts, lane.copies, sequence_tokens()));
    const std::size_t numbers = product(shape.layers, lane.replicas) * product(lane.prompts, lane.copies) *
                                product(sequence_tokens(), shape.width);
    lane.keys = BackendArray<P, Operand>(backend_, numbers);
    lane.values = BackendArray<P, Operand>(backend_, numbers);
}

template <typename P>
void Generator<P>::run_share(const Weights<P>& weights, const GenerationRequest& request, const Share& share,
                             Lane& lane) {
    const ModelShape& shape = transformer_.shape();
    const auto row = static_cast<std::size_t>(sequence_tokens());
    const std::size_t first =
        product(share.replica, request.prompts * request.copies) + product(share.first, request.copies);
    const std::size_t parameters = static_cast<std::size_t>(share.replica) * weights.parameters();
    const bool done = backend_.run(Generate<P>{.replicas = share.replicas,
                                               .prompts = share.units,
                                               .copies = request.copies,
                                               .layers = shape.layers,
                                               .width = shape.width,
                                               .heads = shape.heads,
                                               .mlp_width = shape.mlp_width,
                                               .vocabulary = shape.vocabulary,
                                               .context = sequence_tokens(),
                                               .prompt_tokens = prompt_tokens_,
                                               .rule = sampling_rule(request.greedy),
                                               .places = weights.places(),
                                               .weights = weights.reals() + parameters,
                                               .operands = weights.operands() + parameters,
                                               .seed = seeds_.data() + share.replica,
                                               .sequence_id = sequence_ids_.data() + first,
                                               .tokens = tokens_.data() + first * row,
                                               .ended = ended_.data() + first,
                                               .log_probability = log_probability_.data() + first * row,
                                               .keys = lane.keys.data(),
                                               .values = lane.values.data()});
    if (!done) {
        decode_share(weights, request, share, lane, first);
    }
}

/// Token by token.
template <typename P>
void Generator<P>::decode_share(const Weights<P>& weights, const GenerationRequest& request, const Share& share,
                                Lane& lane, std::size_t first) {
    const ModelShape& shape = transformer_.shape();
    const auto row = static_cast<std::size_t>(sequence_tokens());
    const int sequences = share.units * request.copies;
    const std::size_t all = product(share.replicas, sequences);
    const std::size_t parameters = static_cast<std::size_t>(share.replica) * weights.parameters();
    Token* const tokens = tokens_.data() + first * row;
    PassInput<P> input{.extent = {share.replicas, share.units, prompt_tokens_ - 1},
                       .tokens = tokens,
                       .token_stride = row * static_cast<std::size_t>(request.copies),
                       .reals = weights.reals() + parameters,
                       .operands = weights.operands() + parameters,
                       .parameter_stride = weights.parameters()};
    Activations<P>& activations = lane.workspace->activations();
    const Caches<P> caches{.keys = lane.keys.data(),
                           .values = lane.values.data(),
                           .layer_stride = all * row * static_cast<std::size_t>(shape.width),
                           .row_tokens = sequence_tokens()};
    // The last token of the prompt is left to the decoding, which makes all answers start in the same way.
    if (input.extent.tokens > 0) {
        transformer_.fill_caches(input, activations, caches, request.copies);
    }
    input.extent = {share.replicas, sequences, 1};
    input.token_stride = row;
    for (int position = prompt_tokens_; position < sequence_tokens(); ++position) {
        input.tokens = tokens + position - 1;
        transformer_.decode(input, activations, caches, position - 1);
        backend_.run(
            Sample<P>{.extent = input.extent,
                      .vocabulary = shape.vocabulary,
                      .position = position,
                      .rule = sampling_rule(request.greedy),
                      .seed = seeds_.data() + share.replica,
                      .sequence_id = sequence_ids_.data() + first,
                      .logits = activations.logits,
                      .ended = ended_.data() + first,
                      .token = tokens + position,
                      .token_stride = row,
                      .log_probability = log_probability_.data() + first * row + static_cast<std::size_t>(position),
                      .log_probability_stride = row});
        if (position + 1 < sequence_tokens() && all_ended(share, sequences, lane, first)) {
            return;
        }
    }
}

template <typename P>
bool Generator<P>::all_ended(const Share& share, int sequences, Lane& lane, std::size_t first) const {
    lane.ended.resize(product(share.replicas, sequences));
    backend_.download(lane.ended.data(), ended_.data() + first, lane.ended.size() * sizeof(std::int32_t));
    return std::ranges::all_of(lane.ended, [](std::int32_t ended) { return ended != 0; });
}

template class Generator<Float32>;
template class Generator<Float64>;
template class Generator<Mixed>;

}  // namespace millrace
