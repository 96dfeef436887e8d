/* conformance/kit_side.h: what the kit's own parts see of a case's process beyond kit.h: the way to the parent, the
 * counters of the host that it plays, and its settings. Cases have no business here. */
#ifndef HEDDLE_CONFORMANCE_KIT_SIDE_H
#define HEDDLE_CONFORMANCE_KIT_SIDE_H

#include <stdio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "conformance/kit.h"

/* A case's process finds the pipe for its results and the page for its step at these descriptors. */
enum { KIT_PIPE_FD = 3, KIT_PAGE_FD = 4 };

/* A case that waits so long for something expects it; one that waits shorter may expect that it does not come. */
enum { KIT_PATIENT_MS = 3000 };

/* How a case failed, as far as causes.c compares failures: the text is for people. call is what it was about. */
enum {
  KIT_FAULT_OTHER,   /* only the text says */
  KIT_FAULT_STATUS,  /* a call that had to succeed returned status */
  KIT_FAULT_OVERDUE, /* what the call promised did not come in time */
  KIT_FAULT_ABSENT,  /* a function that the device must have is NULL */
  KIT_FAULT_ANSWER,  /* a call that failed did so without a text, or without its status */
  KIT_FAULT_HOST,    /* a function of the host's (call: its place in heddle_host) was called wrongly, how by status */
  KIT_FAULT_DIED,    /* of the signal status; from here on the parent's own */
  KIT_FAULT_HUNG,
  KIT_FAULT_ENDED
};

/* Shared with the parent, which reads it when the process has ended or hangs: the call of the plugin's that the case is
 * in and the last one that it came back from (numbers of kit_call_name, 0: none), how many calls began, and what the case
 * said of it. The parent writes overdue alone: calls (a bit each) for whose promise an earlier case waited in vain. */
typedef struct kit_page {
  atomic_uint in;
  atomic_uint last;
  atomic_uint begun;
  atomic_uint fault, fault_call, fault_status; /* KIT_FAULT_*, of the first failure */
  _Atomic uint64_t called[2];                  /* every call that was made, a bit each */
  _Atomic uint64_t overdue[2];
  char what[248];
} kit_page;

/* One line to the parent: a letter and a text. */
enum {
  KIT_SAYS_BEGUN = 'B',   /* the stages are done, the case begins */
  KIT_SAYS_NEXT = 'C',    /* the case is done, and the next of the series begins */
  KIT_SAYS_PASS = 'P',    /* the case is done; the process ends by exit */
  KIT_SAYS_FAIL = 'F',    /* and why */
  KIT_SAYS_SKIP = 'S',    /* and why */
  KIT_SAYS_STAGE = 'X',   /* a stage before the case failed, and why */
  KIT_SAYS_NOTE = 'N',    /* a line for the report */
  KIT_SAYS_ABILITY = 'A', /* "fence_wait 1" */
  KIT_SAYS_TRIAL = 'T',   /* "fence_wait 0": what counts where the case fails */
  KIT_SAYS_REFUSES = 'R', /* the device makes neither streams nor memory, and why: nothing is to be seen of it */
  KIT_SAYS_DEVICE = 'D',  /* in a survey: a device's driver, in the order of the indices */
  KIT_SAYS_PLUGIN = 'L',  /* in a survey: major, minor and the plugin's name */
  KIT_SAYS_ABOUT = 'I',   /* in a survey: a device's numbers and its name, in the order of the indices */
  KIT_SAYS_WORD = 'W'     /* in a survey: a case's name, a space, and a word of it */
};

typedef struct kit_block kit_block;

typedef struct kit_heap {
  pthread_mutex_t lock;
  kit_block *live, *freed, *freed_last; /* freed ones wait a while: what writes to them is seen */
  uint64_t count, n_freed, bytes_freed;
  uint64_t fail_after; /* the number of calls until one fails; 0: none does */
  bool failed;         /* one has since fail_after was set */
} kit_heap;

enum { KIT_FENCES = 4096, KIT_ASKED = 128 };

/* All of kind COMPUTE; all of kind COPY; of two in turn the first or the second of kind COPY. Those of kind COPY have each
 * priority in turn. */
enum { KIT_KINDS_COMPUTE, KIT_KINDS_COPY, KIT_KINDS_COPY_FIRST, KIT_KINDS_COPY_SECOND };

typedef struct kit_timelines {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct kit_slot *slots; /* KIT_FENCES of them */
  uint32_t used, strays;
} kit_timelines;

struct kit_side {
  kit_page *page;
  const kit_case *running;
  const char *const *settings; /* KEY=VALUE, as given with --set */
  uint32_t n_settings;
  double patience;      /* the time limit asked for, over the default one */
  char settings_of[64]; /* the plugin whose settings host.config gives */
  void *library;
  heddle_plugin_entry_fn entry;
  kit_busy *left_behind; /* reachable when the process ends, as what a program leaves behind is */
  kit_heap heap;
  kit_timelines fences;
  atomic_uint faults;
  _Atomic uint64_t fault_cookie; /* of the last one */
  atomic_bool lose_asked;        /* the plugin has asked for the setting lose_on_fill, and it was given */
  atomic_bool fail_asked;        /* the same of fail_on_fill */
  atomic_bool adopt_asked;       /* the same of adopt_own */
  heddle_pdevice *spoilt_of;     /* whose spoilt is: what a fill that failed was for */
  heddle_pbuffer *spoilt;
  atomic_bool closed;            /* all is closed for good: the plugin has no host any more */
  const char *_Atomic late_call; /* what it called then, NULL: nothing */
  atomic_uint log_lines;
  char log_fault[200]; /* what was wrong with the first line of the log that was, "" */
  pthread_mutex_t log_lock;
  char asked[KIT_ASKED][64]; /* the settings that host.config was asked for, each once; under log_lock */
  uint32_t n_asked;
  const char *forced_key, *forced_value; /* NULL: none; a case gives this setting this value */
  uint32_t kinds;                        /* KIT_KINDS_*: of the streams that kit_stream makes */
  uint32_t n_streams;                    /* that it has made */
  bool warned;                           /* a line of warning or error names forced_key */
};

/* ---- kit_result.c */

void kit_say(char letter, const char *text);
KIT_NORETURN void kit_say_and_end(char letter, const char *text);
/* Notes what the process is about to do, for a death without words. */
void kit_step(kit *k, const char *what);
/* Notes how the case is about to fail. The first note counts. */
void kit_fault_is(kit *k, unsigned fault, unsigned call, unsigned status);

/* ---- kit_stage.c */

/* Each takes the kit one stage on; false with why in k->err where that does not work. */
bool kit_stage_library(kit *k);
bool kit_stage_entry(kit *k);
bool kit_stage_instance(kit *k);
bool kit_stage_device(kit *k);
/* All up to stage; where one fails the process ends, and the case is not run. */
void kit_stages(kit *k, uint32_t stage);

/* ---- kit_calls.c */

/* Puts a function of the kit's before each of root and tables, which notes the call in the page. */
void kit_calls_watch(kit *k);
/* "memory.alloc", NULL for a number that is none. */
const char *kit_call_name(unsigned call);
unsigned kit_call_entry(void); /* the number of heddle_plugin_entry */
/* The number of a name, 0 for one that is none. */
unsigned kit_call_number(const char *name);
/* Whether the call must return without waiting for the device's work. */
bool kit_call_is_prompt(unsigned call);
bool kit_call_in(const _Atomic uint64_t *set, unsigned call);
/* For a device that is not inline: a function that it must have and lacks ends the case instead of the process. */
void kit_calls_stand_in(kit *k);
/* How long to wait for what the call promised: ms, or little where an earlier case waited for it in vain. */
uint64_t kit_overdue_ms(kit *k, unsigned call, uint64_t ms);

/* ---- kit_host.c */

bool kit_host_init(kit *k);
/* Fails the case where a block or its guards were written to that should not have been. */
void kit_heap_check(kit *k);

bool kit_heap_init(kit_heap *h);
void *kit_heap_alloc(kit *k, uint64_t bytes, uint64_t align);
void kit_heap_free(kit *k, void *p);
uint64_t kit_heap_calls(void); /* of host.alloc by the calling thread */
/* Whether an allocation was refused since kit_host_fail_alloc. */
bool kit_host_failed(kit *k);

bool kit_fences_init(kit_timelines *f);
void kit_fences_signal(kit *k, heddle_pfence fence, uint64_t value);
void kit_fences_fail(kit *k, heddle_pfence fence, heddle_status status, const char *text);
heddle_status kit_fences_query(kit *k, heddle_pfence fence, uint64_t value);

void kit_run_parallel(uint32_t n, uint32_t flags, heddle_task_fn task, void *arg, uint32_t *granted);
uint32_t kit_parallelism(void);

/* ---- kit_text.c */

/* Bytes of the character at text, 0 where it is none or one that no report can hold (a control character). */
uint64_t kit_text_printable(const char *text, const char *end);

/* As fprintf; texts among the arguments are cleaned (heddle/text.h), since they come from files and plugins. */
void kit_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *kit_status_name(heddle_status status);

#endif
