// How fast the learner's work is on a GPU.
#pragma once

#include "kernels/backend.h"

namespace millrace::test {

/// Training and generation with the default model and batch, for 1 and for 64 replicas; into evidence().speeds.
void measure_speed(Backend<Mixed>& backend);

}  // namespace millrace::test
