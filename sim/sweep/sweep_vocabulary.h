// The keys a sweep file may have.
#pragma once

#include <string>
#include <string_view>

#include "sim/scenario/vocabulary.h"

namespace millrace {

/// Of the files that `millrace sweep` reads. The elements of a list go by the path of the list: "families.axes".
const Vocabulary& sweep_vocabulary();

/// What is wrong with a dotted path into a scenario ("trainers.count"): nothing, or which step no scenario has.
struct PathFault {
    std::size_t offset = 0;  ///< of the wrong step
    std::string message;     ///< empty when the path is good
    std::string suggestion;  ///< the path that was probably meant, or empty
    std::string hint;
};

/// Whether some scenario has a value at `path`. What stands within a law or a list is judged by its steps alone.
PathFault check_scenario_path(std::string_view path);

}  // namespace millrace
