/* conformance/check.h: heddle-check as the parent of the cases: what was asked for, the list of checks with what came of
 * each, and its parts. It never opens the plugin itself. */
#ifndef HEDDLE_CONFORMANCE_CHECK_H
#define HEDDLE_CONFORMANCE_CHECK_H

#include <stddef.h>
#include <stdio.h>

#include "conformance/kit.h"

/* Exit statuses, as of the tool. */
enum { CHECK_DONE = 0, CHECK_FAILED = 1, CHECK_WRONG_WORDS = 2 };

enum { CHECK_SECONDS = 10 }; /* time limit of a case, by default */

typedef struct check_words {
  const char **data; /* of argv */
  size_t count;
} check_words;

typedef struct check_options {
  const char *file;   /* as given */
  char library[4096]; /* the real path of the shared library */
  uint32_t device;    /* UINT32_MAX: all */
  check_words only;
  check_words settings;
  const char *unsupported, *expected, *format, *output, *store, *junit, *report;
  double seconds; /* time limit of a case that has none of its own */
  uint32_t jobs;
  bool quick, list, no_store;
  /* In a child: */
  const char *run; /* the case's own name, NULL in the parent */
  const char *word;
  check_words then; /* the cases behind it in the same process: "op/run:Conv" */
  bool survey;
} check_options;

typedef enum check_outcome {
  CHECK_WAITING,
  CHECK_RUNNING,
  CHECK_PASS,
  CHECK_FAIL,
  CHECK_SKIP,
  CHECK_FAIL_EXPECTED,
  CHECK_PASS_UNEXPECTED
} check_outcome;

/* One case on one device. The texts are malloc's. */
typedef struct check {
  char name[192]; /* "op/run:Conv", with "@1" behind it for a device but the first of several */
  const kit_group *group;
  const kit_case *what;
  char word[96];
  uint32_t index;
  bool wanted; /* false: run only because others need it, and reported only when it fails */
  check_outcome outcome;
  char *refuses;     /* why the device makes neither streams nor memory, as a template's does */
  char *reason;      /* of a failure or a skip */
  const char *needs; /* what would make a skipped case run, NULL where nothing is known */
  char *notes;       /* lines */
  char *output;      /* what the process printed, where that helps */
  char *excuse;      /* of the lists */
  bool expected;     /* excuse is that of an expected failure */
  bool alone;        /* it has failed behind others in one process, and is run again without them */
  char *behind;      /* how it failed there */
  double seconds;
  /* Of a failure (KIT_FAULT_*), for causes.c: */
  unsigned fault, call, status;
  uint64_t called[2]; /* the calls that the process made, a bit each */
  size_t cause;       /* the failure that this one follows from: its place in the list, from 1 on; 0: none */
} check;

/* What a case's process saw of an ability; index is the device's. */
typedef struct check_ability {
  uint32_t index;
  char name[24];
  bool works;
} check_ability;

/* What device_describe says of a device, for reports. */
typedef struct check_about {
  char name[128];
  int type;
  uint64_t caps, memory_bytes, max_buffer_bytes, alignment;
  uint32_t compute_units, max_streams;
} check_about;

typedef struct check_list {
  check *data;
  size_t count;
  char plugin[64], plugin_abi[24]; /* by the survey, "" where it was not reached */
  uint64_t file_bytes;
  check_about *about; /* of the devices */
  uint32_t n_about;
  int64_t began;        /* seconds since 1970 */
  double seconds;       /* that all took */
  char (*drivers)[128]; /* of the devices, by the survey */
  uint32_t n_devices;
  char (*worded)[192]; /* "op/run Conv", by the survey */
  size_t n_worded;
  check_ability *abilities;
  size_t n_abilities;
  uint64_t overdue[2]; /* calls for whose promise a case has waited in vain, a bit each */
  uint64_t hung[2];    /* calls in which a process hung until its time was over */
} check_list;

/* groups.c */
extern const kit_group *const check_groups[];
extern const size_t n_check_groups;

/* words.c: reads argv; says what is wrong on stderr. */
int check_read_words(int argc, char **argv, check_options *o);
void check_words_finish(check_options *o);

/* manifest.c: finds the library of o->file, which is one itself or a manifest that names one. Says what is wrong. */
int check_find_library(check_options *o);

/* list.c */

/* Every case by the groups, the survey's words among them. False where memory is out. */
bool check_list_make(const check_options *o, check_list *list);
/* The first pattern of --only that is for no case, NULL where there is none. */
const char *check_list_unmatched(const check_options *o, const check_list *list);
/* Reads --unsupported and --expected into the list; says what is wrong. */
int check_list_excuse(const check_options *o, check_list *list);
void check_list_finish(check_list *list);
bool check_keep_ability(check_list *list, uint32_t index, const char *text);

/* child.c: a case's process, or the survey's. */
int check_child(const check_options *o);

/* spawn.c: a case's process seen from outside. */
typedef struct check_process check_process;
enum { CHECK_SERIES = 24 }; /* the most cases of one process */
/* Runs n cases, one after the other until one does not pass, in one process. NULL where no process can be made, with why in
 * reason (malloc's, may be NULL). */
check_process *check_start(const check_options *o, check *const *series, size_t n, bool survey, check_list *list,
                           char **reason);
/* Reads what has come; true when the process is over and the cases that it came to have their outcomes. p is gone then. */
bool check_poll(check_process *p);
/* Sleeps until one of n has something to read, or ms have passed. */
void check_wait(check_process *const *p, size_t n, int ms);
/* Tells the process of what the list has of late; cheap. */
void check_tell(check_process *p);
/* Ends the process and what it started. */
void check_kill(check_process *p);

typedef struct check_counts check_counts;
/* runner.c: runs them all. */
int check_run(const check_options *o, check_list *list, FILE *out, check_counts *counts);
/* Whether what was to be checked was there and nothing failed but what was expected to. */
bool check_has_passed(const check_list *list, const check_counts *counts);
/* Of a check that is over: whether it was asked for, or stands in the way of what was. */
bool check_is_reported(const check *c);

/* needs.c: what makes a case run that a device skips; NULL where nothing does. */
const char *check_needs(const kit_case *c);

/* causes.c: finds of each failure which other it follows from. */
void check_find_causes(check_list *list);
/* How many failures follow from that one. */
size_t check_consequences(const check_list *list, const check *c);

/* report_*.c: what is printed. begin and end come once, each once per check that is reported: in order, where the report
 * says so; else first those that did not fail, as they end, and then each cause before what follows from it. */
struct check_counts {
  size_t passed, failed, skipped, expected, unexpected;
  size_t consequences; /* failures that follow from one of failed; not counted there */
};
typedef struct check_report {
  const char *name;
  bool in_order;
  void (*begin)(FILE *out, const check_options *o, const check_list *list);
  void (*each)(FILE *out, const check_list *list, const check *c, size_t number);
  void (*end)(FILE *out, const check_options *o, const check_list *list, const check_counts *counts);
} check_report;
extern const check_report check_report_text, check_report_tap, check_report_junit, check_report_json;
/* The page that a vendor can publish. */
void check_write_page(FILE *out, bool html, const check_options *o, const check_list *list, const check_counts *counts);
/* "pass", "fail", ... as the JSON has them. */
const char *check_outcome_word(check_outcome outcome);
/* When the check began, as ISO 8601 has it; out is returned. */
const char *check_date(const check_list *list, char *out, size_t bytes);
/* "inline" of the bit of HEDDLE_CAP_INLINE; NULL for a bit that has none. */
const char *check_cap_name(unsigned bit);
/* NULL for a name that is none. */
const check_report *check_find_report(const char *name);

/* store.c: keeps what was seen of abilities for the core. 0 or FAILED, with why on stderr. */
int check_store(const check_options *o, const check_list *list);

#endif
