// Text files that are part of the program.
#pragma once

namespace millrace {

extern const char* const scenario_schema_json;  ///< scenarios/schema/scenario.schema.json

}  // namespace millrace
