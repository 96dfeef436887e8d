/* tools/options.c: reads the words of a command line by a command's table, and prints the table as help.
 * Knows nothing of what the options mean. */
#include "options.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/text.h"

/* ---- parsing */

static int wrong(const command *c, const char *format, const char *word, const char *more) {
  print_error("heddle %s: ", c->name);
  print_error(format, word, more);
  print_error("\n(heddle %s --help says what there is)\n", c->name);
  return WRONG_WORDS;
}

const option *options_find(const command *c, const char *name, size_t length) {
  for (const option *o = c->known; o->name != NULL; o++)
    if (strlen(o->name) == length && memcmp(o->name, name, length) == 0) return o;
  return NULL;
}

static int unknown(const command *c, const char *word) {
  const char *names[32];
  char name[64];
  size_t n = 0;
  for (const option *o = c->known; o->name != NULL && n < 32; o++) names[n++] = o->name;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
  const char *near = heddle_text_nearest(name, names, n);
  if (near != NULL) return wrong(c, "there is no option '%s'; did you mean --%s?", word, near);
  return wrong(c, "there is no option '%s'%s", word, "");
}

static bool read_count(const char *text, uint64_t *out) {
  char *end;
  errno = 0;
  if (text[0] < '0' || text[0] > '9') return false;
  unsigned long long n = strtoull(text, &end, 10);
  if (errno != 0 || *end != '\0') return false;
  *out = n;
  return true;
}

/* The tool never calls setlocale, so the point is a point. */
static bool read_number(const char *text, double *out) {
  char *end;
  if ((text[0] < '0' || text[0] > '9') && text[0] != '.') return false;
  if (strspn(text, "0123456789.eE+-") != strlen(text)) return false;
  double x = strtod(text, &end);
  if (*end != '\0' || !(x <= 1e15)) return false;
  *out = x;
  return true;
}

static int add(const command *c, const char *value, words *list) {
  const char **grown = realloc(list->data, (list->count + 1) * sizeof *grown);
  if (grown == NULL) {
    print_error("heddle %s: out of memory\n", c->name);
    return FAILED;
  }
  list->data = grown;
  list->data[list->count++] = value;
  return DONE;
}

static int keep(const command *c, const option *o, const char *value, options *out) {
  void *member = (char *)out + o->offset;
  switch (o->kind) {
  case OPTION_FLAG: *(bool *)member = true; return DONE;
  case OPTION_TEXT:
    if (value[0] == '\0') return wrong(c, "--%s needs %s, not nothing", o->name, o->value);
    *(const char **)member = value;
    return DONE;
  case OPTION_COUNT:
    if (read_count(value, member)) return DONE;
    return wrong(c, "--%s needs a whole number, not '%s'", o->name, value);
  case OPTION_POSITIVE:
    if (read_count(value, member) && *(uint64_t *)member > 0) return DONE;
    return wrong(c, "--%s needs a whole number from 1 on, not '%s'", o->name, value);
  case OPTION_NUMBER:
    if (read_number(value, member)) return DONE;
    return wrong(c, "--%s needs a number, not '%s'", o->name, value);
  case OPTION_WORDS: return add(c, value, member);
  case OPTION_PAIRS:
  case OPTION_RULES: break;
  }
  const bool is_word = o->kind == OPTION_RULES && (strcmp(value, "auto") == 0 || strcmp(value, "off") == 0);
  const char *equals = strchr(value, '=');
  if (!is_word && (equals == NULL || equals == value || equals[1] == '\0')) {
    print_error("heddle %s: --%s needs %s%s, not '%s'\n", c->name, o->name, o->value,
                o->kind == OPTION_RULES ? " or auto" : "", value);
    return WRONG_WORDS;
  }
  return add(c, value, member);
}

int options_parse(const command *c, int argc, char **argv, options *out) {
  *out = (options){.in_flight = 1,
                   .jobs = NO_NUMBER,
                   .repeat = 5,
                   .number = 5,
                   .zero_limit = 100,
                   .repeats_to_cooldown = 1,
                   .profile_runs = NO_NUMBER};
  bool only_names = false;
  for (int i = 0; i < argc; i++) {
    const char *word = argv[i];
    if (!only_names && strcmp(word, "--") == 0) {
      only_names = true;
      continue;
    }
    if (!only_names && strcmp(word, "-h") == 0) word = "--help";
    if (!only_names && strcmp(word, "-o") == 0 && options_find(c, "output", 6) != NULL) word = "--output";
    if (only_names || strncmp(word, "--", 2) != 0) {
      if (!only_names && word[0] == '-' && word[1] != '\0')
        return wrong(c, "there is no option '%s'; options begin with --%s", word, "");
      if (c->takes == SUBJECT_NONE) return wrong(c, "'%s' is one word too many%s", word, "");
      const bool several = c->takes == SUBJECT_MODELS || c->takes == SUBJECT_WORDS;
      if (several && add(c, word, &out->models) != DONE) return FAILED;
      if (several && out->model != NULL) continue;
      if (out->model != NULL) return wrong(c, "'%s' is one word too many after '%s'", word, out->model);
      out->model = word;
      continue;
    }
    size_t length = strcspn(word + 2, "=");
    const option *o = options_find(c, word + 2, length);
    if (o == NULL) return unknown(c, word);
    const char *value = word[2 + length] == '=' ? word + 3 + length : NULL;
    if (o->kind == OPTION_FLAG && value != NULL) return wrong(c, "--%s takes no value%s", o->name, "");
    if (o->kind != OPTION_FLAG && value == NULL) {
      if (i + 1 >= argc) return wrong(c, "--%s needs %s after it", o->name, o->value);
      value = argv[++i];
    }
    int status = keep(c, o, value, out);
    if (status != DONE) return status;
  }
  if (c->takes == SUBJECT_NONE || out->model != NULL || out->help || out->list) return DONE;
  if (c->takes == SUBJECT_FILE) return wrong(c, "which file?%s%s", "", "");
  if (c->takes == SUBJECT_WORDS) return wrong(c, "new FILE, or public FILE?%s%s", "", "");
  return wrong(c, "which %s? Name %s", c->takes == SUBJECT_PLUGIN ? "plugin" : "model",
               c->takes == SUBJECT_PLUGIN ? "a shared library or a manifest"
                                          : "a graph's .json file, an .onnx file, or a library that holds a model");
}

void options_finish(const command *c, options *o) {
  free(o->models.data);
  for (const option *known = c->known; known->name != NULL; known++) {
    if (known->kind != OPTION_WORDS && known->kind != OPTION_PAIRS && known->kind != OPTION_RULES) continue;
    words *list = (words *)(void *)((char *)o + known->offset);
    free(list->data);
    *list = (words){0};
  }
}

/* ---- help */

void options_help(const command *c) {
  static const char *const words[] = {"", " MODEL", " PLUGIN", " MODEL...", " FILE", " new|public FILE"};
  print("heddle %s%s [OPTION]...\n\n", c->name, words[c->takes]);
  put_text(c->description, strlen(c->description));
  print("\n\n");
  for (const option *o = c->known; o->name != NULL; o++) {
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
    print("  %-30s %s%s\n", left, o->help,
          o->kind == OPTION_PAIRS || o->kind == OPTION_RULES || o->kind == OPTION_WORDS ? "; may be repeated" : "");
  }
}
