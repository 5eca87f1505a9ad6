#include "tools/millrace/result_files.h"

#include <filesystem>
#include <system_error>

#include "tools/millrace/options.h"

namespace millrace {

ResultFiles::ResultFiles(const std::string& output, const std::string& log, const std::string& input,
                         const FileNames& names) {
    const std::string manifest_name = output + ".manifest.json";
    for (const std::string& name : {output, manifest_name, log}) {
        if (std::error_code ignored; std::filesystem::equivalent(name, input, ignored)) {
            throw UsageError("writing " + name + " would overwrite " + names.input);
        }
    }
    if (log == "-") {
        throw UsageError(names.log + " needs a file of its own: standard output shows the result");
    }
    if (!output.empty() && output != "-") {
        if (log == output || log == manifest_name) {
            throw UsageError("the result and " + names.log + " cannot both be written to " + log);
        }
        result_ = std::make_unique<SafeFile>(output);
        manifest_ = std::make_unique<SafeFile>(manifest_name);
    }
}

void ResultFiles::write(const std::string& result, const nlohmann::ordered_json& manifest) {
    if (!result_) {
        return;
    }
    result_->stream() << result;
    result_->commit();
    manifest_->stream() << manifest.dump(2) << '\n';
    manifest_->commit();
}

}  // namespace millrace
