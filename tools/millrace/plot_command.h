// Figures and reports are drawn by the Python scripts in plots/; this finds them and runs them.
#pragma once

#include <string>
#include <vector>

namespace millrace {

/// Runs the script `name` of the folder `plots` with `words` as its arguments and returns its exit code. An empty
/// `plots` is looked for from this program: share/millrace/plots of its installation, or plots/ of the source tree that
/// it was built in. Throws UsageError when there is no such folder, std::runtime_error when Python is missing.
int run_plot_script(const std::string& name, const std::string& plots, const std::vector<std::string>& words);

/// Removes `--plots DIR` or `--plots=DIR` from a script's words, wherever it stands among them, and puts DIR into
/// `plots`. Throws UsageError when it is given twice or without a name.
void take_plots_option(std::vector<std::string>& words, std::string& plots);

}  // namespace millrace
