// Answers to prompts: batched generation with a cache of keys and values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "model/shares.h"
#include "model/transformer.h"
#include "model/weights.h"

namespace millrace {

/// What to continue. S is the number of replicas of the weights, B = prompts * copies.
struct GenerationRequest {
    int prompts = 0;                              ///< per replica
    int copies = 1;                               ///< answers to each prompt
    std::span<const Token> prompt_tokens;         ///< [S][prompts][prompt length]
    std::span<const std::uint64_t> seeds;         ///< [S]
    std::span<const std::uint64_t> sequence_ids;  ///< [S][B]: with the seed, address a sequence's random numbers
    bool greedy = false;
};

/// S x B sequences in the order of the request: sequence b answers prompt b / copies.
template <typename P>
struct GenerationResult {
    std::vector<Token> tokens;                      ///< [S][B][prompt length + answer room], PAD after the end
    std::vector<std::int32_t> answer_tokens;        ///< [S][B], EOS included; all of the room when none came
    std::vector<typename P::Real> log_probability;  ///< [S][B][answer room], of the distribution sampled from
};

/// Samples at temperature 1. The first tokens of a prompt are computed once for all its copies. What a sequence gets
/// depends on the weights, its prompt, its seed and its id, never on what else is generated in the same call.
///
/// Log-probabilities are those of the sampler. A pass over whole sequences, as in training, finds the same but for the
/// order of its sums.
template <typename P>
class Generator {
   public:
    using Real = typename P::Real;
    using Operand = typename P::Operand;

    /// Throws std::invalid_argument when prompt and answer do not fit the shape's context, or the prompt is empty.
    Generator(Backend<P>& backend, const ModelShape& shape, int prompt_tokens, int answer_room);

    int prompt_tokens() const { return prompt_tokens_; }
    int answer_room() const { return answer_room_; }
    int sequence_tokens() const { return prompt_tokens_ + answer_room_; }

    GenerationResult<P> generate(const Weights<P>& weights, const GenerationRequest& request);

   private:
    /// What one task works with beside the arrays of the whole call.
    struct Lane {
        int replicas = 0;  ///< the most it is made for
        int prompts = 0;
        int copies = 0;
        std::unique_ptr<Workspace<P>> workspace;
        BackendArray<P, Operand> keys;
        BackendArray<P, Operand> values;
        std::vector<std::int32_t> ended;
    };

    void reserve(int replicas, int sequences);
    void prepare(Lane& lane, const Share& largest, int copies);
    void run_share(const Weights<P>& weights, const GenerationRequest& request, const Share& share, Lane& lane);
    void decode_share(const Weights<P>& weights, const GenerationRequest& request, const Share& share, Lane& lane,
                      std::size_t first);
    bool all_ended(const Share& share, int sequences, Lane& lane, std::size_t first) const;

    Backend<P>& backend_;
    Transformer<P> transformer_;
    int prompt_tokens_;
    int answer_room_;
    std::vector<Lane> lanes_;
    BackendArray<P, Token> tokens_;                ///< [S][B][sequence_tokens]
    BackendArray<P, Real> log_probability_;        ///< [S][B][sequence_tokens]
    BackendArray<P, std::int32_t> ended_;          ///< [S][B]
    BackendArray<P, std::uint64_t> seeds_;         ///< [S]
    BackendArray<P, std::uint64_t> sequence_ids_;  ///< [S][B]
};

}  // namespace millrace
