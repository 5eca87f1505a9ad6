// pass@k: the chance that at least one of k sampled answers is correct.
#pragma once

#include <cstdint>

namespace millrace {

/// Unbiased estimate of 1 - (1 - p)^k from n independent samples of one prompt of which c are correct, p being the
/// unknown chance of one sample (Chen et al., "Evaluating large language models trained on code", 2021):
///     1 - C(n - c, k) / C(n, k),
/// the share of the k-subsets of the samples that hold a correct one. pass@1 is c/n. Average it over prompts.
/// Throws std::invalid_argument unless 0 <= c <= n and 1 <= k <= n.
double pass_at_k(std::int64_t n, std::int64_t c, std::int64_t k);

}  // namespace millrace
