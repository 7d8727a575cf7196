// One function per command; the table of all of them.
#pragma once

#include "cli/context.h"

namespace assay {

const std::vector<Command>& commands();

Command plan_command();
Command compare_command();
Command scale_command();
Command review_command();
Command explain_command();
Command check_command();
Command catalog_command();
Command validate_command();
Command diagnose_command();
Command simulate_command();
Command help_command();

// The whole program but for process-wide set-up: words after the program's name -> exit code.
int run_command_line(const std::vector<std::string>& words);

}  // namespace assay
