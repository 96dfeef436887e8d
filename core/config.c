/* core/config.c: what wins among call, variable, file and default, and where each value came from.
 * The environment and the file are copied when the context is created; the file's reader is core/config_file.c. */
#define _GNU_SOURCE /* secure_getenv, sched_getaffinity */
#include <sched.h>
#include <stdatomic.h>
#define _GNU_SOURCE /* secure_getenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/config_file.h"
#include "core/error.h"
#include "core/parts.h"
#include "core/thread.h"

extern char **environ;

/* Sources, strongest first. */
enum { FROM_CALL, FROM_VARIABLE, FROM_FILE, FROM_DEFAULT, SOURCES };

struct heddle__config {
  heddle__entries from[SOURCES]; /* keys of variables are the variables' names */
  heddle__entries keys;          /* of what there is a value of, each once; values are empty */
  heddle__entry *late;           /* defaults that came when the keys were listed; never moved */
  size_t most_late;
  atomic_size_t n_late;
  char *path; /* of the file, or NULL */
};

heddle_status heddle__entries_add(heddle__entries *list, const char *key, size_t key_length, const char *value,
                                  heddle_error *err) {
  if (list->count == list->capacity) {
    size_t more = list->capacity == 0 ? 16 : list->capacity * 2;
    heddle__entry *grown = heddle__grow(list->data, list->capacity, more, sizeof *grown);
    if (grown == NULL) return heddle__no_memory(err, "the configuration");
    list->data = grown;
    list->capacity = more;
  }
  heddle__entry *e = &list->data[list->count];
  e->key = heddle__strndup(key, key_length);
  e->value = heddle__strdup(value);
  if (e->key == NULL || e->value == NULL) {
    heddle__free(e->key);
    heddle__free(e->value);
    return heddle__no_memory(err, "the configuration");
  }
  list->count++;
  return HEDDLE_OK;
}

static const char *find_entry(const heddle__entries *list, const char *key) {
  for (size_t i = list->count; i-- > 0;) /* the last one that was given wins */
    if (strcmp(list->data[i].key, key) == 0) return list->data[i].value;
  return NULL;
}

bool heddle__config_is_off(const char *value) {
  return strcmp(value, "0") == 0 || strcmp(value, "off") == 0 || strcmp(value, "none") == 0;
}

/* Lower-case words with dots between: what can be turned into a variable's name. */
static bool is_key(const char *key) {
  if (key == NULL || key[0] == '\0') return false;
  size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.");
  return key[n] == '\0' && n < 200 && key[0] != '.' && key[n - 1] != '.';
}

/* ---- sources */

static heddle_status read_call(heddle__config *c, const heddle_setting *settings, size_t n, heddle_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (!is_key(settings[i].key))
      return heddle__fail(err, HEDDLE_EINVAL, "setting %zu: '%s' is no key; keys are like \"sim.delay_us\"", i,
                          settings[i].key != NULL ? settings[i].key : "(NULL)");
    if (settings[i].value == NULL)
      return heddle__fail(err, HEDDLE_EINVAL, "setting '%s': the value is NULL", settings[i].key);
    heddle_status s =
        heddle__entries_add(&c->from[FROM_CALL], settings[i].key, strlen(settings[i].key), settings[i].value, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

/* secure_getenv gives nothing in a privileged process. An empty variable is one that is not set. */
static heddle_status read_variables(heddle__config *c, heddle_error *err) {
  for (char **p = environ; p != NULL && *p != NULL; p++) {
    const char *equals = strchr(*p, '=');
    char name[256];
    if (strncmp(*p, "HEDDLE_", 7) != 0 || equals == NULL || (size_t)(equals - *p) >= sizeof name) continue;
    memcpy(name, *p, (size_t)(equals - *p));
    name[equals - *p] = '\0';
    const char *value = secure_getenv(name);
    if (value == NULL || value[0] == '\0' || strcmp(name, "HEDDLE_KEY") == 0) continue; /* a secret, no setting */
    heddle_status s = heddle__entries_add(&c->from[FROM_VARIABLE], name, strlen(name), value, err);
    if (s != HEDDLE_OK) return s;
  }
  return HEDDLE_OK;
}

static heddle_status read_defaults(heddle__config *c, heddle_error *err) {
  char threads[16];
  snprintf(threads, sizeof threads, "%u", heddle__cores());
  heddle_status s = heddle__entries_add(&c->from[FROM_DEFAULT], "threads", 7, threads, err);
  if (s == HEDDLE_OK) s = heddle__entries_add(&c->from[FROM_DEFAULT], "spin_us", 7, "100", err);
  return s == HEDDLE_OK ? heddle__entries_add(&c->from[FROM_DEFAULT], "log", 3, "warn", err) : s;
}

bool heddle__config_cache_dir(heddle__config *c, const char *plugin) {
  const char *folder = NULL, *below = "";
  if (!heddle__config_get(c, "cache_home", &folder, NULL)) folder = secure_getenv("XDG_CACHE_HOME");
  if (folder == NULL || folder[0] != '/') folder = secure_getenv("HOME"), below = "/.cache";
  if (folder == NULL || folder[0] != '/') return false;
  char *key = heddle__format("%s.cache_dir", plugin), *value = heddle__format("%s%s/heddle/%s", folder, below, plugin);
  size_t n = atomic_load(&c->n_late);
  if (key == NULL || value == NULL || n == c->most_late) {
    heddle__free(key);
    heddle__free(value);
    return false;
  }
  c->late[n] = (heddle__entry){key, value};
  atomic_store_explicit(&c->n_late, n + 1, memory_order_release);
  return true;
}

heddle_status heddle__config_reserve(heddle__config *c, size_t count, heddle_error *err) {
  c->late = heddle__alloc(count, sizeof *c->late);
  if (c->late == NULL) return heddle__no_memory(err, "the configuration");
  c->most_late = count;
  return HEDDLE_OK;
}

/* The file that was named, else the user's, else the system's; *path stays NULL where there is none. */
static heddle_status find_file(heddle__config *c, heddle_error *err) {
  const char *named = NULL;
  if (heddle__config_get(c, "config", &named, NULL)) {
    if (heddle__config_is_off(named)) return HEDDLE_OK;
#if HEDDLE_HAS_CONFIG
    c->path = heddle__strdup(named);
    if (c->path == NULL) return heddle__no_memory(err, "the configuration");
    return heddle__config_file_read(c->path, true, &c->from[FROM_FILE], err);
#else
    return heddle__left_out(err, "configuration files, which the setting 'config' names", "HEDDLE_CONFIG");
#endif
  }
#if HEDDLE_HAS_CONFIG
  const char *config_home = secure_getenv("XDG_CONFIG_HOME");
  const char *home = secure_getenv("HOME");
  for (int i = 0; i < 2; i++) {
    if (i == 1) c->path = heddle__strdup(heddle__system_file());
    else if (config_home != NULL && config_home[0] == '/')
      c->path = heddle__format("%s/heddle/config.json", config_home);
    else if (home != NULL && home[0] == '/') c->path = heddle__format("%s/.config/heddle/config.json", home);
    else continue;
    if (c->path == NULL) return heddle__no_memory(err, "the configuration");
    heddle_status s = heddle__is_privileged() ? heddle__system_file_trust(c->path, err) : HEDDLE_OK;
    if (s == HEDDLE_OK) s = heddle__config_file_read(c->path, false, &c->from[FROM_FILE], err);
    if (s != HEDDLE_ENOTFOUND) return s;
    heddle__free(c->path);
    c->path = NULL;
  }
#endif
  return HEDDLE_OK;
}

heddle_status heddle__config_create(const heddle_setting *settings, size_t n, heddle__config **out, heddle_error *err) {
  if (settings == NULL && n != 0) return heddle__fail(err, HEDDLE_EINVAL, "%zu settings at NULL", n);
  heddle__config *c = heddle__alloc(1, sizeof *c);
  if (c == NULL) return heddle__no_memory(err, "the configuration");
  heddle_status s = read_call(c, settings, n, err);
  if (s == HEDDLE_OK) s = read_variables(c, err);
  if (s == HEDDLE_OK) s = read_defaults(c, err);
  if (s == HEDDLE_OK) s = find_file(c, err);
  if (s != HEDDLE_OK) {
    heddle__config_release(c);
    return s;
  }
  *out = c;
  return HEDDLE_OK;
}

static void entries_free(heddle__entries *list) {
  for (size_t i = 0; i < list->count; i++) {
    heddle__free(list->data[i].key);
    heddle__free(list->data[i].value);
  }
  heddle__free(list->data);
}

void heddle__config_release(heddle__config *c) {
  if (c == NULL) return;
  for (int from = 0; from < SOURCES; from++) entries_free(&c->from[from]);
  entries_free(&c->keys);
  for (size_t i = 0; i < atomic_load(&c->n_late); i++) {
    heddle__free(c->late[i].key);
    heddle__free(c->late[i].value);
  }
  heddle__free(c->late);
  heddle__free(c->path);
  heddle__free(c);
}

/* ---- looking up */

bool heddle__config_variable(const char *key, char *name, size_t bytes) {
  int n = snprintf(name, bytes, "HEDDLE_%s", key);
  if (n < 0 || (size_t)n >= bytes) return false;
  for (; *name != '\0'; name++)
    if (*name == '.') *name = '_';
    else if (*name >= 'a' && *name <= 'z') *name = (char)(*name - 'a' + 'A');
  return true;
}

bool heddle__config_get(const heddle__config *c, const char *key, const char **value, const char **origin) {
  char variable[256];
  const char *found = find_entry(&c->from[FROM_CALL], key), *from = "call";
  if (found == NULL && heddle__config_variable(key, variable, sizeof variable)) {
    const heddle__entries *list = &c->from[FROM_VARIABLE];
    for (size_t i = 0; i < list->count && found == NULL; i++)
      if (strcmp(list->data[i].key, variable) == 0) {
        found = list->data[i].value;
        from = list->data[i].key;
      }
  }
  if (found == NULL && (found = find_entry(&c->from[FROM_FILE], key)) != NULL) from = c->path;
  if (found == NULL && (found = find_entry(&c->from[FROM_DEFAULT], key)) != NULL) from = "default";
  for (size_t i = atomic_load_explicit(&c->n_late, memory_order_acquire); found == NULL && i-- > 0;)
    if (strcmp(c->late[i].key, key) == 0) found = c->late[i].value, from = "default";
  if (found == NULL) return false;
  *value = found;
  if (origin != NULL) *origin = from;
  return true;
}

heddle_status heddle__config_each(const heddle__config *c, const char *prefix, heddle__config_fn each, void *user,
                                  heddle_error *err) {
  char variable[256], key[256];
  size_t n = strlen(prefix);
  if (!heddle__config_variable(prefix, variable, sizeof variable)) return HEDDLE_OK;
  for (int from = 0; from < SOURCES; from++) {
    const heddle__entries *list = &c->from[from];
    for (size_t i = 0; i < list->count; i++) {
      const char *have = list->data[i].key;
      if (from == FROM_VARIABLE) {
        if (strncmp(have, variable, n + 7) != 0 || n + strlen(have) >= sizeof key) continue;
        size_t k = n;
        memcpy(key, prefix, n);
        for (const char *p = have + n + 7; *p != '\0'; p++) key[k++] = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
        key[k] = '\0';
      } else {
        if (strncmp(have, prefix, n) != 0 || strlen(have) >= sizeof key) continue;
        memcpy(key, have, strlen(have) + 1);
      }
      const char *value;
      if (!heddle__config_get(c, key, &value, NULL) || value != list->data[i].value) continue; /* a stronger one wins */
      heddle_status s = each(user, key + n, value, err);
      if (s != HEDDLE_OK) return s;
    }
  }
  return HEDDLE_OK;
}

/* Words that keys begin with, beside the plugins' names; those with a dot have keys under them. */
static const char *const words[] = {"annotations",  "devices",  "plugins",     "plugin_path", "log",   "threads",
                                    "spin_us",      "layers",   "precision",   "optimize",    "place", "fault.",
                                    "limit.",       "weights.", "routes.",     "place.",      "probe", "probe.",
                                    "plugin_trust", "run.",     "privileged.", "ranks."};

static bool is_word(const char *key, size_t n, bool dotted) {
  for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
    size_t length = strcspn(words[k], ".");
    if (length == n && memcmp(words[k], key, n) == 0 && (words[k][n] == '.') == dotted) return true;
  }
  return false;
}

/* The key that a variable stands for: HEDDLE_SIM_DELAY_US is "sim.delay_us" where sim is a plugin. */
static void key_of(const char *variable, heddle__config_known known, void *user, char *key, size_t bytes) {
  size_t n = 0;
  bool dotted = false;
  for (const char *p = variable + 7; *p != '\0' && n + 1 < bytes; p++) {
    if (*p == '_' && !dotted && (is_word(key, n, true) || known(user, key, n))) {
      dotted = true;
      key[n++] = '.';
    } else {
      key[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    }
  }
  key[n] = '\0';
}

heddle_status heddle__config_list(heddle__config *c, heddle__config_known known, void *user, heddle_error *err) {
  char buffer[256];
  for (int from = 0; from < SOURCES; from++) {
    for (size_t i = 0; i < c->from[from].count; i++) {
      const char *key = c->from[from].data[i].key, *value;
      if (from == FROM_VARIABLE) {
        key_of(key, known, user, buffer, sizeof buffer);
        key = buffer;
      }
      if (!heddle__config_get(c, key, &value, NULL) || find_entry(&c->keys, key) != NULL) continue;
      heddle_status s = heddle__entries_add(&c->keys, key, strlen(key), "", err);
      if (s != HEDDLE_OK) return s;
    }
  }
  return HEDDLE_OK;
}

const char *heddle__config_key(const heddle__config *c, size_t i) {
  if (i < c->keys.count) return c->keys.data[i].key;
  i -= c->keys.count;
  return i < atomic_load_explicit(&c->n_late, memory_order_acquire) ? c->late[i].key : NULL;
}

void heddle__config_given(const heddle__config *c, heddle__config_given_fn each, void *user) {
  for (int from = 0; from < FROM_DEFAULT; from++)
    for (size_t i = 0; i < c->from[from].count; i++)
      each(user, c->from[from].data[i].key, from == FROM_VARIABLE, from == FROM_FILE ? c->path : "");
}
