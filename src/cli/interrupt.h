// Ctrl-C. As long as no run is complete it ends the program at once and says so; from then on it
// ends the runs, so that what is known is printed, and a second one kills. Exit code 130.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace assay {

// For main, with the words of the command line: what is said is said as they ask for it.
void catch_interrupts(const std::vector<std::string>& words);

// A run is complete.
void note_run_done();

bool interrupted();
// The same, for those who look often.
const std::atomic<bool>& interrupt_flag();

}  // namespace assay
