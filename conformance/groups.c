/* conformance/groups.c: the groups of cases, in the order of the report. */
#include "conformance/check.h"

const kit_group *const check_groups[] = {
    /* the file and its tables */
    &kit_load,
    &kit_root,
    &kit_device,
    &kit_settings,

    /* memory, streams and what runs in them */
    &kit_memory,
    &kit_copy,
    &kit_streams,
    &kit_events,
    &kit_fences,
    &kit_calls,
    &kit_capture,
    &kit_timing,
    &kit_external,
    &kit_health,
    &kit_threads,
    &kit_leaks,

    /* operators and modules */
    &kit_query,
    &kit_numerics,
    &kit_regions,
    &kit_layouts,
    &kit_modules,

    /* failures and the process */
    &kit_errors,
    &kit_process,
};

const size_t n_check_groups = sizeof check_groups / sizeof check_groups[0];
