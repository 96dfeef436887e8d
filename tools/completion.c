/* tools/completion.c: completes the last word of a command line from the commands' own tables: commands, options, and their
 * values by what the help calls them (files by suffix, devices, settings, fixed words). */
#include "completion.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "heddle/device.h"
#include "options.h"
#include "text.h"

/* ---- printing what fits */

/* What is being typed: before is the part that stays (such as "--device=cpu,"), part what is to be completed. */
typedef struct typed {
  const char *before;
  size_t n_before;
  const char *part;
} typed;

static void offer(const typed *t, const char *word, const char *end) {
  char clean[4096]; /* a name that has to be shown as another cannot be typed */
  if (heddle_text_clean(word, clean, sizeof clean) >= sizeof clean || strcmp(clean, word) != 0) return;
  if (strncmp(word, t->part, strlen(t->part)) == 0) print("%.*s%s%s\n", (int)t->n_before, t->before, word, end);
}

static void offer_list(const typed *t, const char *list, const char *end) {
  for (char word[64]; *list != '\0'; list += *list == ' ') {
    size_t n = strcspn(list, " ");
    snprintf(word, sizeof word, "%.*s", (int)n, list);
    offer(t, word, end);
    list += n;
  }
}

/* Goes on behind the last of the characters: of a list, or of a pair. */
static typed behind(const typed *t, char separator) {
  const char *last = strrchr(t->part, separator);
  if (last == NULL) return *t;
  return (typed){t->before, (size_t)(last + 1 - t->before), last + 1};
}

/* ---- files */

static bool ends_in(const char *name, const char *suffixes) {
  for (size_t n; *suffixes != '\0'; suffixes += n, suffixes += *suffixes == ' ') {
    n = strcspn(suffixes, " ");
    size_t length = strlen(name);
    if (length > n && strncmp(name + length - n, suffixes, n) == 0) return true;
  }
  return false;
}

/* Folders, and the files whose names end in one of the suffixes ("" : all of them; NULL: none). */
static void offer_files(const typed *t, const char *suffixes) {
  char folder[1024], path[2048];
  const char *slash = strrchr(t->part, '/'), *base = slash != NULL ? slash + 1 : t->part;
  size_t n = (size_t)(base - t->part);
  if (n >= sizeof folder) return;
  snprintf(folder, sizeof folder, "%.*s", (int)n, t->part);
  DIR *dir = opendir(n > 0 ? folder : ".");
  if (dir == NULL) return;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    struct stat info;
    if (e->d_name[0] == '.' && base[0] != '.') continue;
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (strlen(e->d_name) + n >= sizeof path) continue;
    snprintf(path, sizeof path, "%s%s", folder, e->d_name);
    if (stat(path, &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) offer(t, path, "/");
    else if (suffixes != NULL && (suffixes[0] == '\0' || ends_in(e->d_name, suffixes))) offer(t, path, "");
  }
  closedir(dir);
}

/* ---- devices and settings */

static void silent(void *user, int32_t level, const char *component, const char *text) {
  (void)user, (void)level, (void)component, (void)text;
}

static void offer_devices(const typed *t, const char *end) {
  heddle_context *ctx;
  if (heddle_context_create(NULL, 0, silent, NULL, &ctx, NULL) != HEDDLE_OK) return;
  for (size_t i = 0, n = heddle_context_device_count(ctx); i < n; i++)
    offer(t, heddle_device_name(heddle_context_device(ctx, i)), end);
  heddle_context_release(ctx);
}

/* Settings that have no plugin's name in them, as docs/cli.md lists them. */
static const char general_keys[] =
    "annotations devices plugins plugin_path plugin_trust probe probe.timeout_ms probe.expire_days probe.cache_dir "
    "probe.cache_bytes probe.retry config log place place.measure place.seconds place.sure place.overlap "
    "place.cache_dir place.cache_bytes optimize precision run.on_failure threads spin_us layers fault.fail "
    "trust key_file limit.graph_bytes limit.params_bytes limit.fold_bytes limit.memory limit.upload_seconds remote "
    "limit.plan_seconds limit.programs ranges ranks.silence_seconds ranks.wait_seconds routes.test "
    "routes.cache_dir routes.cache_bytes weights.cache_dir weights.cache_bytes cache_home prepared";

/* ---- fixed words, by setting and by option */

static const char passes[] = "on off dead identity cse quantized fold rotary attention grouped reshapes transposes "
                             "conv activation layer_norm rms_norm gemm";

static const struct fixed {
  const char *name, *words;
} fixed[] = {{"on-failure", "error retry retry: failover"},
             {"run.on_failure", "error retry retry: failover"},
             {"state", "auto off"},
             {"precision", "strict fast"},
             {"form", "nbits qdq"},
             {"weights", "int4 int8"},
             {"format", "text tap junit"},
             {"timer", "host device"},
             {"log", "off error warn info debug trace"},
             {"plugin_trust", "any"},
             {"place", "auto off"},
             {"annotations", "on off"}};

static bool offer_fixed(const typed *t, const char *name) {
  for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
    if (strcmp(fixed[i].name, name) != 0) continue;
    offer_list(t, fixed[i].words, "");
    return true;
  }
  return false;
}

/* The settings of plugins: their keys, or the values of the one that is named key. */
static void offer_described(const typed *t, const char *key) {
  heddle_context *ctx;
  heddle_setting_info s = {.struct_size = sizeof s};
  if (heddle_context_create(NULL, 0, silent, NULL, &ctx, NULL) != HEDDLE_OK) return;
  for (size_t i = 0; heddle_context_described(ctx, i, &s, NULL) == HEDDLE_OK; i++) {
    if (key == NULL) offer(t, s.key, "=");
    if (key == NULL || strcmp(key, s.key) != 0) continue;
    if (strcmp(s.type, "switch") == 0) offer_list(t, "0 1", "");
    for (const char *p = s.values; *p != '\0'; p += *p == ',') {
      char word[64];
      const size_t n = strcspn(p, ",");
      snprintf(word, sizeof word, "%.*s", (int)n, p);
      offer(t, word, "");
      p += n;
    }
  }
  heddle_context_release(ctx);
}

/* KEY=VALUE */
static void offer_setting(const typed *t) {
  char key[64];
  const char *equals = strchr(t->part, '=');
  if (equals == NULL) {
    offer_list(t, general_keys, "=");
    offer_described(t, NULL);
    return;
  }
  typed value = behind(t, '=');
  snprintf(key, sizeof key, "%.*s", (int)(equals - t->part), t->part);
  if (strcmp(key, "devices") == 0) {
    value = behind(&value, ',');
    offer_devices(&value, "");
  } else if (strcmp(key, "optimize") == 0) {
    value = behind(&value, ',');
    offer_list(&value, passes, "");
  } else if (strcmp(key, "config") == 0) {
    offer_files(&value, ".json");
  } else if (strstr(key, "cache_dir") != NULL || strcmp(key, "cache_home") == 0) {
    offer_files(&value, NULL);
  } else if (!offer_fixed(&value, key) && strchr(key, '.') != NULL) {
    offer_described(&value, key);
  }
}

/* ---- the value of an option */

static void offer_value(const option *o, const typed *t) {
  const bool lists_devices = strcmp(o->name, "device") == 0 || strcmp(o->name, "a") == 0 || strcmp(o->name, "b") == 0 ||
                             strcmp(o->name, "for") == 0;
  const char *what = o->value;
  typed rest = behind(t, ',');
  if (strncmp(o->name, "place", 5) == 0) {
    if (strchr(t->part, '=') == NULL) {
      offer_fixed(t, o->kind == OPTION_RULES ? "place" : "");
    } else {
      rest = behind(t, '=');
      offer_devices(&rest, "");
    }
  } else if (lists_devices && strcmp(what, "LIST") == 0) {
    offer_devices(&rest, "");
  } else if (strcmp(o->name, "memory") == 0) {
    offer_devices(&rest, "=");
  } else if (strcmp(o->name, "optimize") == 0) {
    offer_list(&rest, passes, "");
  } else if (strcmp(what, "KEY=VALUE") == 0) {
    offer_setting(t);
  } else if (strcmp(what, "NAME=FILE.npy") == 0) {
    rest = behind(t, '=');
    if (strchr(t->part, '=') != NULL) offer_files(&rest, ".npy");
  } else if (strcmp(what, "FILE.json") == 0 || strcmp(what, "MODEL.json") == 0) {
    offer_files(t, ".json");
  } else if (strcmp(what, "DIR") == 0) {
    offer_files(t, NULL);
  } else if (strcmp(what, "FILE") == 0) {
    offer_files(t, strcmp(o->name, "lib") == 0      ? ".so"
                   : strcmp(o->name, "params") == 0 ? ".params"
                   : strcmp(o->name, "svg") == 0    ? ".svg"
                                                    : "");
  } else {
    offer_fixed(t, o->name);
  }
}

static void offer_options(const command *c, const typed *t) {
  char word[64];
  for (const option *o = c->known; o->name != NULL; o++) {
    snprintf(word, sizeof word, "--%s", o->name);
    offer(t, word, "");
  }
}

/* The last of a command's words, where the one before it may be an option that wants a value. */
static void offer_word(const command *c, const char *before, const char *word) {
  const typed whole = {word, 0, word};
  if (strncmp(before, "--", 2) == 0 || strcmp(before, "-o") == 0) {
    const option *o =
        strcmp(before, "-o") == 0 ? options_find(c, "output", 6) : options_find(c, before + 2, strlen(before + 2));
    if (o != NULL && o->kind != OPTION_FLAG) {
      offer_value(o, &whole);
      return;
    }
  }
  size_t n = strcspn(word, "=");
  if (strncmp(word, "--", 2) == 0 && word[n] == '=') {
    const option *o = options_find(c, word + 2, n - 2);
    const typed value = {word, n + 1, word + n + 1};
    if (o != NULL && o->kind != OPTION_FLAG) offer_value(o, &value);
  } else if (word[0] == '-') {
    offer_options(c, &whole);
  } else if (c->takes != SUBJECT_NONE) {
    offer_files(&whole, c->takes == SUBJECT_PLUGIN ? ".so .json" : c->takes == SUBJECT_FILE ? "" : ".json .onnx .so");
  }
}

int complete_words(int n, char **words) {
  const char *last = n > 0 ? words[n - 1] : "";
  const typed whole = {last, 0, last};
  if (n <= 1 || (n == 2 && strcmp(words[0], "help") == 0)) {
    for (const command *const *c = all_commands; *c != NULL; c++) offer(&whole, (*c)->name, "");
    if (n <= 1) offer_list(&whole, "help --help --version", "");
    return DONE;
  }
  for (const command *const *c = all_commands; *c != NULL; c++)
    if (strcmp((*c)->name, words[0]) == 0) offer_word(*c, n > 2 ? words[n - 2] : "", last);
  return DONE;
}
