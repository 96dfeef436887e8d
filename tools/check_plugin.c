/* tools/check_plugin.c: heddle check-plugin: hands its words to heddle-check, the conformance kit, which is a program of
 * its own that links nothing of libheddle. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "text.h"

enum { MOST_PATH = 4096 };

/* Beside this program, as the build tree and an installed prefix have it. */
static bool find_kit(char *out) {
  char self[MOST_PATH];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return false;
  self[n] = '\0';
  char *slash = strrchr(self, '/');
  if (slash == NULL) return false;
  *slash = '\0';
  n = snprintf(out, MOST_PATH, "%s/%s", self, HEDDLE_CHECK_INSTALLED);
  return n > 0 && n < MOST_PATH && access(out, X_OK) == 0;
}

/* The words for the kit; borrowed from the options but for numbers. */
typedef struct line {
  char **words;
  size_t count;
} line;

static void add(line *l, const char *word) {
  l->words[l->count++] = (char *)(uintptr_t)word; /* exec takes them so, and changes nothing */
}

static void add_text(line *l, const char *name, const char *value) {
  if (value == NULL) return;
  add(l, name);
  add(l, value);
}

static void add_words(line *l, const char *name, const words *list) {
  for (size_t i = 0; i < list->count; i++) add_text(l, name, list->data[i]);
}

static int run_check_plugin(const options *o) {
  char path[MOST_PATH], seconds[32], jobs[32];
  if (!find_kit(path)) {
    print_error("heddle check-plugin: the program heddle-check is not there; it is installed with Heddle as "
                "libexec/heddle/heddle-check\n");
    return FAILED;
  }
  line l = {calloc(2 * (o->only.count + o->settings.count) + 32, sizeof(char *)), 0};
  if (l.words == NULL) {
    print_error("heddle check-plugin: out of memory\n");
    return FAILED;
  }
  snprintf(seconds, sizeof seconds, "%g", o->timeout);
  snprintf(jobs, sizeof jobs, "%llu", (unsigned long long)o->jobs);
  add(&l, "heddle-check");
  add_text(&l, "--device", o->devices);
  add_words(&l, "--only", &o->only);
  add_words(&l, "--set", &o->settings);
  add_text(&l, "--timeout", o->timeout > 0 ? seconds : NULL);
  add_text(&l, "--jobs", o->jobs != NO_NUMBER ? jobs : NULL);
  add_text(&l, "--unsupported", o->unsupported);
  add_text(&l, "--expected", o->expected);
  add_text(&l, "--format", o->format);
  add_text(&l, "--output", o->output);
  add_text(&l, "--junit", o->junit);
  add_text(&l, "--report", o->report);
  add_text(&l, "--store", o->store);
  if (o->json) add(&l, "--json");
  if (o->quick) add(&l, "--quick");
  if (o->list) add(&l, "--list");
  if (o->no_store) add(&l, "--no-store");
  if (o->model != NULL) {
    add(&l, "--");
    add(&l, o->model);
  }
  execv(path, l.words);
  print_error("heddle check-plugin: %s cannot be started: %s\n", path, strerror(errno));
  free(l.words);
  return FAILED;
}

static const option known[] = {
    {"device", OPTION_TEXT, "N", offsetof(options, devices), "which of the plugin's devices, or all; 0 by default"},
    {"only", OPTION_WORDS, "PATTERN", offsetof(options, only), "runs only these cases, such as memory/* or a group"},
    {"quick", OPTION_FLAG, NULL, offsetof(options, quick), "leaves out the cases that take long"},
    {"list", OPTION_FLAG, NULL, offsetof(options, list), "lists the cases and what each checks; PLUGIN is not needed"},
    OPTION_SET,
    {"timeout", OPTION_NUMBER, "SECONDS", offsetof(options, timeout),
     "time limit of a case; 10 by default, and longer in proportion for those that need it"},
    {"jobs", OPTION_COUNT, "N", offsetof(options, jobs), "cases at the same time; the cores, at most 4, by default"},
    {"unsupported", OPTION_TEXT, "FILE", offsetof(options, unsupported), "cases that are skipped: CASE and a reason"},
    {"expected", OPTION_TEXT, "FILE", offsetof(options, expected),
     "cases that fail: CASE and a reason; one that passes is an error"},
    {"format", OPTION_TEXT, "WORD", offsetof(options, format), "text, tap, junit or json"},
    {"json", OPTION_FLAG, NULL, offsetof(options, json), "one JSON object; the same as --format json"},
    {"output", OPTION_TEXT, "FILE", offsetof(options, output), "where the report goes, other than to the output"},
    {"junit", OPTION_TEXT, "FILE", offsetof(options, junit), "also writes JUnit's XML there"},
    {"report", OPTION_TEXT, "FILE", offsetof(options, report),
     "also writes a report to publish there: Markdown, or HTML where FILE ends in .html"},
    {"store", OPTION_TEXT, "DIR", offsetof(options, store), "where it is kept which abilities libheddle may use"},
    {"no-store", OPTION_FLAG, NULL, offsetof(options, no_store), "keeps nothing"},
    OPTION_HELP,
    OPTION_END};

const command check_plugin_command = {
    .name = "check-plugin",
    .summary = "checks a plugin against heddle/plugin.h, case by case",
    .description = "Runs the conformance kit on a device plugin, a shared library or a manifest that names one: each\n"
                   "case in a process of its own, which may crash or hang. The plugin's code runs with your rights.\n"
                   "Exit status: 0 all passed, 1 a case failed or no device could be checked, 2 the words were wrong.",
    .known = known,
    .takes = SUBJECT_PLUGIN,
    .run = run_check_plugin};
