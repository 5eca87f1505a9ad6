// Text files that are part of the program.
#pragma once

namespace millrace {

extern const char* const sweep_schema_json;        ///< scenarios/schema/sweep.schema.json
extern const char* const scenario_schema_json;     ///< scenarios/schema/scenario.schema.json
extern const char* const learn_schema_json;        ///< scenarios/schema/learn.schema.json
extern const char* const calibration_schema_json;  ///< scenarios/schema/calibration.schema.json

}  // namespace millrace
