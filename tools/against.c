/* tools/against.c: starts the Python package for commands that need another runtime's package. */
#include "against.h"

#include <inttypes.h>
#include <stdio.h>

#include "python.h"
#include "text.h"

static const char start[] =
    "import sys\n"
    "try:\n"
    "    from heddle.against import main\n"
    "except ImportError as error:\n"
    "    sys.exit('heddle: --against needs the Python package heddle, which ' + sys.executable + "
    "' does not find (HEDDLE_PYTHON names another Python): ' + str(error))\n"
    "main()\n";

static bool has_others(const options *o) {
  const bool texts = o->params != NULL || o->lib != NULL || o->model_name != NULL || o->func != NULL ||
                     o->timer != NULL || o->memory != NULL || o->on_failure != NULL || o->state != NULL ||
                     o->a != NULL || o->output_dir != NULL;
  const bool lists = o->place_a.count > 0 || o->place_b.count > 0 || o->settings_a.count > 0 || o->settings_b.count > 0;
  return texts || lists || o->end_to_end || o->in_flight > 1 || o->timeout > 0 || o->min_repeat_ms > 0 || o->all ||
         o->ignore_annotations;
}

int against_run(const char *command, const options *o) {
  char threads[24], repeat[24], number[24];
  python_words l = {.n = 0};
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
  l.words[l.n++] = command;
  python_add(&l, o->model, "--against");
  l.words[l.n++] = o->against;
  python_add(&l, "--device", o->devices != NULL ? o->devices : o->b);
  python_add(&l, "--optimize", o->optimize);
  python_add(&l, "--precision", o->precision);
  python_add(&l, "--threads", threads);
  python_add(&l, "--repeat", repeat);
  python_add(&l, "--number", number);
  python_add_all(&l, "--dim", &o->dims);
  python_add_all(&l, "--input", &o->inputs);
  python_add_all(&l, "--place", &o->place);
  python_add_all(&l, "--set", &o->settings);
  if (o->json) l.words[l.n++] = "--json";
  return python_exec(command, "--against", start, &l);
}
