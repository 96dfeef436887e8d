/* probe/probe.c: what is decided before and after a plugin is loaded. What a process
 * found out it remembers, so that a folder that cannot be written to costs one try a process. */
#include "probe/probe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "probe/manifest.h"

enum { DEFAULT_LIMIT_MS = 20000, MOST_LIMIT_MS = 3600000, MOST_NOTES = 64 };

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
  int verdict;
  char words[sizeof((heddle__trial *)NULL)->words];
} note;

static struct {
  pthread_mutex_t lock;
  note data[MOST_NOTES];
  unsigned count;
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static note *find(unsigned long long number) {
  for (unsigned i = 0; i < MOST_NOTES && i < notes.count; i++)
    if (notes.data[i].number == number) return &notes.data[i];
  return NULL;
}

static bool recall(const heddle__plugin *p, note *out) {
  pthread_mutex_lock(&notes.lock);
  const note *n = find(heddle__probe_number(p->real));
  bool is = n != NULL && n->size == p->size && n->mtime_ns == p->mtime_ns;
  if (is) *out = *n;
  pthread_mutex_unlock(&notes.lock);
  return is;
}

static void remember(const heddle__plugin *p, int verdict, const char *words) {
  unsigned long long number = heddle__probe_number(p->real);
  pthread_mutex_lock(&notes.lock);
  note *n = find(number);
  if (n == NULL) n = &notes.data[notes.count++ % MOST_NOTES];
  *n = (note){.number = number, .size = p->size, .mtime_ns = p->mtime_ns, .verdict = verdict};
  size_t length = strlen(words);
  memcpy(n->words, words, length < sizeof n->words ? length : sizeof n->words - 1);
  pthread_mutex_unlock(&notes.lock);
}

/* ---- before a plugin is loaded */

static heddle_status quarantine(heddle__plugin *p, const char *words, heddle_error *err) {
  return heddle__plugin_refuse(p, err,
                               "quarantined: when it was tried it %s; it is tried again once its file or a driver "
                               "has changed, or by 'heddle devices --retry'",
                               words);
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

static heddle_status try_it(heddle__plugin *p, const json_t *before, heddle_error *err) {
  int64_t limit = DEFAULT_LIMIT_MS;
  heddle__trial t;
  heddle_status s = heddle__context_number(p->ctx, "probe.timeout_ms", limit, 1, MOST_LIMIT_MS, &limit, err);
  if (s != HEDDLE_OK) return s;
  heddle__probe_say(p, HEDDLE_LOG_INFO, "tries %s in a process of its own", p->path);
  heddle__trial_run(p, (uint32_t)limit, &t);
  if (t.verdict != TRIAL_SLOW) remember(p, t.verdict, t.words);
  if (t.verdict == TRIAL_GOOD) {
    for (size_t i = 0; i < json_array_size(before) && json_array_size(t.drivers) < MOST_NOTES; i++)
      json_array_append(t.drivers, json_array_get(before, i));
    heddle__record_write(p, "ok", "", t.drivers, t.files);
    keep_drivers(p, t.drivers);
  } else if (t.verdict == TRIAL_BAD) {
    heddle__record_write(p, "quarantined", t.words, t.drivers, t.files);
    heddle__probe_say(p, HEDDLE_LOG_WARN, "%s is quarantined: when it was tried it %s", p->path, t.words);
    s = quarantine(p, t.words, err);
  } else if (t.verdict == TRIAL_SLOW) {
    s = heddle__plugin_refuse(p, err, "it could not be tried: %s; the next process tries it again", t.words);
  } else {
    heddle__probe_say(p, HEDDLE_LOG_WARN, "%s is loaded without having been tried: %s", p->path, t.words);
  }
  json_decref(t.drivers);
  json_decref(t.files);
  return s;
}

static bool is_again(const heddle__plugin *p) {
  const char *value;
  return heddle__config_get(p->ctx->config, "probe.retry", &value, NULL) && strcmp(value, "0") != 0 &&
         strcmp(value, "off") != 0;
}

heddle_status heddle__probe_try(heddle__plugin *p, heddle_error *err) {
  bool again = is_again(p);
  note n;
  if (recall(p, &n)) {
    if (n.verdict == TRIAL_GOOD || n.verdict == TRIAL_NONE) return HEDDLE_OK;
    if (!again) return quarantine(p, n.words, err);
  }
  json_t *record = heddle__record_read(p);
  const char *state = json_string_value(json_object_get(record, "state"));
  const char *reason = json_string_value(json_object_get(record, "reason"));
  json_t *drivers = json_object_get(record, "drivers");
  heddle_status s = HEDDLE_OK;
  if (state != NULL && strcmp(state, "ok") == 0) {
    keep_drivers(p, drivers);
    remember(p, TRIAL_GOOD, "");
  } else if (state != NULL && strcmp(state, "quarantined") == 0 && !again)
    s = quarantine(p, reason != NULL ? reason : "failed", err);
  else s = try_it(p, state != NULL && strcmp(state, "stale") == 0 ? drivers : NULL, err);
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

/* Whether a driver's text can be kept: a record holds UTF-8. What cannot be is not compared, or each process would try. */
static bool is_kept(const char *driver) {
  json_t *text = driver[0] != '\0' ? json_string(driver) : NULL;
  json_decref(text);
  return text != NULL;
}

/* A driver that no try has met: known only now, since the plugin opens it. The next process tries it. */
static void compare_drivers(heddle__plugin *p) {
  for (uint32_t i = 0; i < p->n_devices; i++) {
    const char *driver = p->devices[i]->desc.driver;
    if (is_line(p->drivers, driver) || !is_kept(driver)) continue;
    json_t *record = heddle__record_read(p);
    heddle__probe_say(p, HEDDLE_LOG_INFO, "%s: driver '%s' is new; the next process tries %s again",
                      p->devices[i]->name, driver, p->path);
    if (record != NULL)
      heddle__record_write(p, "stale", "", json_object_get(record, "drivers"), json_object_get(record, "files"));
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
