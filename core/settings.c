/* core/settings.c: warnings of settings that nothing reads, with the nearest name: those of the library when a context is
 * created, and a plugin's own once it was opened, when the names that it asked for are known. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/parts.h"
#include "core/registry.h"
#include "heddle/text.h"

heddle_status heddle__settings_common(heddle__plugin *p, heddle_error *err) {
  char key[sizeof p->name + sizeof ".regions"];
  int64_t on = 1;
  snprintf(key, sizeof key, "%s.regions", p->name);
  heddle__settings_asked(p, "regions"); /* so that it is known, and near to what is misspelled */
  heddle__settings_asked(p, "watchdog_ms");
  heddle_status s = heddle__context_number(p->ctx, key, 1, 0, 1, &on, err);
  p->one_by_one = on == 0;
  return s;
}

#if HEDDLE_HAS_CONFIG

/* What the library reads; a name that ends with a dot has any names under it. */
static const char *const names[] = {"annotations",
                                    "cache_home",
                                    "config",
                                    "devices",
                                    "fault.delay_us",
                                    "fault.drop_signal",
                                    "fault.fail",
                                    "key_file",
                                    "layers",
                                    "limit.fold_bytes",
                                    "limit.graph_bytes",
                                    "limit.memory",
                                    "limit.memory.",
                                    "limit.params_bytes",
                                    "limit.plan_seconds",
                                    "limit.programs",
                                    "limit.upload_seconds",
                                    "log",
                                    "optimize",
                                    "place",
                                    "place.cache_bytes",
                                    "place.cache_dir",
                                    "place.measure",
                                    "place.overlap",
                                    "place.seconds",
                                    "place.sure",
                                    "plugin_path",
                                    "plugin_trust",
                                    "plugins",
                                    "precision",
                                    "prepare",
                                    "prepared",
                                    "privileged.plugins",
                                    "probe",
                                    "probe.cache_bytes",
                                    "probe.cache_dir",
                                    "probe.expire_days",
                                    "probe.retry",
                                    "probe.timeout_ms",
                                    "ranges",
                                    "ranks.silence_seconds",
                                    "ranks.wait_seconds",
                                    "remote",
                                    "routes.cache_bytes",
                                    "routes.cache_dir",
                                    "routes.test",
                                    "run.on_failure",
                                    "spin_us",
                                    "threads",
                                    "trust",
                                    "weights.cache_bytes",
                                    "weights.cache_dir"};
enum { N_NAMES = sizeof names / sizeof names[0] };

/* Variables of the tool, and of the build and the tests of Heddle itself, which are no settings. */
static const char *const others[] = {"HEDDLE_BENCH", "HEDDLE_BUILD",   "HEDDLE_FUZZ",   "HEDDLE_GO_",
                                     "HEDDLE_ONNX_", "HEDDLE_PLANNED", "HEDDLE_PYTHON", "HEDDLE_SANITIZE",
                                     "HEDDLE_TEST",  "HEDDLE_VALUES"};

static bool begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

/* Whether a name is one, or is under one that ends with the separator. */
static bool is_among(const char *name, const char *const *list, size_t n, char separator) {
  for (size_t i = 0; i < n; i++) {
    size_t k = strlen(list[i]);
    bool is_open = list[i][k - 1] == separator;
    if (is_open ? begins(name, list[i]) && name[k] != '\0' : strcmp(name, list[i]) == 0) return true;
  }
  return false;
}

static void warn(const heddle__log *log, const char *from, const char *what, const char *name, const char *near) {
  heddle__logf(log, HEDDLE_LOG_WARN, "config", "%s%snothing reads the %s '%s'%s%s%s", from, from[0] != '\0' ? ": " : "",
               what, name, near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
}

/* ---- of the library */

typedef struct search {
  const heddle_context *ctx;
  char room[N_NAMES][40]; /* the names as variables have them */
  const char *variables[N_NAMES];
} search;

enum { MOST_NAME = 128 };

static bool is_plugin(const search *s, const char *word, size_t n) {
  for (size_t i = 0; i < s->ctx->plugins.count; i++)
    if (heddle__may_be(s->ctx->plugins.data[i], word, n)) return true;
  return false;
}

/* Puts the nearer one of two names to best, where nothing stands before the first. */
static void take_nearer(const char *wrong, const char *name, char best[MOST_NAME]) {
  const char *const both[] = {best, name};
  const size_t skip = best[0] == '\0';
  const char *near = heddle_text_nearest(wrong, both + skip, 2 - skip);
  if (near == name) snprintf(best, MOST_NAME, "%s", name);
}

/* The first n letters as the name of a plugin that is near, and the rest behind it, where that is nearer than best. */
static void take_plugin(const search *s, const char *wrong, size_t n, bool is_variable, char best[MOST_NAME]) {
  char word[MOST_NAME], plugin[MOST_NAME] = "", name[MOST_NAME];
  if (n >= sizeof word) return;
  for (size_t i = 0; i < n; i++) word[i] = wrong[i] >= 'A' && wrong[i] <= 'Z' ? (char)(wrong[i] - 'A' + 'a') : wrong[i];
  word[n] = '\0';
  for (size_t i = 0; i < s->ctx->plugins.count; i++) {
    heddle__file_name(s->ctx->plugins.data[i], name);
    take_nearer(word, name, plugin);
  }
  if (plugin[0] == '\0') return;
  for (char *c = plugin; is_variable && *c != '\0'; c++)
    if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
  const size_t k = strlen(plugin);
  snprintf(plugin + k, sizeof plugin - k, "%s", wrong + n);
  take_nearer(wrong, plugin, best);
}

/* A variable whose first word is a plugin's name is the plugin's. */
static bool is_of_plugin(const search *s, const char *variable) {
  char word[64];
  size_t n = 0;
  for (const char *p = variable + strlen("HEDDLE_"); *p != '\0' && n < sizeof word; p++) {
    if (*p == '_' && is_plugin(s, word, n)) return true;
    word[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
  }
  return false;
}

static void check_variable(const search *s, const char *name) {
  enum { HEAD = sizeof "HEDDLE_" - 1 };
  char best[MOST_NAME] = "", near[sizeof best + HEAD];
  const char *rest[N_NAMES];
  if (is_among(name, s->variables, N_NAMES, '_') || is_of_plugin(s, name)) return;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (begins(name, others[i])) return;
  for (size_t i = 0; i < N_NAMES; i++) rest[i] = s->variables[i] + HEAD; /* what all share makes none near */
  const char *meant = heddle_text_nearest(name + HEAD, rest, N_NAMES);
  if (meant != NULL) snprintf(best, sizeof best, "%s", meant);
  for (const char *c = strchr(name + HEAD, '_'); c != NULL; c = strchr(c + 1, '_'))
    take_plugin(s, name + HEAD, (size_t)(c - name) - HEAD, true, best);
  snprintf(near, sizeof near, "HEDDLE_%s", best);
  warn(&s->ctx->log, "", "variable", name, best[0] != '\0' ? near : NULL);
}

static void check(void *user, const char *key, bool is_variable, const char *from) {
  const search *s = user;
  const size_t n = strcspn(key, ".");
  char best[MOST_NAME] = "";
  if (is_variable) {
    check_variable(s, key);
    return;
  }
  if (is_among(key, names, N_NAMES, '.') || (key[n] == '.' && is_plugin(s, key, n))) return;
  const char *meant = heddle_text_nearest(key, names, N_NAMES);
  if (meant != NULL) snprintf(best, sizeof best, "%s", meant);
  if (key[n] == '.') take_plugin(s, key, n, false, best);
  warn(&s->ctx->log, from, from[0] != '\0' ? "key" : "setting", key, best[0] != '\0' ? best : NULL);
}

void heddle__settings_warn(const heddle_context *ctx) {
  search s = {.ctx = ctx};
  for (size_t i = 0; i < N_NAMES; i++) {
    (void)heddle__config_variable(names[i], s.room[i], sizeof s.room[i]);
    s.variables[i] = s.room[i];
  }
  heddle__config_given(ctx->config, check, &s);
}

/* ---- of a plugin */

void heddle__settings_asked(heddle__plugin *p, const char *key) {
  if (is_among(key, (const char *const *)p->asked, p->n_asked, '\0')) return;
  char **more = heddle__grow((void *)p->asked, p->n_asked, p->n_asked + 1, sizeof *more);
  if (more == NULL) return; /* a warning less that is right, or one more that is not */
  p->asked = more;
  if ((p->asked[p->n_asked] = heddle__strdup(key)) != NULL) p->n_asked++;
}

void heddle__settings_forget(heddle__plugin *p) {
  for (size_t i = 0; i < p->n_asked; i++) heddle__free(p->asked[i]);
  heddle__free((void *)p->asked);
  p->asked = NULL;
  p->n_asked = 0;
}

/* Whether a plugin has a setting: it read it, or describes it; one of a device must be described as such. Those that
 * describe none are given the settings of a device unseen. */
static bool has(const heddle__plugin *p, const char *key, bool of_device) {
  bool fits;
  if (of_device ? !p->describes : is_among(key, (const char *const *)p->asked, p->n_asked, '\0')) return true;
  const char *known;
  for (size_t i = 0; (known = heddle__described_key(p, i, &fits)) != NULL; i++)
    if (strcmp(key, known) == 0 && (fits || !of_device)) return true;
  return false;
}

/* The key that is nearest to one that the plugin does not have; NULL: there is none. */
static const char *nearest(heddle__plugin *p, const char *key, bool of_device) {
  bool fits;
  const char *known;
  size_t n = 0;
  const char **keys = heddle__alloc(p->n_described + p->n_asked, sizeof *keys);
  if (keys == NULL) return NULL;
  for (size_t i = 0; (known = heddle__described_key(p, i, &fits)) != NULL; i++)
    if (fits || !of_device) keys[n++] = known;
  for (size_t i = 0; i < p->n_asked && !of_device; i++) keys[n++] = p->asked[i];
  const char *found = heddle_text_nearest(key, keys, n);
  heddle__free((void *)keys);
  return found;
}

/* Says where a list of settings is not the whole. */
static void check_described(const heddle__plugin *p) {
  bool fits;
  for (size_t i = 0; p->describes && i < p->n_asked; i++) {
    const char *known = NULL;
    for (size_t k = 0; (known = heddle__described_key(p, k, &fits)) != NULL && strcmp(known, p->asked[i]) != 0;) k++;
    if (known == NULL)
      heddle__logf(&p->ctx->log, HEDDLE_LOG_INFO, "config",
                   "plugin %s reads the setting '%s', which it does not describe", p->name, p->asked[i]);
  }
}

void heddle__settings_check(heddle__plugin *p) {
  char full[128], near[160];
  const char *key, *value, *origin;
  size_t n = strlen(p->name);
  check_described(p);
  for (size_t i = 0; (key = heddle__config_key(p->ctx->config, i)) != NULL; i++) {
    if (!begins(key, p->name) || key[n] != '.' || !heddle__config_get(p->ctx->config, key, &value, &origin)) continue;
    const char *rest = key + n + 1;
    const int digits = (int)strspn(rest, "0123456789"); /* of a device: the plugin is given it with the open */
    const bool of_device = rest[digits] == '.';
    if (of_device) rest += digits + 1;
    if (strcmp(rest, "layers") == 0 || strcmp(origin, "default") == 0 || has(p, rest, of_device)) continue;
    const char *meant = nearest(p, rest, of_device);
    if (meant != NULL && of_device) snprintf(near, sizeof near, "%s.%.*s.%s", p->name, digits, key + n + 1, meant);
    else if (meant != NULL) snprintf(near, sizeof near, "%s.%s", p->name, meant);
    snprintf(full, sizeof full, "plugin %s (%s)", p->name, origin);
    warn(&p->ctx->log, full, "setting", key, meant != NULL ? near : NULL);
  }
}

#else

void heddle__settings_warn(const heddle_context *ctx) {
  (void)ctx;
}

void heddle__settings_asked(heddle__plugin *p, const char *key) {
  (void)p, (void)key;
}

void heddle__settings_forget(heddle__plugin *p) {
  (void)p;
}

void heddle__settings_check(heddle__plugin *p) {
  (void)p;
}

#endif
