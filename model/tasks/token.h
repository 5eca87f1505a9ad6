// What a model reads and writes: kernels/ops.h says what a Token is.
#pragma once

#include "kernels/ops.h"
