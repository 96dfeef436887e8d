/* tools/against.c: starts the Python package for commands that need another runtime's package. */
#include "against.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

enum { MOST = 512, PATH_ROOM = 4096 };

static const char start[] =
    "import sys\n"
    "try:\n"
    "    from heddle.against import main\n"
    "except ImportError as error:\n"
    "    sys.exit('heddle: --against needs the Python package heddle, which ' + sys.executable + "
    "' does not find (HEDDLE_PYTHON names another Python): ' + str(error))\n"
    "main()\n";

typedef struct list {
  const char *words[MOST];
  size_t n;
} list;

static void add(list *l, const char *name, const char *value) {
  if (value == NULL || l->n + 3 > MOST) return;
  l->words[l->n++] = name;
  l->words[l->n++] = value;
}

static void add_all(list *l, const char *name, const words *values) {
  for (size_t i = 0; i < values->count; i++) add(l, name, values->data[i]);
}

/* The package of a build tree lies in python/ beside bin/. */
static void find_package(void) {
  char path[PATH_ROOM], probe[PATH_ROOM + 64], all[2 * PATH_ROOM];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return;
  path[n] = '\0';
  for (int i = 0; i < 2; i++) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) return;
    *slash = '\0';
  }
  snprintf(probe, sizeof probe, "%s/python/heddle/__init__.py", path);
  if (access(probe, F_OK) != 0) return;
  const char *before = getenv("PYTHONPATH");
  snprintf(all, sizeof all, "%s/python%s%s", path, before != NULL ? ":" : "", before != NULL ? before : "");
  setenv("PYTHONPATH", all, 1);
}

static bool has_others(const options *o) {
  const bool texts = o->params != NULL || o->lib != NULL || o->model_name != NULL || o->func != NULL ||
                     o->timer != NULL || o->memory != NULL || o->on_failure != NULL || o->state != NULL ||
                     o->a != NULL || o->output_dir != NULL;
  const bool lists = o->place_a.count > 0 || o->place_b.count > 0 || o->settings_a.count > 0 || o->settings_b.count > 0;
  return texts || lists || o->end_to_end || o->in_flight > 1 || o->timeout > 0 || o->min_repeat_ms > 0 || o->all ||
         o->ignore_annotations;
}

int against_run(const char *command, const options *o) {
  const char *python = getenv("HEDDLE_PYTHON");
  char threads[24], repeat[24], number[24];
  list l = {.n = 0};
  if (python == NULL || python[0] == '\0') python = "python3";
  if (has_others(o) || o->repeat == 0 || o->number == 0) {
    print_error(
        "heddle %s: with --against there are --device (--b), --dim, --input, --json, --number, --optimize, --place, "
        "--precision, --repeat, --set and --threads; leave out others\n",
        command);
    return WRONG_WORDS;
  }
  snprintf(threads, sizeof threads, "%" PRIu64, o->threads);
  snprintf(repeat, sizeof repeat, "%" PRIu64, o->repeat);
  snprintf(number, sizeof number, "%" PRIu64, o->number);
  add(&l, python, "-c");
  add(&l, start, command);
  add(&l, o->model, "--against");
  l.words[l.n++] = o->against;
  add(&l, "--device", o->devices != NULL ? o->devices : o->b);
  add(&l, "--optimize", o->optimize);
  add(&l, "--precision", o->precision);
  add(&l, "--threads", threads);
  add(&l, "--repeat", repeat);
  add(&l, "--number", number);
  add_all(&l, "--dim", &o->dims);
  add_all(&l, "--input", &o->inputs);
  add_all(&l, "--place", &o->place);
  add_all(&l, "--set", &o->settings);
  if (o->json) l.words[l.n++] = "--json";
  if (l.n + 1 >= MOST) return fail_text(command, "too many words");
  l.words[l.n] = NULL;
  find_package();
  fflush(stdout);
  execvp(python, (char *const *)(uintptr_t)l.words);
  return fail_text(command, "--against needs Python: %s: %s (HEDDLE_PYTHON names another)", python, strerror(errno));
}
