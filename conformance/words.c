/* conformance/words.c: the words of heddle-check's command line, as "heddle check-plugin" hands them on, and those that
 * the parent gives its children. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

enum { MOST_JOBS = 64, DEFAULT_JOBS = 4 };

static int wrong(const char *format, const char *word) {
  kit_print(stderr, "heddle check-plugin: ");
  kit_print(stderr, format, word);
  kit_print(stderr, "\n");
  return CHECK_WRONG_WORDS;
}

static bool whole(const char *text, unsigned long most, uint32_t *out) {
  char *end;
  if (text[0] < '0' || text[0] > '9') return false;
  errno = 0;
  unsigned long n = strtoul(text, &end, 10);
  if (errno != 0 || *end != '\0' || n > most) return false;
  *out = (uint32_t)n;
  return true;
}

static int add(check_words *list, const char *value) {
  const char **grown = realloc(list->data, (list->count + 1) * sizeof *grown);
  if (grown == NULL) {
    kit_print(stderr, "heddle check-plugin: out of memory\n");
    return CHECK_FAILED;
  }
  list->data = grown;
  list->data[list->count++] = value;
  return CHECK_DONE;
}

static int take_number(const char *name, const char *value, check_options *o) {
  if (strcmp(name, "device") == 0) {
    if (strcmp(value, "all") == 0) o->device = UINT32_MAX;
    else if (!whole(value, 1023, &o->device))
      return wrong("--device needs a device's number or 'all', not '%s'", value);
  } else if (strcmp(name, "jobs") == 0) {
    if (!whole(value, MOST_JOBS, &o->jobs) || o->jobs == 0) return wrong("--jobs needs 1 to 64, not '%s'", value);
  } else {
    char *end;
    o->seconds = strtod(value, &end);
    if (*end != '\0' || end == value || !(o->seconds > 0) || o->seconds > 86400)
      return wrong("--timeout needs a number of seconds over 0, not '%s'", value);
  }
  return CHECK_DONE;
}

static int take(const char *name, const char *value, check_options *o) {
  static const struct {
    const char *name;
    size_t offset;
  } texts[] = {{"unsupported", offsetof(check_options, unsupported)},
               {"expected", offsetof(check_options, expected)},
               {"format", offsetof(check_options, format)},
               {"output", offsetof(check_options, output)},
               {"junit", offsetof(check_options, junit)},
               {"report", offsetof(check_options, report)},
               {"store", offsetof(check_options, store)},
               {"case", offsetof(check_options, run)},
               {"word", offsetof(check_options, word)}};
  if (strcmp(name, "only") == 0) return add(&o->only, value);
  if (strcmp(name, "then") == 0) return add(&o->then, value);
  if (strcmp(name, "set") == 0) {
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value) return wrong("--set needs KEY=VALUE, not '%s'", value);
    return add(&o->settings, value);
  }
  if (strcmp(name, "device") == 0 || strcmp(name, "jobs") == 0 || strcmp(name, "timeout") == 0)
    return take_number(name, value, o);
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (strcmp(name, texts[i].name) == 0) {
      *(const char **)((char *)o + texts[i].offset) = value;
      return CHECK_DONE;
    }
  return wrong("there is no option '--%s'", name);
}

static bool flag(const char *name, check_options *o) {
  if (strcmp(name, "quick") == 0) o->quick = true;
  else if (strcmp(name, "json") == 0) o->format = "json";
  else if (strcmp(name, "list") == 0) o->list = true;
  else if (strcmp(name, "no-store") == 0) o->no_store = true;
  else if (strcmp(name, "survey") == 0) o->survey = true;
  else return false;
  return true;
}

int check_read_words(int argc, char **argv, check_options *o) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  *o = (check_options){.format = "text", .seconds = CHECK_SECONDS, .word = ""};
  o->jobs = cores < 1 ? 1 : cores > DEFAULT_JOBS ? DEFAULT_JOBS : (uint32_t)cores;
  bool only_files = false;
  for (int i = 1; i < argc; i++) {
    const char *text = argv[i];
    if (!only_files && strcmp(text, "--") == 0) {
      only_files = true;
      continue;
    }
    if (only_files || strncmp(text, "--", 2) != 0) {
      if (o->file != NULL) return wrong("'%s' is one word too many: one plugin at a time", text);
      o->file = text;
      continue;
    }
    if (flag(text + 2, o)) continue;
    char name[32];
    size_t length = strcspn(text + 2, "=");
    if (length >= sizeof name) return wrong("there is no option '%s'", text);
    memcpy(name, text + 2, length);
    name[length] = '\0';
    const char *value = text[2 + length] == '=' ? text + 3 + length : i + 1 < argc ? argv[++i] : NULL;
    if (value == NULL) return wrong("'%s' needs a word after it", text);
    int status = take(name, value, o);
    if (status != CHECK_DONE) return status;
  }
  if (o->file == NULL && !o->list) return wrong("%s", "which plugin? Name a shared library or a manifest");
  if (check_find_report(o->format) == NULL) return wrong("--format is text, tap, junit or json, not '%s'", o->format);
  return CHECK_DONE;
}

void check_words_finish(check_options *o) {
  free(o->only.data);
  free(o->settings.data);
  free(o->then.data);
}
