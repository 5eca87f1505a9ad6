// A transformer with random weights that generates by the separate operations: what fused generation is compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "kernels/generate.h"
#include "kernels/random.h"

namespace millrace::test {

struct GenerationShape {
    int replicas = 1;
    int prompts = 2;
    int copies = 4;
    int layers = 2;
    int width = 32;
    int heads = 2;
    int mlp_width = 128;
    int vocabulary = 20;
    int context = 18;
    int prompt_tokens = 9;
    SamplingRule rule{.temperature = 1.0, .greedy = false, .end = 11, .pad = 12};

    int sequences() const { return prompts * copies; }
};

inline ParameterPlaces parameter_places(const GenerationShape& shape) {
    ParameterPlaces places;
    std::size_t next = 0;
    const auto matrix = [&next](int rows, int columns) {
        const std::size_t start = next;
        next += static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
        return start;
    };
    places.token_table = matrix(shape.vocabulary, shape.width);
    places.position_table = matrix(shape.context, shape.width);
    for (int layer = 0; layer < shape.layers; ++layer) {
        places.layer[layer] = {.attention_gain = matrix(1, shape.width),
                               .qkv = matrix(3 * shape.width, shape.width),
                               .attention_out = matrix(shape.width, shape.width),
                               .mlp_gain = matrix(1, shape.width),
                               .mlp_up = matrix(shape.mlp_width, shape.width),
                               .mlp_down = matrix(shape.width, shape.mlp_width)};
    }
    places.final_gain = matrix(1, shape.width);
    places.head = matrix(shape.vocabulary, shape.width);
    places.size = next;
    return places;
}

/// An array in a backend's memory.
template <typename P, typename Number>
class DeviceArray {
   public:
    DeviceArray(Backend<P>& backend, std::size_t size)
        : backend_(backend), size_(size), numbers_(static_cast<Number*>(backend.allocate(size * sizeof(Number)))) {
        backend.clear(numbers_, size * sizeof(Number));
    }
    DeviceArray(Backend<P>& backend, const std::vector<Number>& host) : DeviceArray(backend, host.size()) { set(host); }
    ~DeviceArray() { backend_.release(numbers_); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    Number* get() const { return numbers_; }
    void set(const std::vector<Number>& host) { backend_.upload(numbers_, host.data(), size_ * sizeof(Number)); }
    std::vector<Number> host() const {
        std::vector<Number> numbers(size_);
        backend_.download(numbers.data(), numbers_, size_ * sizeof(Number));
        return numbers;
    }

   private:
    Backend<P>& backend_;
    std::size_t size_;
    Number* numbers_;
};

/// What a generation leaves behind.
struct Generated {
    std::vector<Token> tokens;            ///< [S][B][context]
    std::vector<double> log_probability;  ///< [S][B][context]
    std::vector<std::int32_t> ended;      ///< [S][B]
};

template <typename P>
class SmallTransformer {
   public:
    using Real = typename P::Real;
    using Operand = typename P::Operand;

    SmallTransformer(Backend<P>& backend, const GenerationShape& shape, std::uint64_t seed)
        : backend_(backend),
          shape_(shape),
          places_(parameter_places(shape)),
          weights_(backend, random_weights(seed)),
          operands_(backend, rounded(weights_.host())),
          seeds_(backend, numbered(shape.replicas, seed)),
          ids_(backend, numbered(shape.replicas * shape.sequences(), 1000)),
          tokens_(backend, prompts(seed)),
          ended_(backend, size(sequences())),
          log_probability_(backend, size(sequences() * shape.context)),
          keys_(backend, size(shape.layers * sequences() * shape.context * shape.width)),
          values_(backend, size(shape.layers * sequences() * shape.context * shape.width)) {}

    /// Everything at once; false if the backend has no kernel for it. May be repeated.
    bool generate_fused() {
        Generate<P> op;
        op.replicas = shape_.replicas;
        op.prompts = shape_.prompts;
        op.copies = shape_.copies;
        op.layers = shape_.layers;
        op.width = shape_.width;
        op.heads = shape_.heads;
        op.mlp_width = shape_.mlp_width;
        op.vocabulary = shape_.vocabulary;
        op.context = shape_.context;
        op.prompt_tokens = shape_.prompt_tokens;
        op.rule = shape_.rule;
        op.places = places_;
        op.weights = weights_.get();
        op.operands = operands_.get();
        op.seed = seeds_.get();
        op.sequence_id = ids_.get();
        op.tokens = tokens_.get();
        op.ended = ended_.get();
        op.log_probability = log_probability_.get();
        op.keys = keys_.get();
        op.values = values_.get();
        backend_.clear(ended_.get(), size(sequences()) * sizeof(std::int32_t));
        return backend_.run(op);
    }

    /// Allocates what generation by steps works with, so that it can then be repeated without allocating.
    void prepare() {
        if (workspace_ == nullptr) {
            workspace_ = std::make_unique<Workspace>(backend_, *this);
        }
    }

    /// The same by the separate operations.
    void generate_by_steps() {
        prepare();
        backend_.clear(ended_.get(), size(sequences()) * sizeof(std::int32_t));
        Workspace& work = *workspace_;
        read_prompts(work);
        for (int position = shape_.prompt_tokens; position < shape_.context; ++position) {
            sample(work, position);
            if (position + 1 < shape_.context) {
                decode(work, position);
            }
        }
    }

    Generated result() const {
        Generated found{.tokens = tokens_.host(), .log_probability = {}, .ended = ended_.host()};
        for (const Real number : log_probability_.host()) {
            found.log_probability.push_back(static_cast<double>(number));
        }
        return found;
    }

   private:
    static std::size_t size(int number) { return static_cast<std::size_t>(number); }
    int sequences() const { return shape_.replicas * shape_.sequences(); }

    struct Workspace {
        Workspace(Backend<P>& backend, const SmallTransformer& model)
            : rows(model.sequences() * model.shape_.prompt_tokens),
              width(model.shape_.width),
              x(backend, size(rows * width)),
              normed(backend, size(rows * width)),
              qkv(backend, size(rows * 3 * width)),
              attended(backend, size(rows * width)),
              hidden(backend, size(rows * model.shape_.mlp_width)),
              probabilities(backend, size(rows * model.shape_.heads * model.shape_.context)),
              prompt_logits(backend, size(rows * model.shape_.vocabulary)),
              logits(backend, size(model.sequences() * model.shape_.vocabulary)) {}
        int rows, width;
        DeviceArray<P, Real> x;
        DeviceArray<P, Operand> normed, qkv, attended, hidden, probabilities;
        DeviceArray<P, Real> prompt_logits, logits;
    };

    std::vector<Real> random_weights(std::uint64_t seed) const {
        std::vector<Real> weights(size(shape_.replicas) * places_.size);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const Philox4x32 bits = learner_bits(seed, LearnerPurpose::test, i);
            weights[i] = static_cast<Real>(uniform_from(bits.word[0]) - 0.5f);
        }
        return weights;
    }
    static std::vector<Operand> rounded(const std::vector<Real>& weights) {
        std::vector<Operand> operands;
        for (const Real weight : weights) {
            operands.push_back(store<Operand>(weight));
        }
        return operands;
    }
    static std::vector<std::uint64_t> numbered(int count, std::uint64_t first) {
        std::vector<std::uint64_t> numbers;
        for (int i = 0; i < count; ++i) {
            numbers.push_back(first + static_cast<std::uint64_t>(i));
        }
        return numbers;
    }
    std::vector<Token> prompts(std::uint64_t seed) const {
        std::vector<Token> tokens(size(sequences() * shape_.context), Token{-1});
        for (int sequence = 0; sequence < sequences(); ++sequence) {
            for (int t = 0; t < shape_.prompt_tokens; ++t) {
                const int draw = sequence / shape_.copies * shape_.prompt_tokens + t;
                const Philox4x32 bits = learner_bits(seed, LearnerPurpose::test, size(draw), 1);
                tokens[size(sequence * shape_.context + t)] =
                    static_cast<Token>(bits.word[0] % static_cast<std::uint32_t>(shape_.vocabulary));
            }
        }
        return tokens;
    }

    /// One block of the transformer, but for attention, on `extent` rows of x.
    void before_attention(Workspace& work, const Extent& extent, int layer) {
        const ParameterPlaces::Layer& places = places_.layer[layer];
        norm(work, extent, places.attention_gain);
        linear(extent, shape_.width, 3 * shape_.width, work.normed.get(), places.qkv, work.qkv.get());
    }
    void after_attention(Workspace& work, const Extent& extent, int layer) {
        const ParameterPlaces::Layer& places = places_.layer[layer];
        add_linear(extent, shape_.width, shape_.width, work.attended.get(), places.attention_out, work.x.get(), true);
        norm(work, extent, places.mlp_gain);
        linear(extent, shape_.width, shape_.mlp_width, work.normed.get(), places.mlp_up, work.hidden.get());
        backend_.run(ReluForward<P>{size(extent.rows() * shape_.mlp_width), work.hidden.get()});
        add_linear(extent, shape_.mlp_width, shape_.width, work.hidden.get(), places.mlp_down, work.x.get(), true);
    }
    void norm(Workspace& work, const Extent& extent, std::size_t gain) {
        RmsNormForward<P> op;
        op.extent = extent;
        op.width = shape_.width;
        op.x = work.x.get();
        op.gain = weights_.get() + gain;
        op.parameter_stride = places_.size;
        op.y = work.normed.get();
        backend_.run(op);
    }
    LinearForward<P> linear_operation(const Extent& extent, int in, int out, const Operand* x, std::size_t weight) {
        LinearForward<P> op;
        op.extent = extent;
        op.in = in;
        op.out = out;
        op.x = x;
        op.weight = operands_.get() + weight;
        op.parameter_stride = places_.size;
        return op;
    }
    void linear(const Extent& extent, int in, int out, const Operand* x, std::size_t weight, Operand* y) {
        LinearForward<P> op = linear_operation(extent, in, out, x, weight);
        op.y = y;
        backend_.run(op);
    }
    void add_linear(const Extent& extent, int in, int out, const Operand* x, std::size_t weight, Real* y, bool add) {
        LinearForward<P> op = linear_operation(extent, in, out, x, weight);
        op.y_real = y;
        op.accumulate = add;
        backend_.run(op);
    }
    void embed(Workspace& work, const Extent& extent, int position) {
        EmbeddingForward<P> op;
        op.extent = extent;
        op.width = shape_.width;
        op.first_position = position;
        op.tokens = tokens_.get() + position;
        op.token_stride = size(shape_.context);
        op.token_table = weights_.get() + places_.token_table;
        op.position_table = weights_.get() + places_.position_table;
        op.parameter_stride = places_.size;
        op.x = work.x.get();
        backend_.run(op);
    }

    /// Every sequence reads its prompt, copies too: the plain way.
    void read_prompts(Workspace& work) {
        const Extent extent{shape_.replicas, shape_.sequences(), shape_.prompt_tokens};
        embed(work, extent, 0);
        for (int layer = 0; layer < shape_.layers; ++layer) {
            before_attention(work, extent, layer);
            backend_.run(AttentionForward<P>{extent, shape_.width, shape_.heads, work.qkv.get(), work.attended.get(),
                                             work.probabilities.get()});
            backend_.run(FillCache<P>{extent, shape_.width, 1, shape_.context, work.qkv.get(), cache(keys_, layer),
                                      cache(values_, layer)});
            after_attention(work, extent, layer);
        }
        norm(work, extent, places_.final_gain);
        add_linear(extent, shape_.width, shape_.vocabulary, work.normed.get(), places_.head, work.prompt_logits.get(),
                   false);
        for (int sequence = 0; sequence < sequences(); ++sequence) {
            const int last = (sequence + 1) * shape_.prompt_tokens - 1;
            backend_.copy(work.logits.get() + sequence * shape_.vocabulary,
                          work.prompt_logits.get() + last * shape_.vocabulary, size(shape_.vocabulary) * sizeof(Real));
        }
    }

    /// The token at `position` is read.
    void decode(Workspace& work, int position) {
        const Extent extent{shape_.replicas, shape_.sequences(), 1};
        embed(work, extent, position);
        for (int layer = 0; layer < shape_.layers; ++layer) {
            before_attention(work, extent, layer);
            backend_.run(AttentionDecode<P>{extent, shape_.width, shape_.heads, shape_.context, position,
                                            work.qkv.get(), cache(keys_, layer), cache(values_, layer),
                                            work.attended.get(), work.probabilities.get()});
            after_attention(work, extent, layer);
        }
        norm(work, extent, places_.final_gain);
        add_linear(extent, shape_.width, shape_.vocabulary, work.normed.get(), places_.head, work.logits.get(), false);
    }

    /// The token at `position` is drawn.
    void sample(Workspace& work, int position) {
        Sample<P> op;
        op.extent = {shape_.replicas, shape_.sequences(), 1};
        op.vocabulary = shape_.vocabulary;
        op.position = position;
        op.rule = shape_.rule;
        op.seed = seeds_.get();
        op.sequence_id = ids_.get();
        op.logits = work.logits.get();
        op.ended = ended_.get();
        op.token = tokens_.get() + position;
        op.token_stride = size(shape_.context);
        op.log_probability = log_probability_.get() + position;
        op.log_probability_stride = size(shape_.context);
        backend_.run(op);
    }

    Operand* cache(const DeviceArray<P, Operand>& array, int layer) const {
        return array.get() + size(layer * sequences() * shape_.context * shape_.width);
    }

    Backend<P>& backend_;
    GenerationShape shape_;
    ParameterPlaces places_;
    DeviceArray<P, Real> weights_;
    DeviceArray<P, Operand> operands_;
    DeviceArray<P, std::uint64_t> seeds_, ids_;
    DeviceArray<P, Token> tokens_;
    DeviceArray<P, std::int32_t> ended_;
    DeviceArray<P, Real> log_probability_;
    DeviceArray<P, Operand> keys_, values_;
    std::unique_ptr<Workspace> workspace_;
};

}  // namespace millrace::test
