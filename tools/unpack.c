/* tools/unpack.c: heddle unpack: what a packed file holds as files. */
#include <stddef.h>

#include "heddle/heddle.h"
#include "options.h"
#include "text.h"

static const option known[] = {
    {"output", OPTION_TEXT, "FOLDER", offsetof(options, output), "the folder that is written to (or -o)"},
    OPTION_TRUST,
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

static int unpack(const options *o) {
  heddle_error err = {0};
  if (o->output == NULL) {
    print_error("heddle unpack: where to? -o needs the name of a folder\n");
    return WRONG_WORDS;
  }
  if (heddle_unpack(o->model, o->output, &err) != HEDDLE_OK) return fail("unpack", &err);
  print("wrote %s\n", o->output);
  return DONE;
}

const command unpack_command = {
    "unpack",
    "what a packed file holds, as files",
    "Writes the graph (NAME.json) and the parameters (NAME.params) of each model that a packed file holds, and its\n"
    "library without models (lib.so).",
    known,
    SUBJECT_MODEL,
    unpack};
