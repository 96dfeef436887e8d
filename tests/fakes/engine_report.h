/* What a double has seen, for its report. */
#ifndef HEDDLE_TESTS_FAKES_ENGINE_REPORT_H
#define HEDDLE_TESTS_FAKES_ENGINE_REPORT_H

#include "engine_inside.h"

typedef struct eng_tally {
  eng_call *calls; /* guarded by eng_lock */
  atomic_int misuse, leaks, updates, kernels;
} eng_tally;
extern eng_tally eng_seen;

/* Waits a moment for work under way, checks the guards, writes the report, and with strict ends the process with status
 * 90 where there was misuse. */
void eng_report_at_exit(const eng_settings *settings);

#endif
