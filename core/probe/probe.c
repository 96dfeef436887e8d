/* core/probe/probe.c: what is decided before and after a plugin is loaded. What cannot be
 * tried is not loaded. A failed try counts under the limits that it was made under, and for some days; one that may have
 * failed for want of a resource counts when it fails again. What a process found out it remembers, so that a folder that
 * cannot be written to costs one try a process. */
#include "core/probe/probe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/probe/manifest.h"

enum { DEFAULT_LIMIT_MS = 20000, MOST_LIMIT_MS = 3600000, MOST_NOTES = 64, DEFAULT_DAYS = 7, MOST_DAYS = 36500 };

void heddle__probe_say(const heddle__plugin *plugin, int32_t level, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vlogf(&plugin->ctx->log, level, "probe", format, args);
  va_end(args);
}

/* ---- what this process remembers */

typedef struct note {
  unsigned long long number;
  int64_t size, mtime_ns;
  bool good;
  heddle__limits limits; /* of a failure */
  int64_t limit_ms;
  char reason[640]; /* of a failure: the sentence that refuses the plugin */
} note;

static struct {
  pthread_mutex_t lock;
  note data[MOST_NOTES];
  unsigned count;
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static note *find_note(unsigned long long number) {
  for (unsigned i = 0; i < MOST_NOTES && i < notes.count; i++)
    if (notes.data[i].number == number) return &notes.data[i];
  return NULL;
}

static bool recall(const heddle__plugin *p, note *out) {
  pthread_mutex_lock(&notes.lock);
  const note *n = find_note(heddle__probe_number(p->real));
  bool is = n != NULL && n->size == p->size && n->mtime_ns == p->mtime_ns;
  if (is) *out = *n;
  pthread_mutex_unlock(&notes.lock);
  return is;
}

/* reason is NULL where the plugin is sound; what is of a failure. */
static void remember(const heddle__plugin *p, const heddle__finding *what, const char *reason) {
  unsigned long long number = heddle__probe_number(p->real);
  pthread_mutex_lock(&notes.lock);
  note *n = find_note(number);
  if (n == NULL) n = &notes.data[notes.count++ % MOST_NOTES];
  *n = (note){.number = number, .size = p->size, .mtime_ns = p->mtime_ns, .good = reason == NULL};
  if (reason != NULL) {
    n->limits = what->limits;
    n->limit_ms = what->limit_ms;
    snprintf(n->reason, sizeof n->reason, "%s", reason);
  }
  pthread_mutex_unlock(&notes.lock);
}

/* ---- before a plugin is loaded */

/* Numbers of settings. */
typedef struct numbers {
  int64_t limit_ms, days;
  bool again;
} numbers;

/* A refusal that is a finding and not the plugin's answer: what it changes in a list of devices is said. */
static heddle_status refuse(heddle__plugin *p, const char *reason, heddle_error *err) {
  p->untrusted = true;
  return heddle__plugin_refuse(p, err, "%s", reason);
}

/* The sentence of a finding that keeps a plugin from being used. */
static void say_why(char out[640], const heddle__finding *what, const numbers *n, const char *want) {
  if (strcmp(what->state, "suspect") == 0)
    snprintf(out, 640,
             "when it was tried it %s, perhaps for want of %s: the next process tries it again, and 'heddle devices "
             "--retry'",
             what->reason, want);
  else
    snprintf(
        out, 640,
        "quarantined: when it was tried it %s; it is tried again once its file or a driver has changed, by a process "
        "with %s, after %lld days, or by 'heddle devices --retry'",
        what->reason, what->limit_ms > 0 ? "a longer probe.timeout_ms" : "looser limits", (long long)n->days);
}

/* Whether a failure counts under the present limits. A try whose time was over says nothing of other limits. */
static bool holds(const heddle__limits *limits, int64_t limit_ms, const numbers *n) {
  if (limit_ms > 0) return n->limit_ms <= limit_ms;
  const heddle__limits now = heddle__limits_now();
  return !heddle__limits_looser(&now, limits);
}

/* Whether it was made so long ago that it does not count any more; and where the clock was set back since. */
static bool is_over(const heddle__finding *what, const numbers *n) {
  if (what->time <= 0) return true;
  int64_t age = (int64_t)time(NULL) - what->time;
  return age < 0 || age >= n->days * 86400;
}

/* The drivers of a record as lines, for what follows loading. Without memory nothing is compared. */
static void keep_drivers(heddle__plugin *p, const json_t *list) {
  size_t bytes = 1;
  for (size_t i = 0; i < json_array_size(list); i++) bytes += json_string_length(json_array_get(list, i)) + 1;
  heddle__free(p->drivers);
  p->drivers = heddle__alloc(bytes, 1);
  size_t used = 0;
  for (size_t i = 0; i < json_array_size(list) && p->drivers != NULL; i++) {
    const char *text = json_string_value(json_array_get(list, i));
    int n = snprintf(p->drivers + used, bytes - used, "%s\n", text != NULL ? text : "");
    if (n > 0) used += (size_t)n;
  }
}

static heddle_status keep_failure(heddle__plugin *p, const heddle__trial *t, const heddle__finding *before,
                                  const numbers *n, heddle_error *err) {
  heddle__finding what = {
      .state = "quarantined", .reason = t->words, .limits = heddle__limits_now(), .time = (int64_t)time(NULL)};
  char reason[640];
  what.limit_ms = t->late ? n->limit_ms : 0;
  const bool failed =
      before != NULL && (strcmp(before->state, "suspect") == 0 || strcmp(before->state, "quarantined") == 0);
  const bool alike = failed && (before->limit_ms > 0) == t->late && !is_over(before, n);
  what.failures = 1 + (alike && before->failures > 0 && before->failures < INT64_MAX ? before->failures : 0);
  if (t->want[0] != '\0' && what.failures < 2) what.state = "suspect";
  if (alike && strcmp(before->state, "quarantined") == 0) { /* under both it failed */
    what.limits = heddle__limits_most(&what.limits, &before->limits);
    if (what.limit_ms < before->limit_ms) what.limit_ms = before->limit_ms;
  }
  say_why(reason, &what, n, t->want);
  remember(p, &what, reason);
  heddle__record_write(p, &what, t->drivers, t->files);
  if (strcmp(what.state, "suspect") == 0) heddle__probe_say(p, HEDDLE_LOG_WARN, "%s is not used: %s", p->path, reason);
  else heddle__probe_say(p, HEDDLE_LOG_WARN, "%s is quarantined: when it was tried it %s", p->path, t->words);
  return refuse(p, reason, err);
}

static heddle_status keep_success(heddle__plugin *p, const heddle__trial *t, const json_t *drivers) {
  const heddle__finding what = {
      .state = "ok", .reason = "", .limits = heddle__limits_now(), .time = (int64_t)time(NULL)};
  for (size_t i = 0; i < json_array_size(drivers) && json_array_size(t->drivers) < MOST_NOTES; i++)
    json_array_append(t->drivers, json_array_get(drivers, i));
  remember(p, &what, NULL);
  heddle__record_write(p, &what, t->drivers, t->files);
  keep_drivers(p, t->drivers);
  return HEDDLE_OK;
}

/* before is what was kept, or NULL; drivers are those that earlier tries met. */
static heddle_status try_it(heddle__plugin *p, const heddle__finding *before, const json_t *drivers, const numbers *n,
                            heddle_error *err) {
  heddle__trial t;
  heddle_status s;
  heddle__probe_say(p, HEDDLE_LOG_INFO, "tries %s in a process of its own", p->path);
  heddle__trial_run(p, (uint32_t)n->limit_ms, &t);
  if (t.verdict == TRIAL_GOOD) s = keep_success(p, &t, drivers);
  else if (t.verdict == TRIAL_BAD) s = keep_failure(p, &t, before, n, err);
  else {
    char reason[640];
    snprintf(
        reason, sizeof reason,
        "it could not be tried: %s; it is not loaded untried unless the setting probe is off, and the next process "
        "tries it again",
        t.words);
    heddle__probe_say(p, HEDDLE_LOG_WARN, "%s is not loaded, since it could not be tried: %s", p->path, t.words);
    s = refuse(p, reason, err);
  }
  json_decref(t.drivers);
  json_decref(t.files);
  return s;
}

static heddle_status read_numbers(const heddle__plugin *p, numbers *out, heddle_error *err) {
  const char *value;
  out->again = heddle__config_get(p->ctx->config, "probe.retry", &value, NULL) && strcmp(value, "0") != 0 &&
               strcmp(value, "off") != 0;
  heddle_status s =
      heddle__context_number(p->ctx, "probe.timeout_ms", DEFAULT_LIMIT_MS, 1, MOST_LIMIT_MS, &out->limit_ms, err);
  if (s != HEDDLE_OK) return s;
  return heddle__context_number(p->ctx, "probe.expire_days", DEFAULT_DAYS, 0, MOST_DAYS, &out->days, err);
}

heddle_status heddle__probe_try(heddle__plugin *p, heddle_error *err) {
  numbers n;
  note seen;
  heddle__finding what;
  heddle_status s = read_numbers(p, &n, err);
  if (s != HEDDLE_OK) return s;
  if (recall(p, &seen)) {
    if (seen.good) return HEDDLE_OK;
    if (!n.again && holds(&seen.limits, seen.limit_ms, &n)) return refuse(p, seen.reason, err);
  }
  json_t *record = heddle__record_read(p, &what);
  json_t *drivers = json_object_get(record, "drivers");
  if (record != NULL && strcmp(what.state, "ok") == 0) {
    keep_drivers(p, drivers);
    remember(p, &what, NULL);
  } else if (record != NULL && strcmp(what.state, "quarantined") == 0 && !n.again && !is_over(&what, &n) &&
             holds(&what.limits, what.limit_ms, &n)) {
    char reason[640];
    say_why(reason, &what, &n, "");
    s = refuse(p, reason, err);
  } else
    s = try_it(p, record != NULL ? &what : NULL, record != NULL && strcmp(what.state, "stale") == 0 ? drivers : NULL,
               &n, err);
  json_decref(record);
  return s;
}

/* ---- after it is loaded */

static bool is_line(const char *lines, const char *text) {
  size_t n = strlen(text);
  for (const char *p = lines, *end; (end = strchr(p, '\n')) != NULL; p = end + 1)
    if ((size_t)(end - p) == n && memcmp(p, text, n) == 0) return true;
  return false;
}

/* A driver that no try has met: known only now, since the plugin opens it. The next process tries it. Its text is UTF-8 and not
 * empty, which the loader checked. */
static void compare_drivers(heddle__plugin *p) {
  for (uint32_t i = 0; i < p->n_devices; i++) {
    const char *driver = p->devices[i]->desc.driver;
    if (is_line(p->drivers, driver)) continue;
    heddle__finding what;
    json_t *record = heddle__record_read(p, &what);
    heddle__probe_say(p, HEDDLE_LOG_INFO, "%s: driver '%s' is new; the next process tries %s again",
                      p->devices[i]->name, driver, p->path);
    what.state = "stale";
    if (record != NULL)
      heddle__record_write(p, &what, json_object_get(record, "drivers"), json_object_get(record, "files"));
    json_decref(record);
    return;
  }
}

void heddle__probe_loaded(heddle__plugin *p) {
  if (p->drivers != NULL) compare_drivers(p);
  heddle__free(p->drivers);
  p->drivers = NULL;
  if (p->abilities != NULL) heddle__abilities_read(p);
}
