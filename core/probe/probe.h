/* core/probe/probe.h: what the files of this room share: a plugin's try in a process of its own (trial.c), the record
 * that is kept of it (record.c), and what heddle check-plugin found (abilities.c). */
#ifndef HEDDLE_CORE_PROBE_PROBE_H
#define HEDDLE_CORE_PROBE_PROBE_H

#include <jansson.h>

#include "core/probe.h"
#include "core/probe/limits.h"

void heddle__probe_say(const heddle__plugin *plugin, int32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- trial.c */

enum { TRIAL_GOOD, TRIAL_BAD, TRIAL_NONE };

/* How a try ended. GOOD: the process came to its end, whether the plugin found devices or not. BAD: it did not; words say
 * how and where. NONE: nothing is known of the plugin, since nothing could be tried, the plugin was not touched, or others
 * ended the process; words say why. */
typedef struct heddle__trial {
  int verdict;
  char words[320];
  char want[64];   /* of BAD: the resource of which there was perhaps too little; "" where nothing points to one */
  bool late;       /* of BAD: its time was over */
  json_t *drivers; /* strings; of GOOD */
  json_t *files;   /* [path, size, mtime_ns] of what it loaded beside itself, as far as it came */
} heddle__trial;

/* Starts heddle-probe for the plugin, and gives it limit_ms. The members of out that are JSON are the caller's. Any thread;
 * blocks. */
void heddle__trial_run(const heddle__plugin *plugin, uint32_t limit_ms, heddle__trial *out);

/* ---- record.c */

/* What a record says beside its drivers and files. */
typedef struct heddle__finding {
  const char
      *state; /* "ok"; "quarantined"; "suspect": it failed once, perhaps for want of a resource; "stale": it is to be
                         tried again, and its drivers are remembered */
  const char *reason; /* how it failed; "" */
  heddle__limits limits;
  int64_t time;     /* when, in seconds of the clock; 0: not known */
  int64_t limit_ms; /* the time that it had, where that was over; 0: it failed otherwise */
  int64_t failures; /* of this kind, one after the other */
} heddle__finding;

/* The record of the plugin that is kept, where it is of this file and of the drivers that are installed, and what it says,
 * whose texts are the record's; else NULL. The caller drops it. Members that older versions did not write are 0. */
json_t *heddle__record_read(const heddle__plugin *plugin, heddle__finding *out);

/* Keeps a record. What keeps it from that is logged. */
void heddle__record_write(const heddle__plugin *plugin, const heddle__finding *what, json_t *drivers, json_t *files);

/* A file's size and time as [path, size, mtime_ns]; NULL where it is not there or memory is out. */
json_t *heddle__record_file(const char *path);

/* ---- abilities.c */

/* Takes over what plugin->abilities says, or drops that. */
void heddle__abilities_read(heddle__plugin *plugin);

#endif
