/* conformance/causes.c: of the failures of a plugin those that are causes, and which others follow from each. What is
 * compared is how a case failed and which of the plugin's functions it called, never the text of a failure.
 *
 * 1. Rules, below, from what everything needs to what few need: a failure of the rule's case is the cause of others.
 * 2. Failures of the same kind in the same function have one cause, the first of them.
 * 3. An operator that gives wrong results in numerics/run does so in every other case of it; where most operators are
 *    wrong, the first stands for all. */
#include <fnmatch.h>
#include <string.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

/* The case, in its own words where own is set (it did not die, hang or meet a refused call), is the cause of every failure
 * that called the function (NULL: any) and whose name is among the patterns (NULL: any; separated by blanks). */
typedef struct rule {
  const char *cause, *call, *follow;
  bool own;
} rule;

static const rule rules[] = {
    /* the file and its tables */
    {"load/exports", NULL, "load/*", true},
    {"load/file", NULL, NULL, true},
    {"load/sizes", NULL, NULL, true},
    {"load/entry", NULL, NULL, false},
    {"load/functions", NULL, NULL, true},
    {"root/open", NULL, NULL, false},
    {"device/open", NULL, NULL, false},
    {"settings/list", NULL, "settings/*", true},
    {"settings/unknown", NULL, "settings/device", false},
    {"root/two_instances", NULL,
     "root/* errors/* process/* leaks/* health/* threads/* device/* fences/slow-host fences/host-inside", false},
    {"root/reopen", NULL, "root/* errors/* process/* leaks/* health/* threads/* device/*", false},
    {"device/reopen", NULL, "device/* health/* leaks/* threads/* process/*", false},
    {"root/caps", NULL, "*/required load/functions memory/view* memory/unified leaks/views", true},
    {"errors/outs", NULL, "memory/limit memory/absurd errors/* health/lost*", true},
    {"memory/limit", NULL, "memory/absurd memory/after-refusal errors/*", true},
    {"errors/words", NULL, "errors/*", true},
    {"health/lost", NULL, "health/lost* health/reset", true},

    /* memory */
    {"memory/counts", "device.query", NULL, true},
    {"memory/sizes", "memory.alloc", NULL, false},
    {"memory/free-null", "memory.free", "device/nulls memory/* threads/* leaks/* errors/* health/lost*", false},
    {"memory/apart", "memory.alloc", NULL, true},
    {"memory/pinned", "memory.map", NULL, false},
    {"memory/view", "memory.view", NULL, false},
    {"memory/view-counts", NULL, "leaks/views", true},
    {"memory/adopt", "memory.adopt", NULL, false},
    {"memory/import", "memory.import_host", NULL, false},

    /* copies and streams */
    {"copy/write", "copy.write", NULL, false},
    {"copy/read", "copy.read", NULL, false},
    {"copy/fill", "copy.fill", NULL, false},
    {"copy/h2d", "copy.h2d", NULL, false},
    {"copy/d2h", "copy.d2h", NULL, false},
    {"copy/d2d", "copy.d2d", NULL, false},
    {"copy/write-reused", "copy.write", NULL, true},
    {"copy/read-there", "copy.read", NULL, true},
    {"streams/sync", "stream.sync", NULL, false},
    {"copy/order", "stream.create", NULL, true},
    {"streams/order", "stream.create", NULL, true},
    {"calls/submit-returns", "stream.submit", NULL, true},
    {"calls/h2d-returns", "copy.h2d", NULL, true},
    {"calls/d2h-returns", "copy.d2h", NULL, true},
    {"calls/d2d-returns", "copy.d2d", NULL, true},
    {"calls/fill-returns", "copy.fill", NULL, true},
    {"calls/signal-returns", "fence.signal", NULL, true},
    {"calls/record-returns", "event.record", NULL, true},
    {"calls/wait-returns", "event.wait", NULL, true},
    {"calls/run-returns", "op.run", NULL, true},
    {"streams/query", "stream.query", NULL, false},
    {"streams/full", NULL, "streams/order streams/of-copy-order", false},
    {"streams/of-copy-order", NULL, "streams/of-copy* streams/kinds", false},
    {"streams/of-copy-sync", NULL, "streams/of-copy*", false},
    {"streams/of-copy-h2d", NULL, "streams/of-copy*", false},
    {"streams/of-copy-d2h", NULL, "streams/of-copy*", false},
    {"streams/of-copy-behind", NULL, "streams/of-copy*", false},
    {"streams/of-copy-write-before-read", NULL, "streams/of-copy*", false},
    {"streams/of-copy-read-before-write", NULL, "streams/of-copy*", false},
    {"streams/of-copy-signal", NULL, "streams/of-copy*", false},
    {"streams/of-copy-failed-signal", NULL, "streams/of-copy*", false},
    {"copy/peer", "copy.peer", NULL, true},
    {"streams/close-busy", NULL, "fences/stream-gone fences/held-closed", true},
    {"capture/records", NULL, "capture/*", true},
    {"capture/many-times", NULL, "capture/*", true},

    /* events, fences, the device */
    {"events/write-before-read", "event.wait", NULL, false},
    {"events/read-before-write", "event.wait", NULL, false},
    {"streams/adopt-after", NULL, "streams/adopt*", true},
    {"fences/signal-empty", "fence.signal", NULL, false},
    {"fences/signal-once", "fence.signal", NULL, true},
    {"fences/signal-after-work", "fence.signal", NULL, false},
    {"fences/wait-value", "fence.wait", NULL, true},
    {"fences/wait-host", "fence.wait", NULL, true},
    {"fences/wait-streams", "fence.wait", NULL, true},
    {"fences/failed", "fence.wait", NULL, false},
    {"fences/failed-signal", "fence.signal", "fences/* health/lost* health/reset streams/of-copy-failed*", false},
    {"fences/failed-once", NULL, "fences/failed* streams/of-copy-failed*", false},
    {"fences/failed-status", NULL, "fences/failed* events/failure", true},
    {"fences/failed-signals", NULL, "fences/failed*", true},
    {"fences/host-inside", "fence.signal", NULL, false},
    {"fences/held-sync", "stream.sync", "fences/*", false},
    {"health/idle-empty", "device.idle", NULL, false},
    {"health/idle-done", "device.idle", NULL, true},
    {"health/lost-fences", NULL, "health/lost* health/reset", false},
    {"health/lost-fault", NULL, "health/reset", true},
    {"health/lost-memory", NULL, "health/reset", true},
    {"health/lost-again", NULL, "health/reset", true},

    /* operators */
    {"query/offers", "op.query", NULL, true},
    {"query/pure", "op.query", NULL, true},
    {"query/partition", NULL, "regions/compute*", true},
    {"query/quiet", NULL, "query/* process/descriptors process/inherited leaks/*", true},
    {"numerics/counts", NULL, "leaks/* threads/*", true},
    {"query/newer", "op.query", "query/* numerics/*", false},
    {"query/older", "op.query", "query/* numerics/*", false},
    {"numerics/kept", NULL, "numerics/resize* leaks/launches leaks/runs streams/of-copy-run calls/run*", false},
    {"numerics/resize", NULL, "numerics/resize-refused", false},
    {"query/impossible", "op.query", "query/* numerics/* regions/* layouts/* threads/launches", true},
    {"calls/run-allocates", "op.run", "leaks/* errors/*", true},
    {"process/calls", "op.run", "numerics/* regions/* layouts/* threads/launches", true},

    /* what is left behind */
    {"leaks/streams", NULL, "leaks/host-blocks leaks/devices leaks/instances process/descriptors process/threads",
     true},
    {"process/children", NULL, "process/* leaks/*", true},
    {"process/descriptors", NULL, "process/inherited leaks/devices leaks/instances", true},
    {"process/threads", NULL, "process/thread_signals leaks/*", true},
    {"process/thread_signals", NULL, "process/threads leaks/*", true},
    {"process/state", NULL, "process/*", true},
    {"process/forked", NULL, "process/* leaks/*", true},
    {"process/child-kept", NULL, "process/functions", true},
    {"leaks/buffers", NULL, "leaks/*", true},
    {"leaks/runs", NULL, "leaks/launches leaks/host-blocks leaks/devices leaks/instances", true},
    {"leaks/views", NULL, "memory/adopt-freed leaks/host-blocks leaks/devices leaks/instances errors/no_memory*", true},
    {"leaks/launches", NULL,
     "process/descriptors leaks/host-blocks leaks/graphs leaks/devices leaks/instances errors/no_memory*", true},
    {"leaks/devices", NULL, "leaks/instances", true},
};

static bool is_open(const check *c) {
  return c->outcome == CHECK_FAIL && c->cause == 0;
}

/* Whether something follows from c, which then is nobody's consequence. */
static bool is_cause(const check_list *list, const check *c) {
  return check_consequences(list, c) > 0;
}

size_t check_consequences(const check_list *list, const check *c) {
  const size_t place = (size_t)(c - list->data) + 1;
  size_t n = 0;
  for (size_t i = 0; i < list->count; i++) n += list->data[i].outcome == CHECK_FAIL && list->data[i].cause == place;
  return n;
}

static bool is_among(const char *patterns, const char *name) {
  char one[64];
  for (const char *p = patterns; *p != '\0';) {
    const size_t n = strcspn(p, " ");
    snprintf(one, sizeof one, "%.*s", (int)n, p);
    if (fnmatch(one, name, 0) == 0) return true;
    p += n + strspn(p + n, " ");
  }
  return false;
}

static bool has_called(const check *c, unsigned call) {
  return (c->called[call / 64] >> call % 64 & 1) != 0;
}

/* The failures that follow from the case of a rule. What was expected to fail explains no other. */
static void apply(check_list *list, const rule *r) {
  const unsigned call = r->call != NULL ? kit_call_number(r->call) : 0;
  for (size_t i = 0; i < list->count; i++) {
    const check *cause = &list->data[i];
    if (!is_open(cause) || strcmp(cause->what->name, r->cause) != 0) continue;
    if (r->own && cause->fault != KIT_FAULT_OTHER) continue;
    for (size_t j = 0; j < list->count; j++) {
      check *c = &list->data[j];
      if (j == i || !is_open(c) || is_cause(list, c)) continue;
      if (cause->what->stage >= KIT_STAGE_DEVICE && c->what->stage >= KIT_STAGE_DEVICE && c->index != cause->index)
        continue;
      if (call != 0 && !has_called(c, call)) continue;
      if (r->follow == NULL || is_among(r->follow, c->what->name)) c->cause = i + 1;
    }
  }
}

/* Failures over a function that is missing, after the case that says so of the tables. */
static void join_absent(check_list *list) {
  static const char *const saying[] = {"load/sizes", "root/caps", "fences/required", "events/required",
                                       "load/functions"};
  for (size_t s = 0; s < sizeof saying / sizeof saying[0]; s++)
    for (size_t i = 0; i < list->count; i++) {
      const check *cause = &list->data[i];
      if (!is_open(cause) || cause->fault != KIT_FAULT_OTHER || strcmp(cause->what->name, saying[s]) != 0) continue;
      for (size_t j = 0; j < list->count; j++)
        if (is_open(&list->data[j]) && list->data[j].fault == KIT_FAULT_ABSENT && list->data[j].index == cause->index)
          list->data[j].cause = i + 1;
    }
}

/* A device that is lost without having been, and calls that then refuse. */
static void join_lost(check_list *list) {
  static const char *const saying[] = {"health/lost", "health/lost-fault"};
  for (size_t s = 0; s < sizeof saying / sizeof saying[0]; s++)
    for (size_t i = 0; i < list->count; i++) {
      const check *cause = &list->data[i];
      if (!is_open(cause) || cause->fault != KIT_FAULT_OTHER || strcmp(cause->what->name, saying[s]) != 0) continue;
      for (size_t j = 0; j < list->count; j++) {
        check *c = &list->data[j];
        if (is_open(c) && c->fault == KIT_FAULT_STATUS && c->status == (unsigned)HEDDLE_EDEVICE &&
            c->index == cause->index)
          c->cause = i + 1;
      }
    }
}

static bool fail_alike(const check *a, const check *b) {
  return a->fault != KIT_FAULT_OTHER && a->fault == b->fault && a->call == b->call && a->status == b->status &&
         (a->call != 0 || a->fault == KIT_FAULT_DIED);
}

/* Case j follows from case i, and so does what followed from it. */
static void put_under(check_list *list, size_t j, size_t i) {
  for (size_t n = 0; n < list->count; n++)
    if (list->data[n].outcome == CHECK_FAIL && list->data[n].cause == j + 1) list->data[n].cause = i + 1;
  list->data[j].cause = i + 1;
}

static void join_alike(check_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    if (!is_open(&list->data[i])) continue;
    for (size_t j = i + 1; j < list->count; j++) {
      check *c = &list->data[j];
      if (!is_open(c) || !fail_alike(&list->data[i], c)) continue;
      put_under(list, j, i);
    }
  }
}

enum { FEW = 1 };

static void join_numerics(check_list *list) {
  size_t failed = 0, ran = 0, first = list->count;
  for (size_t i = 0; i < list->count; i++) {
    const check *c = &list->data[i];
    if (strcmp(c->what->name, "numerics/run") != 0) continue;
    ran += c->outcome == CHECK_PASS || c->outcome == CHECK_FAIL;
    if (!is_open(c)) continue;
    failed++;
    if (first == list->count) first = i;
  }
  if (first == list->count) return;
  const bool all = failed > FEW && failed * 2 > ran;
  for (size_t i = first; i < list->count; i++) {
    const check *cause = &list->data[i];
    if (!is_open(cause) || strcmp(cause->what->name, "numerics/run") != 0) continue;
    for (size_t j = 0; j < list->count; j++) {
      check *c = &list->data[j];
      if (j == i || !is_open(c) || (is_cause(list, c) && strcmp(c->what->name, "numerics/run") == 0)) continue;
      const bool same = strcmp(c->group->name, "numerics") == 0 && strcmp(c->word, cause->word) == 0;
      const bool of_all = c->word[0] == '\0' || strcmp(c->group->name, "regions") == 0;
      if ((same || all || of_all) && is_among("numerics/* regions/* layouts/* threads/launches", c->what->name))
        put_under(list, j, i);
    }
  }
}

void check_find_causes(check_list *list) {
  join_absent(list);
  join_lost(list);
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) apply(list, &rules[i]);
  join_numerics(list);
  join_alike(list);
}
